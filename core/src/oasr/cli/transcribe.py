"""`oasr transcribe` and `oasr translate`: audio in, text out, for one input or a hundred thousand.

Standard output carries results and nothing else. Whatever the command line alone can tell to be wrong is told before
the model loads, and a bad input never stops the others.
"""

from collections.abc import Generator, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer
from typer.core import TyperCommand

from oasr.cli.config import Sets
from oasr.cli.inputs import Input, gather, is_single
from oasr.cli.progress import BatchProgress
from oasr.config import EngineConfig, load_config
from oasr.errors import ConfigError, OasrError
from oasr.output.formats import WRITERS
from oasr.output.printable import printable
from oasr.output.sinks import OutputError, OutputFolder, OutputStream, ResultSink, write_standard_output
from oasr.plugin import Kind
from oasr.registry import default_registry
from oasr.types import DecodingOptions, Outcome

if TYPE_CHECKING:
    from oasr.audio import RawAudio
    from oasr.engine import ASREngine

_ENCODINGS = ("alaw", "mulaw", "s16le")  # of oasr.audio.RawAudio, whose import takes torch

_DEFAULTS = DecodingOptions()

_SETTINGS = {"token_normalize_func": lambda word: word.replace("_", "-")}

app = typer.Typer(add_completion=False)
translate_app = typer.Typer(add_completion=False)


