"""`oasr stream`: text of live audio while it is spoken, from a microphone or a file played as if it were live.

Each segment becomes a line of standard output once it is over. What is being spoken is shown on a terminal, on standard
error.
"""

import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from oasr.cli.config import Sets
from oasr.cli.progress import print_line
from oasr.cli.transcribe import open_engine
from oasr.config import AudioConfig, load_config
from oasr.errors import ConfigError
from oasr.output.printable import printable
from oasr.output.sinks import write_standard_output
from oasr.types import DecodingOptions, LiveOptions, StreamEvent

if TYPE_CHECKING:
    import torch

_PUSH_SECONDS = 0.1
_CLEAR_LINE = "\r\x1b[K"
_DEFAULTS = LiveOptions()


def command(
    source: Annotated[
        str | None, typer.Argument(metavar="FILE", help="File to play as if it were live.", show_default=False)
    ] = None,
    mic: Annotated[bool, typer.Option("--mic", help="Listen to the default microphone until Ctrl-C.")] = False,
    fast: Annotated[bool, typer.Option("--fast", help="Do not wait for the time the audio takes.")] = False,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Folder, file, Hub id or packaged model; see oasr models.")
    ] = None,
    chunk: Annotated[
        float | None, typer.Option(help="Seconds of audio read at once; the model's own unless given.", min=0.0)
    ] = None,
    left_context: Annotated[
        float | None, typer.Option(help="Seconds the model looks back, or inf; its own unless given.", min=0.0)
    ] = None,
    endpoint_silence: Annotated[
        float, typer.Option(help="Seconds of silence that end a segment; inf for none.", min=0.0)
    ] = _DEFAULTS.endpoint_silence,
    longest_segment: Annotated[
        float, typer.Option(help="Seconds after which a segment ends in any case.", min=0.0)
    ] = _DEFAULTS.longest_segment,
    language: Annotated[str | None, typer.Option(help="Language spoken, where the model has a choice.")] = None,
    config: Annotated[str | None, typer.Option(help="Configuration file; see oasr config.")] = None,
    sets: Sets = [],  # noqa: B006  typer copies it
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:N.")] = None,
    dtype: Annotated[str | None, typer.Option(help="auto, float32, float16, bfloat16 or, on a CPU, int8.")] = None,
    decoder: Annotated[str | None, typer.Option(help="Search; see oasr plugins --kind decoder.")] = None,
) -> None:
    """Write down live audio while it is spoken."""
    if (source is None) == (not mic):
        raise ConfigError("oasr stream takes one source: a FILE, or --mic")
    if mic and fast:
        raise ConfigError("--fast is for a FILE: nobody speaks faster into a microphone")
    live = LiveOptions(chunk, left_context, endpoint_silence, longest_segment)
    flags = {"model": model, "device": device, "dtype": dtype, "decoder": decoder}
    engine_config = load_config(config, sets, flags).config
    if source is None:
        _import_sounddevice()
    else:
        _check(source, engine_config.audio)
    with open_engine(engine_config) as engine:
        rate = engine.facts.sample_rate
        with engine.stream(DecodingOptions(language=language), live) as session, _Display() as display:
            pushes = _heard(rate) if source is None else _played(source, rate, engine_config.audio, fast=fast)
            for samples in pushes:
                display.show(session.push(samples))
            display.show(session.finish())
        session.transcript  # noqa: B018  raises what the stream failed of


class _Display:
    """Segments as lines of standard output; on a terminal, what is being spoken on standard error."""

    def __init__(self) -> None:
        self._terminal = sys.stderr is not None and sys.stderr.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._draw("")  # an error goes on a line of its own

    def show(self, events: Iterable[StreamEvent]) -> None:
        for event in events:
            if event.segment is None:
                self._draw(printable(event.text))
            else:
                self._draw("")
                write_standard_output(printable(event.segment.text) + "\n")

    def _draw(self, text: str) -> None:
        if self._terminal:
            columns = shutil.get_terminal_size().columns - 1  # a line that wraps could not be cleared
            sys.stderr.write(_CLEAR_LINE + text[-columns:])
            sys.stderr.flush()


def _check(source: str, limits: AudioConfig) -> None:
    """Raise what is wrong with the start of a file, sooner than a model is loaded."""
    from oasr.audio import open_audio

    if not Path(source).is_fifo():  # which can be read only once
        open_audio(source, target_rate=16_000, limits=limits).close()


def _played(source: str, rate: int, limits: AudioConfig, *, fast: bool) -> "Iterator[torch.Tensor]":
    """A file in small pieces, each no sooner than it would have been spoken."""
    import torch

    from oasr.audio import open_audio

    step, played = round(_PUSH_SECONDS * rate), 0
    with closing(open_audio(source, target_rate=rate, limits=limits)) as audio:
        started = time.monotonic()
        while not audio.ended:
            for piece in torch.split(audio.read(step), step):
                played += len(piece)
                if not fast:
                    time.sleep(max(0.0, started + played / rate - time.monotonic()))
                yield piece
        for note in audio.findings.notes:
            print_line(f"{source}: {note}")


def _import_sounddevice() -> Any:
    try:
        import sounddevice
    except (ImportError, OSError) as error:  # OSError: it is there, and PortAudio is not
        raise ConfigError(f"--mic needs sounddevice and PortAudio ({error}): pip install 'oasr-core[mic]'") from error
    return sounddevice


def _heard(rate: int) -> "Iterator[torch.Tensor]":
    """What the default microphone hears, until an interrupt."""
    import torch

    sounddevice = _import_sounddevice()
    lost = False
    with _until_interrupt() as interrupted:
        try:
            with sounddevice.InputStream(samplerate=rate, channels=1, dtype="float32") as microphone:
                while not interrupted.is_set():
                    samples, overflowed = microphone.read(round(_PUSH_SECONDS * rate))
                    if overflowed and not lost:
                        lost = True
                        print_line("some of what was spoken is lost: this machine reads it too slowly")
                    yield torch.from_numpy(samples[:, 0].copy())
        except sounddevice.PortAudioError as error:
            raise ConfigError(f"the microphone cannot be used: {error}") from error


@contextmanager
def _until_interrupt() -> Iterator[threading.Event]:
    """Set by Ctrl-C, which ends what is said and not the command, whatever is being computed; a second one ends all."""
    interrupted = threading.Event()
    before = signal.getsignal(signal.SIGINT)

    def interrupt(*_: object) -> None:
        interrupted.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)
