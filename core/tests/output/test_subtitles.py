"""Subtitle files: whatever was said, they are read back by readers that forgive nothing."""

import io
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasr.cli import transcribe as command
from oasr.cli.main import main
from oasr.errors import ConfigError
from oasr.output.formats import WRITERS
from oasr.output.sinks import OutputStream
from oasr.types import Segment, Transcript, Word

DOCUMENTS = ["srt", "vtt", "tsv", "lrc", "verbose_json"]
TIMED = ["srt", "vtt", "tsv"]
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")

SILENCE = Transcript("", (), None, 1.0)
UGLY = (
    'it\'s <b>bold</b> & "quoted" --> or ---> so',
    "two\nlines\r\n\r\nand\u2028more\x85\x00\x0b.",
    "a\ttab",
    "   ",
    "\n\n",
    "[00:01.00] not a time <00:02.00>",
    "1",
    "1\n\n00:00:01,000 --> 00:00:02,000\nforged",
    "WEBVTT",
    "NOTE nothing",
    "\u200f\ufeff\u200d",
)


@dataclass(frozen=True)
class Read:
    start: int
    end: int
    lines: list[str]


def said(*texts: str, start: float = 0.0) -> Transcript:
    segments = tuple(Segment(start + 2.0 * index, start + 2.0 * index + 2, text) for index, text in enumerate(texts))
    return Transcript(" ".join(texts), segments, "en", start + 2.0 * len(texts))


def time(text: str, point: str) -> int:
    match = re.fullmatch(rf"(\d\d+):([0-5]\d):([0-5]\d){re.escape(point)}(\d\d\d)", text)
    assert match, f"{text!r} is no time"
    hours, minutes, seconds, thousandths = map(int, match.groups())
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + thousandths


def block(lines: list[str], point: str) -> Read:
    start, arrow, end = lines[0].split(" ")
    assert arrow == "-->"
    assert 1 <= len(lines) - 1 <= 2
    for line in lines[1:]:
        assert line.strip()
        assert "-->" not in line
        assert not CONTROL.search(line)
    return Read(time(start, point), time(end, point), lines[1:])


def read_srt(document: str) -> list[Read]:
    if not document:
        return []
    assert document.endswith("\n\n")
    found = []
    for number, part in enumerate(document[:-2].split("\n\n"), start=1):
        first, *rest = part.split("\n")
        assert first == str(number)
        found.append(block(rest, ","))
    return found


