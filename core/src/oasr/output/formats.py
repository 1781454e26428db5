"""Formats of transcripts.

To add one, write its `TranscriptWriter` and add a row to `WRITERS`. Those that several inputs can share a stream in are
here; `subtitles` and `verbose_json` hold the others.

Format `json` is one object with everything known about an input:

    {"source", "text", "language", "language_probability", "duration", "truncated", "notes",
     "segments": [{"start", "end", "text", "avg_logprob", "tokens"}]}

Times are seconds, rounded to milliseconds. A stream of many inputs has one object a line, and
`{"source", "error"}` for an input that failed.
"""

import json
from math import isfinite
from typing import Any

from oasr.errors import AudioError, OasrError
from oasr.output.printable import printable
from oasr.output.subtitles import LrcWriter, SrtWriter, TsvWriter, VttWriter
from oasr.output.verbose_json import VerboseJsonWriter
from oasr.output.writer import StreamWriter, TranscriptWriter
from oasr.types import Segment, Transcript


class PlainTextWriter(StreamWriter):
    """The text alone; among others one line `source: text` each, as grep prints what it found."""

    def document(self, source: str, transcript: Transcript) -> str:
        return f"{transcript.text}\n"

    def entry(self, source: str, transcript: Transcript) -> str:
        return f"{printable(source)}: {' '.join(transcript.text.splitlines())}".rstrip() + "\n"


class JsonWriter(StreamWriter):
    """Laid out for reading when alone, one line each among others."""

    def document(self, source: str, transcript: Transcript) -> str:
        fields = {key: _line(value) for key, value in _transcript(source, transcript).items()}
        if transcript.segments:  # one a line: indenting their tokens would take a line for each
            segments = ",\n".join(f"    {_line(_segment(segment))}" for segment in transcript.segments)
            fields["segments"] = f"[\n{segments}\n  ]"
        return "{\n" + ",\n".join(f'  "{key}": {value}' for key, value in fields.items()) + "\n}\n"

    def entry(self, source: str, transcript: Transcript) -> str:
        return _line(_transcript(source, transcript)) + "\n"

    def failure(self, source: str, error: OasrError) -> str:
        problem = error.problem if isinstance(error, AudioError) else str(error).removeprefix(f"{source}: ")
        return _line({"source": source, "error": problem}) + "\n"


WRITERS: dict[str, TranscriptWriter] = {
    "txt": PlainTextWriter(),
    "json": JsonWriter(),
    "srt": SrtWriter(),
    "vtt": VttWriter(),
    "tsv": TsvWriter(),
    "lrc": LrcWriter(),
    "verbose_json": VerboseJsonWriter(),
}
"""By the word after `--format`, which is also the extension of the files."""


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _transcript(source: str, transcript: Transcript) -> dict[str, Any]:
    return {
        "source": source,
        "text": transcript.text,
        "language": transcript.language,
        "language_probability": transcript.language_probability,
        "duration": round(transcript.duration, 3),
        "truncated": transcript.truncated,
        "notes": list(transcript.notes),
        "segments": [_segment(segment) for segment in transcript.segments],
    }


def _segment(segment: Segment) -> dict[str, Any]:
    return {
        "start": round(segment.start, 3),
        "end": round(segment.end, 3),
        "text": segment.text,
        # JSON has no infinity, which a token that was ruled out has.
        "avg_logprob": round(segment.avg_logprob, 4) if isfinite(segment.avg_logprob) else None,
        "tokens": list(segment.tokens),
    }