class _Command(TyperCommand):
    """Takes switches also as openai-whisper writes them: `--word_timestamps True`, `--word_timestamps False`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        flags = [each for each in self.params if getattr(each, "is_flag", False) and not each.secondary_opts]
        switches = {name for each in flags for name in each.opts}
        left: list[str] = []
        for word in args:
            if word in ("True", "False") and left and left[-1].replace("_", "-") in switches:
                left = left if word == "True" else left[:-1]
            else:
                left.append(word)
        return super().parse_args(ctx, left)


class BrokenOffError(OasrError):
    """Something stopped the batch after some inputs had ended."""


def open_engine(config: EngineConfig) -> "ASREngine":
    """Load the model. The import of torch waits for this, so that mistakes are told at once."""
    from oasr.engine import ASREngine

    return ASREngine(config)


@app.command(cls=_Command, context_settings=_SETTINGS)
@translate_app.command(
    cls=_Command,
    # The same command, of whose options one has another default.
    context_settings=_SETTINGS | {"default_map": {"task": "translate"}},
    help="Write down in English what is said in audio and video files; the options are those of oasr transcribe.",
)
def transcribe(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT",
            help="File, folder (searched for audio and video, hidden files left out), quoted pattern such as "
            "'talks/**/*.mp3', or - for standard input.",
            show_default=False,
        ),
    ],
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Folder, file, Hub id or packaged model; see oasr models.")
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            "--output-format",
            "-f",
            metavar="|".join(WRITERS),
            help="Format of results; into a folder also several, as txt,srt. Only txt and json print several inputs.",
        ),
    ] = "txt",
    output_dir: Annotated[
        Path | None,
        typer.Option("--output-dir", "-o", help="Write files here, a.wav as a.wav.txt, in subfolders like the inputs."),
    ] = None,
    skip_existing: Annotated[
        bool, typer.Option("--skip-existing", help="Leave out inputs whose files are in the output folder.")
    ] = False,
    encoding: Annotated[
        str | None,
        typer.Option(metavar="|".join(_ENCODINGS), help="The inputs are samples without a header; needs --rate."),
    ] = None,
    rate: Annotated[
        int | None, typer.Option(min=1, max=768_000, help="Sample rate of inputs without a header, such as 8000.")
    ] = None,
    language: Annotated[
        str | None, typer.Option("--language", "-l", help="Language spoken, such as en; detected if absent.")
    ] = None,
    languages: Annotated[str | None, typer.Option(help="Detect among these only, such as en,de.")] = None,
    task: Annotated[str, typer.Option(help="transcribe, or translate into English.")] = "transcribe",
    prompt: Annotated[
        str | None,
        typer.Option(
            "--prompt", "--initial-prompt", help="Text taken as said before the audio, for spelling and style."
        ),
    ] = None,
    carry_prompt: Annotated[
        bool,
        typer.Option("--carry-prompt", "--carry-initial-prompt", help="Put the prompt before every window of audio."),
    ] = False,
    prefix: Annotated[str | None, typer.Option(help="Text that the transcript begins with.")] = None,
    hotwords: Annotated[
        str | None, typer.Option(help="Words and phrases to expect throughout, such as 'Kaldi,Saint-Malo'.")
    ] = None,
    beam: Annotated[
        int, typer.Option("--beam", "--beam-size", help="Hypotheses followed at temperature 0.")
    ] = _DEFAULTS.beam,
    patience: Annotated[
        float, typer.Option(help="A beam search ends once so many times the beam have ended.")
    ] = _DEFAULTS.patience,
    length_penalty: Annotated[
        float | None, typer.Option(help="Alpha of Wu et al., 2016; mean probability if absent.")
    ] = None,
    best_of: Annotated[
        int, typer.Option(help="Texts drawn above temperature 0, of which the best is taken.")
    ] = _DEFAULTS.best_of,
    n_best: Annotated[
        int, typer.Option(help="Hypotheses of each window of audio that --format json tells.")
    ] = _DEFAULTS.n_best,
    temperature: Annotated[float, typer.Option(help="0 takes the likeliest token; above, tokens are drawn.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    max_new_tokens: Annotated[int | None, typer.Option(help="Most tokens for each window of audio.")] = None,
    timestamps: Annotated[
        bool | None,
        typer.Option("--timestamps/--no-timestamps", help="Let the model say when segments begin and end, if it can."),
    ] = None,
    word_timestamps: Annotated[
        bool, typer.Option("--word-timestamps", help="Say when each word begins and ends.")
    ] = False,
    condition_on_previous: Annotated[
        bool,
        typer.Option(
            "--condition-on-previous",
            "--condition-on-previous-text",
            help="Read each window of audio with the text before it in mind.",
        ),
    ] = False,
    fallback: Annotated[
        str | None, typer.Option(help="Temperatures at which bad text is read again, such as 0.2,0.4; '' for none.")
    ] = None,
    compression_ratio_threshold: Annotated[
        float, typer.Option(help="Text that compresses better than this is repetitive, and bad.")
    ] = _DEFAULTS.most_compression,
    logprob_threshold: Annotated[
        float,
        typer.Option(
            "--logprob-threshold",
            "--logprob-thold",
            help="Text of a lower mean log-probability is improbable, and bad.",
        ),
    ] = _DEFAULTS.least_logprob,
    no_speech_threshold: Annotated[
        float,
        typer.Option(
            "--no-speech-threshold",
            "--no-speech-thold",
            help="Improbable text, more likely than this without speech, is silence.",
        ),
    ] = _DEFAULTS.most_silence,
    suppress_tokens: Annotated[
        str | None, typer.Option(help="Token ids never to produce, such as 1,2; '' for none. Default: the model's own.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Configuration file; see oasr config.")] = None,
    sets: Sets = [],  # noqa: B006  typer copies it
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:N.")] = None,
    dtype: Annotated[str | None, typer.Option(help="auto, float32, float16, bfloat16 or, on a CPU, int8.")] = None,
    decoder: Annotated[str | None, typer.Option(help="The search; see oasr plugins --kind decoder.")] = None,
    detector: Annotated[
        str | None, typer.Option(help="What finds speech, to read it as one batch; see oasr plugins --kind detector.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only errors on standard error.")] = False,
) -> None:
    """Write down what is said in audio and video files.

    Exit code 1 says that some inputs failed and the rest are written; 2, that nothing was done.
    """
    formats = _formats(form, into_folder=output_dir is not None)
    if skip_existing and output_dir is None:
        raise ConfigError("--skip-existing needs --output-dir, which says where to look for what exists")
    if (encoding is None) != (rate is None):
        raise ConfigError("--encoding and --rate go together: samples without a header tell neither")
    if encoding not in (None, *_ENCODINGS):
        raise ConfigError(f'--encoding: there is no encoding "{encoding}"; encodings are {", ".join(_ENCODINGS)}')
    raw = (encoding, rate) if encoding and rate else None
    options = DecodingOptions(
        language=language,
        languages=tuple(_listed(languages or "")),
        task=task,  # type: ignore[arg-type]  # which DecodingOptions checks
        prompt=prompt,
        carry_prompt=carry_prompt,
        prefix=prefix,
        hotwords=tuple(_listed(hotwords or "")),
        beam=beam,
        patience=patience,
        length_penalty=length_penalty,
        best_of=best_of,
        n_best=n_best,
        temperature=temperature,
        seed=seed,
        max_new_tokens=max_new_tokens,
        timestamps=timestamps,
        word_timestamps=word_timestamps,
        condition_on_previous=condition_on_previous,
        fallback=_DEFAULTS.fallback if fallback is None else _temperatures(fallback),
        most_compression=compression_ratio_threshold,
        least_logprob=logprob_threshold,
        most_silence=no_speech_threshold,
        suppress_tokens=None if suppress_tokens is None else _token_ids(suppress_tokens),
    )
    flags = {"model": model, "device": device, "dtype": dtype, "decoder": decoder, "detector": detector}
    engine_config = load_config(config, sets, flags).config
    batch = dict(enumerate(gather(inputs, engine_config.audio.max_bytes)))
    if all(each.error for each in batch.values()):
        raise ConfigError("\noasr: ".join(printable(str(each.error)) for each in batch.values()))
    with BatchProgress(quiet=quiet) as progress:
        if output_dir is None:
            write = progress.beside_bar(write_standard_output)
            sink: ResultSink = OutputStream(WRITERS[formats[0]], single=is_single(inputs), write=write)
        else:
            sink = folder = OutputFolder(output_dir, formats, [each.relative for each in batch.values()])
            if skip_existing:
                batch = _without_existing(batch, folder, progress)
            if batch:
                folder.prepare()
        progress.expect(len(batch))
        with closing(_outcomes(batch, engine_config, options, progress, raw)) as outcomes:
            failures = _deliver(outcomes, sink, progress)
        progress.finish()
    if failures:
        raise typer.Exit(1)


def _without_existing(batch: dict[int, Input], folder: OutputFolder, progress: BatchProgress) -> dict[int, Input]:
    left = {index: each for index, each in batch.items() if each.error or not folder.holds(index)}
    if len(left) < len(batch):
        progress.note(f"skipping {len(batch) - len(left)} of {len(batch)} inputs, whose output exists")
    return left


def _outcomes(
    batch: Mapping[int, Input],
    config: EngineConfig,
    options: DecodingOptions,
    progress: BatchProgress,
    raw: tuple[str, int] | None,
) -> Generator[tuple[int, Outcome]]:
    """How each input ended, by its number. The model is loaded only when there is one to read.

    `raw` is encoding and rate of inputs without a header.
    Raises `OasrError` before the first outcome when the engine cannot be had or refuses the options.
    """
    bad = [(index, Outcome(each.source, None, each.error)) for index, each in batch.items() if each.error]
    good = [index for index, each in batch.items() if not each.error]
    if not good:
        yield from bad
        return
    packaged = default_registry().names(Kind.MODEL)
    if config.model is None and len(packaged) == 1:
        progress.note(f"using the packaged model {packaged[0]}; --model names another")
    with open_engine(config) as engine:
        progress.start()
        contents = [batch[index].content for index in good]
        ended = engine.transcribe_each(_declared(contents, *raw) if raw else contents, options)
        yield from bad
        for position, outcome in ended:
            index = good[position]
            yield index, replace(outcome, source=batch[index].source)


def _declared(contents: Iterable[str | BinaryIO], encoding: str, rate: int) -> "list[RawAudio]":
    from oasr.audio import RawAudio

    return [RawAudio(content, encoding, rate) for content in contents]


def _deliver(outcomes: Iterable[tuple[int, Outcome]], sink: ResultSink, progress: BatchProgress) -> int:
    """Pass every outcome on, and what has ended also when the batch breaks off. Returns how many failed."""
    failures = ended = 0
    try:
        for index, outcome in outcomes:
            ended += 1
            error = _written(index, outcome, sink)
            if error is not None:
                failures += 1
                sink.fail(index, outcome.source, error)
                progress.error(str(error) if outcome.source in str(error) else f"{outcome.source}: {error}")
            elif outcome.transcript is not None:
                for note in outcome.transcript.notes:
                    progress.note(f"{outcome.source}: {note}")
            progress.advance(outcome.transcript.duration if outcome.transcript and not error else None)
    except OasrError as error:
        if not ended:
            raise
        raise BrokenOffError(str(error)) from error
    finally:
        sink.finish()
    return failures


def _written(index: int, outcome: Outcome, sink: ResultSink) -> OasrError | None:
    """Write the transcript; the error of the input or of writing it."""
    if outcome.transcript is None:
        return outcome.error
    try:
        sink.put(index, outcome.source, outcome.transcript)
    except OutputError as error:
        return error
    return None


def _formats(text: str, *, into_folder: bool) -> list[str]:
    words = list(dict.fromkeys(_listed(text)))
    for word in words:
        if word not in WRITERS:
            raise ConfigError(f'--format: there is no format "{word}"; formats are {", ".join(WRITERS)}')
    if not words or (len(words) > 1 and not into_folder):
        raise ConfigError(f"--format {text}: name one format, or several with --output-dir")
    return words


def _token_ids(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in _listed(text))
    except ValueError:
        raise ConfigError(f"--suppress-tokens {text}: write token ids such as 1,2") from None


def _temperatures(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(word) for word in _listed(text))
    except ValueError:
        raise ConfigError(f"--fallback {text}: write temperatures such as 0.2,0.4") from None


def _listed(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
