"""Formats with times for players and editors: SubRip, WebVTT and lyrics in cues, a table in segments.

A document holds one input: none of them has a place for its name.
"""

import re

from oasr.output.cues import cues, placed
from oasr.output.units import flat
from oasr.output.writer import TranscriptWriter
from oasr.types import Transcript

_LRC_TIME = re.compile(r"[\[<](\d+:\d+(?:[.:]\d+)?)[\]>]")


class SrtWriter(TranscriptWriter):
    """SubRip. It knows no escapes: what is said stands there as it is."""

    def document(self, source: str, transcript: Transcript) -> str:
        return "".join(
            f"{number}\n{_clock(cue.start, ',')} --> {_clock(cue.end, ',')}\n{_text(cue.lines)}\n\n"
            for number, cue in enumerate(cues(transcript, most_lines=2), start=1)
        )


class VttWriter(TranscriptWriter):
    """WebVTT (W3C), always with hours, which all players take."""

    def document(self, source: str, transcript: Transcript) -> str:
        return "WEBVTT\n\n" + "".join(
            f"{_clock(cue.start, '.')} --> {_clock(cue.end, '.')}\n{_escaped(_text(cue.lines))}\n\n"
            for cue in cues(transcript, most_lines=2)
        )


class LrcWriter(TranscriptWriter):
    """Lyrics: a line each, and when it starts."""

    def document(self, source: str, transcript: Transcript) -> str:
        shown = [(cue.start, _text(cue.lines)) for cue in cues(transcript, most_lines=1)]
        # A time in brackets in the text would be taken for another time of the line.
        lines = [f"[{_minutes(start)}]" + _LRC_TIME.sub(r"(\1)", text) + "\n" for start, text in shown]
        return "".join(lines)


class TsvWriter(TranscriptWriter):
    """A table of segments as openai-whisper writes it: times in milliseconds, text without tabs and line breaks."""

    def document(self, source: str, transcript: Transcript) -> str:
        said = [(segment, text) for segment in transcript.segments if (text := flat(segment.text))]
        said.sort(key=lambda each: each[0].start)
        times = placed([(segment.start, segment.end) for segment, _ in said], transcript.duration)
        rows = [f"{start}\t{end}\t{text}\n" for (start, end), (_, text) in zip(times, said, strict=True)]
        return "start\tend\ttext\n" + "".join(rows)


def _text(lines: tuple[str, ...]) -> str:
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _clock(time: int, point: str) -> str:
    seconds, thousandths = divmod(time, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{seconds:02d}{point}{thousandths:03d}"


def _minutes(time: int) -> str:
    seconds, thousandths = divmod(time, 1000)
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes:02d}:{seconds:02d}.{thousandths // 10:02d}"
