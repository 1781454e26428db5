"""`oasr stream`: text of live audio while it is spoken, from a microphone or a file played as if it were live.

Each segment becomes a line of standard output once it is over. What is being spoken is shown on a terminal, on standard
error.
"""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from oasr.cli.config import Sets
from oasr.cli.transcribe import open_engine
from oasr.config import load_config
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
    dtype: Annotated[str | None, typer.Option(help="auto, float32, float16 or bfloat16.")] = None,
    decoder: Annotated[str | None, typer.Option(help="Search; see oasr plugins --kind decoder.")] = None,
) -> None:
    """Write down live audio while it is spoken."""
    if (source is None) == (not mic):
        raise ConfigError("oasr stream takes one source: a FILE, or --mic")
    live = LiveOptions(chunk, left_context, endpoint_silence, longest_segment)
    flags = {"model": model, "device": device, "dtype": dtype, "decoder": decoder}
    engine_config = load_config(config, sets, flags).config
    with open_engine(engine_config) as engine:
        rate = engine.facts.sample_rate
        with engine.stream(DecodingOptions(language=language), live) as session:
            pushes = _microphone(rate) if source is None else _played(source, rate, fast=fast)
            for samples in pushes:
                _show(session.push(samples))
            _show(session.finish())


def _show(events: Iterable[StreamEvent]) -> None:
    for event in events:
        terminal = sys.stderr is not None and sys.stderr.isatty()
        if event.segment is not None:
            if terminal:
                sys.stderr.write(_CLEAR_LINE)
            write_standard_output(printable(event.segment.text) + "\n")
        elif terminal:
            sys.stderr.write(_CLEAR_LINE + printable(event.text))
            sys.stderr.flush()


def _played(source: str, rate: int, *, fast: bool) -> "Iterator[torch.Tensor]":
    """A file in small pieces, each no sooner than it would have been spoken."""
    from oasr.audio import read_audio

    samples = read_audio(source, target_rate=rate).samples
    step = round(_PUSH_SECONDS * rate)
    started = time.monotonic()
    for start in range(0, len(samples), step):
        if not fast:
            time.sleep(max(0.0, started + min(start + step, len(samples)) / rate - time.monotonic()))
        yield samples[start : start + step]


def _microphone(rate: int) -> "Iterator[torch.Tensor]":
    """What the default microphone hears, until an interrupt."""
    import torch

    try:
        import sounddevice
    except (ImportError, OSError) as error:  # OSError: it is there, and PortAudio is not
        raise ConfigError(f"--mic needs sounddevice and PortAudio ({error}): pip install 'oasr-core[mic]'") from error
    try:
        with sounddevice.InputStream(samplerate=rate, channels=1, dtype="float32") as microphone:
            while True:
                samples, _ = microphone.read(round(_PUSH_SECONDS * rate))
                yield torch.from_numpy(samples[:, 0].copy())
    except sounddevice.PortAudioError as error:
        raise ConfigError(f"the microphone cannot be used: {error}") from error
    except KeyboardInterrupt:  # the end of what was said, not of the command
        return
