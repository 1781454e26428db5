"""Results on standard output: in input order, and what has ended is never lost."""

import itertools

import pytest

from oasr.errors import OasrError
from oasr.output.formats import WRITERS
from oasr.output.sinks import OutputStream, write_standard_output
from oasr.types import Transcript


def said(text: str) -> Transcript:
    return Transcript(text=text, segments=(), language="en", duration=1.0)


def stream(form: str = "txt", single: bool = False) -> tuple[OutputStream, list[str]]:
    written: list[str] = []
    return OutputStream(WRITERS[form], single=single, write=written.append), written


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_results_come_in_input_order_whatever_order_they_end_in(order: tuple[int, ...]) -> None:
    out, written = stream()
    for index in order:
        out.put(index, f"{index}.wav", said(f"text {index}"))
    assert written == ["0.wav: text 0\n", "1.wav: text 1\n", "2.wav: text 2\n"]


def test_a_result_is_written_as_soon_as_those_before_it_are() -> None:
    out, written = stream()
    out.put(1, "1.wav", said("one"))
    assert written == []
    out.put(0, "0.wav", said("zero"))
    assert "".join(written) == "0.wav: zero\n1.wav: one\n"


def test_a_failure_holds_nobody_up() -> None:
    out, written = stream()
    out.fail(0, "0.wav", OasrError("wrong"))
    out.put(1, "1.wav", said("one"))
    assert "".join(written) == "1.wav: one\n"


def test_a_failure_has_its_line_in_json() -> None:
    out, written = stream("json")
    out.fail(0, "0.wav", OasrError("wrong"))
    assert written == ['{"source": "0.wav", "error": "wrong"}\n']


def test_a_single_input_stands_alone() -> None:
    out, written = stream(single=True)
    out.put(0, "0.wav", said("zero"))
    assert written == ["zero\n"]


def test_breaking_off_writes_what_has_ended() -> None:
    out, written = stream()
    out.put(3, "3.wav", said("three"))
    out.put(1, "1.wav", said("one"))
    out.finish()
    assert written == ["1.wav: one\n", "3.wav: three\n"]


def test_standard_output_is_utf_8_whatever_the_locale(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write_standard_output("世界 \udce9\n")
    assert capfdbinary.readouterr().out == "世界 ".encode() + b"\\udce9\n"
