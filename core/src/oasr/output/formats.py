"""Formats of transcripts.

To add one, write its `TranscriptWriter` and add a row to `WRITERS`. Those that several inputs can share a stream in are
here; `subtitles` and `verbose_json` hold the others.

Format `json` is one object with everything known about an input:

    {"source", "task", "text", "language", "language_probability", "duration", "truncated", "notes",
     "segments": [{"start", "end", "text", "avg_logprob", "compression_ratio", "no_speech_prob", "temperature",
                   "window_start", "tokens", "words": [{"text", "start", "end", "confidence", "interpolated"}]}],
     "n_best": [{"start", "end", "alternatives": [{"text", "avg_logprob"}]}]}

`language` is the one spoken, also of a translation. What is not known is null. Times are seconds, rounded to
milliseconds. A stream of many inputs has one object a line, and `{"source", "error"}` for an input that failed.
"""

import json
from math import isfinite
from typing import Any

from oasr.errors import AudioError, OasrError
from oasr.output.printable import printable
from oasr.output.subtitles import LrcWriter, SrtWriter, TsvWriter, VttWriter
from oasr.output.verbose_json import VerboseJsonWriter
from oasr.output.writer import StreamWriter, TranscriptWriter
from oasr.types import NBest, Segment, Transcript, Word


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
        "task": transcript.task,
        "text": transcript.text,
        "language": transcript.language,
        "language_probability": transcript.language_probability,
        "duration": round(transcript.duration, 3),
        "truncated": transcript.truncated,
        "notes": list(transcript.notes),
        "segments": [_segment(segment) for segment in transcript.segments],
        "n_best": [_n_best(window) for window in transcript.n_best],
    }


def _segment(segment: Segment) -> dict[str, Any]:
    return {
        "start": round(segment.start, 3),
        "end": round(segment.end, 3),
        "text": segment.text,
        "avg_logprob": _number(segment.avg_logprob),
        "compression_ratio": _number(segment.compression_ratio),
        "no_speech_prob": _number(segment.no_speech_prob),
        "temperature": segment.temperature,
        "window_start": round(segment.window_start, 3),
        "tokens": list(segment.tokens),
        "words": [_word(word) for word in segment.words],
    }


def _word(word: Word) -> dict[str, Any]:
    return {
        "text": word.text,
        "start": round(word.start, 3),
        "end": round(word.end, 3),
        "confidence": _number(word.confidence),
        "interpolated": word.interpolated,
    }


def _n_best(window: NBest) -> dict[str, Any]:
    alternatives = [{"text": each.text, "avg_logprob": _number(each.avg_logprob)} for each in window.alternatives]
    return {"start": round(window.start, 3), "end": round(window.end, 3), "alternatives": alternatives}


def _number(value: float | None) -> float | None:
    """JSON has no infinity, which the log-probability of a token that was ruled out is."""
    return None if value is None or not isfinite(value) else round(value, 4)
