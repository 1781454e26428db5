"""Format `verbose_json`: one object with the fields of OpenAI's transcription API.

    {"task", "language", "language_code", "duration", "text",
     "segments": [{"id", "seek", "start", "end", "text", "tokens", "temperature", "avg_logprob", "compression_ratio",
                   "no_speech_prob"}],
     "words": [{"word", "start", "end", "confidence", "interpolated"}],
     "usage": {"type", "seconds"}}

`language` is that of the text: a translation is in English. `seek` is when the segment's window starts, in hundredths.
Clients that check what they read want every field of a segment, as a number. `language_code` is an addition, as are
`confidence`, which is absent when the model tells none, and `interpolated`, which is there when it is true. `words` is
absent when none were timed. Times are seconds, rounded to milliseconds.
"""

import json
from collections.abc import Iterator
from math import ceil, isfinite
from typing import Any

from oasr import languages
from oasr.output.writer import TranscriptWriter
from oasr.types import Segment, Transcript, Word

_RULED_OUT = -1000.0  # stands for the logarithm of 0, which JSON has no number for
_SEEK_PER_SECOND = 100  # feature frames of Whisper


class VerboseJsonWriter(TranscriptWriter):
    """Laid out for reading, a segment and a word a line."""

    def document(self, source: str, transcript: Transcript) -> str:
        code = "en" if transcript.task == "translate" else transcript.language
        fields = {
            "task": _line(transcript.task),
            "language": _line(None if code is None else language_name(code)),
            "language_code": _line(code),
            "duration": _line(round(transcript.duration, 3)),
            "text": _line(transcript.text),
            "segments": _rows([_segment(index, *each) for index, each in enumerate(_spaced(transcript))]),
        }
        words = [_word(word) for segment in transcript.segments for word in segment.words]
        if words:
            fields["words"] = _rows(words)
        fields["usage"] = _line({"type": "duration", "seconds": ceil(transcript.duration)})
        return "{\n" + ",\n".join(f'  "{key}": {value}' for key, value in fields.items()) + "\n}\n"


def language_name(code: str) -> str:
    """The English name in small letters, as OpenAI's API writes it; the code itself for an unknown language."""
    return (languages.name(code) or code).lower()


def _spaced(transcript: Transcript) -> Iterator[tuple[Segment, str]]:
    """Segments with their texts, which joined are the text of the transcript but for a space in front, as Whisper's."""
    cursor = 0
    for segment in transcript.segments:
        begin = transcript.text.find(segment.text, cursor)
        spaced = begin != cursor or cursor == 0
        cursor = begin + len(segment.text) if begin >= 0 else cursor
        yield segment, f" {segment.text}" if spaced else segment.text


def _segment(index: int, segment: Segment, text: str) -> dict[str, Any]:
    return {
        "id": index,
        "seek": round(segment.window_start * _SEEK_PER_SECOND),
        "start": round(segment.start, 3),
        "end": round(segment.end, 3),
        "text": text,
        "tokens": list(segment.tokens),
        "temperature": segment.temperature,
        "avg_logprob": round(segment.avg_logprob, 4) if isfinite(segment.avg_logprob) else _RULED_OUT,
        "compression_ratio": round(segment.compression_ratio, 4),
        # 0 also when the model does not tell: programs drop segments by this number, and this one holds text.
        "no_speech_prob": round(segment.no_speech_prob or 0.0, 4),
    }


def _word(word: Word) -> dict[str, Any]:
    fields: dict[str, Any] = {"word": word.text.strip(), "start": round(word.start, 3), "end": round(word.end, 3)}
    if word.confidence is not None:
        fields["confidence"] = round(word.confidence, 4)
    if word.interpolated:
        fields["interpolated"] = True
    return fields


def _rows(objects: list[dict[str, Any]]) -> str:
    rows = ",\n".join(f"    {_line(each)}" for each in objects)
    return f"[\n{rows}\n  ]" if rows else "[]"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