def read_vtt(document: str) -> list[Read]:
    head = "WEBVTT\n\n"
    assert document.startswith(head)
    if document == head:
        return []
    assert document.endswith("\n\n")
    found = []
    for part in document[len(head) : -2].split("\n\n"):
        cue = block(part.split("\n"), ".")
        assert not re.search(r"[<>]|&(?!amp;|lt;|gt;)", "".join(cue.lines))
        lines = [line.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") for line in cue.lines]
        found.append(Read(cue.start, cue.end, lines))
    return found


def read_tsv(document: str) -> list[Read]:
    head, *rows, last = document.split("\n")
    assert (head, last) == ("start\tend\ttext", "")
    found = []
    for row in rows:
        start, end, text = row.split("\t")
        assert text.strip()
        assert not CONTROL.search(text)
        found.append(Read(int(start), int(end), [text]))
    return found


def read_lrc(document: str) -> list[tuple[int, str]]:
    *lines, last = document.split("\n")
    assert last == ""
    found = []
    for line in lines:
        match = re.fullmatch(r"\[(\d\d+):([0-5]\d)\.(\d\d)\](.+)", line)
        assert match, line
        minutes, seconds, hundredths = (int(match[group]) for group in (1, 2, 3))
        assert match[4].strip()
        assert not re.search(r"[\[<]\d+:\d+([.:]\d+)?[\]>]", match[4])
        assert not CONTROL.search(match[4])
        found.append(((minutes * 60 + seconds) * 1000 + hundredths * 10, match[4]))
    return found


READERS = {"srt": read_srt, "vtt": read_vtt, "tsv": read_tsv}


def write(form: str, transcript: Transcript) -> str:
    return WRITERS[form].document("a.wav", transcript)


def test_srt_of_two_segments() -> None:
    assert write("srt", said("Hello.", "It's <me> & you.")) == (
        "1\n00:00:00,000 --> 00:00:02,000\nHello.\n\n2\n00:00:02,000 --> 00:00:04,000\nIt's <me> & you.\n\n"
    )


def test_vtt_escapes_what_it_would_read_as_tags_and_nothing_else() -> None:
    assert write("vtt", said("Hello.", "It's <me> & you.")) == (
        "WEBVTT\n\n00:00:00.000 --> 00:00:02.000\nHello.\n\n"
        "00:00:02.000 --> 00:00:04.000\nIt's &lt;me&gt; &amp; you.\n\n"
    )


def test_tsv_has_milliseconds_and_no_tab_in_the_text() -> None:
    assert write("tsv", said("Hello.", "a\tb")) == "start\tend\ttext\n0\t2000\tHello.\n2000\t4000\ta b\n"


def test_lrc_has_a_time_a_line() -> None:
    assert write("lrc", said("Hello.", "You.", start=61.239)) == "[01:01.23]Hello.\n[01:03.23]You.\n"


@pytest.mark.parametrize(
    ("form", "expected"), [("srt", ""), ("vtt", "WEBVTT\n\n"), ("tsv", "start\tend\ttext\n"), ("lrc", "")]
)
@pytest.mark.parametrize("transcript", [SILENCE, said(" ", "\n\x00\u2028")])
def test_silence_is_a_valid_document_without_cues(form: str, expected: str, transcript: Transcript) -> None:
    assert write(form, transcript) == expected


@pytest.mark.parametrize(
    ("start", "written"),
    [
        (3599.999, "00:59:59.999"),
        (3599.9996, "01:00:00.000"),
        (3600.0, "01:00:00.000"),
        (359999.999, "99:59:59.999"),
        (360000.0, "100:00:00.000"),
    ],
)
def test_times_past_one_hour_and_past_a_hundred(start: float, written: str) -> None:
    transcript = said("Hello.", start=start)
    assert f"\n{written} --> " in write("vtt", transcript)
    assert f"\n{written.replace('.', ',')} --> " in write("srt", transcript)
    [(lrc, _)] = read_lrc(write("lrc", transcript))
    assert lrc == round(start * 1000) // 10 * 10


@pytest.mark.parametrize("text", UGLY)
@pytest.mark.parametrize("form", TIMED)
def test_ugly_text_is_read_back_whole(form: str, text: str) -> None:
    found = READERS[form](write(form, said("Before.", text, "After.")))
    read = " ".join(line for each in found for line in each.lines)
    flat = re.sub(r"[\s\x00-\x1f\x7f-\x9f]+", " ", f"Before. {text} After.")
    assert read == (flat if form == "tsv" else re.sub("--+>", "->", flat))


@pytest.mark.parametrize("text", UGLY)
def test_ugly_text_is_a_line_of_lyrics(text: str) -> None:
    found = [line for _, line in read_lrc(write("lrc", said("Before.", text, "After.")))]
    assert (found[0], found[-1]) == ("Before.", "After.")


TIME = st.floats(-2, 400, allow_nan=False)
TEXT = st.one_of(st.sampled_from(UGLY), st.text(max_size=60), st.text("ab .-><&\n世。กเ้\u0301", max_size=200))
WORD = st.builds(Word, TEXT, TIME, TIME)
SEGMENT = st.builds(Segment, TIME, TIME, TEXT, words=st.lists(WORD, max_size=5).map(tuple))


@st.composite
def transcripts(draw: st.DrawFn) -> Transcript:
    segments = draw(st.lists(SEGMENT, max_size=6))
    for index, segment in enumerate(segments):
        if draw(st.booleans()):  # words that are in the text
            step = (segment.end - segment.start) / 9
            words = [
                Word(text, segment.start + step * at, segment.start + step * (at + 1))
                for at, text in enumerate(segment.text.split()[:9])
            ]
            segments[index] = Segment(segment.start, segment.end, segment.text, words=tuple(words))
    return Transcript("", tuple(segments), "en", draw(st.floats(0, 400)))


@given(transcripts(), st.sampled_from(TIMED))
def test_any_transcript_gives_a_valid_document_in_order_of_time(transcript: Transcript, form: str) -> None:
    found = READERS[form](write(form, transcript))
    limit = round(transcript.duration * 1000)
    assert all(0 <= each.start < each.end for each in found)
    assert all(before.end <= after.start for before, after in pairwise(found))
    assert limit < len(found) or all(each.end <= limit for each in found)


@given(transcripts())
def test_any_transcript_gives_valid_lyrics_in_order_of_time(transcript: Transcript) -> None:
    times = [start for start, _ in read_lrc(write("lrc", transcript))]
    assert times == sorted(times)


@given(transcripts())
def test_srt_and_vtt_tell_the_same(transcript: Transcript) -> None:
    assert read_srt(write("srt", transcript)) == read_vtt(write("vtt", transcript))


@pytest.mark.oracle
@pytest.mark.parametrize("form", TIMED)
def test_short_segments_are_written_as_openai_whisper_does(form: str) -> None:
    utils = pytest.importorskip("whisper.utils")
    transcript = said("And so, my fellow Americans:", "Ask not --> what", "Your country 'can' do", start=3600.1234)
    writer = {"srt": utils.WriteSRT, "vtt": utils.WriteVTT, "tsv": utils.WriteTSV}[form]("")
    segments = [{"start": each.start, "end": each.end, "text": f" {each.text}"} for each in transcript.segments]
    file = io.StringIO()
    writer.write_result({"segments": segments}, file)
    # It shortens no arrow in tables, and in WebVTT leaves characters as they are that have a meaning there.
    expected = file.getvalue()
    assert write(form, transcript) == (expected.replace("->\x20what", "-&gt; what") if form == "vtt" else expected)


@pytest.mark.parametrize("form", DOCUMENTS)
def test_a_single_input_is_printed_as_a_document(form: str) -> None:
    written: list[str] = []
    OutputStream(WRITERS[form], single=True, write=written.append).put(0, "a.wav", said("Hello."))
    assert "".join(written) == write(form, said("Hello."))


@pytest.mark.parametrize("form", DOCUMENTS)
def test_several_inputs_are_not_printed_one_document_after_the_other(form: str) -> None:
    with pytest.raises(ConfigError, match="--output-dir"):
        OutputStream(WRITERS[form], single=False, write=print)


def test_the_command_refuses_that_before_a_model_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "open_engine", lambda config: pytest.fail("a model was loaded"))
    for name in ("a.wav", "b.wav"):
        (tmp_path / name).touch()
    assert main(["transcribe", str(tmp_path / "a.wav"), str(tmp_path / "b.wav"), "--format", "srt"]) == 2
    assert "--format: this format keeps every input in a file of its own" in capsys.readouterr().err
