"""One audio input on its way through the engine: cut into windows, and joined again."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from os import PathLike

from oasr.audio import Audio, RawAudio
from oasr.engine.window import Decoded, Window
from oasr.interfaces.architecture import ModelFacts
from oasr.interfaces.tokenizer import Tokenizer
from oasr.types import DecodingOptions, Outcome, Segment, Transcript

_SHORTEST_SECONDS = 0.1  # of a rest of audio after the last whole window; models invent words in less
_ids = count(1)
_keys = count(1)


@dataclass(eq=False, slots=True)
class Request:
    """Windows of one input, and what has been read in them."""

    id: int
    source: str
    options: DecodingOptions
    duration: float
    truncated: bool
    notes: tuple[str, ...]
    window_seconds: float
    windows: list[Window]
    waiter: "Future[Outcome] | None"
    """Who gets the outcome; None leaves it to `step`."""
    decoded: dict[Window, Decoded] = field(default_factory=dict)
    scheduled: int = 0
    """Windows given to the scheduler so far, always the first ones."""

    @property
    def complete(self) -> bool:
        return len(self.decoded) == len(self.windows)

    @property
    def language(self) -> str | None:
        """The language asked for, or named by the model in the first window."""
        return self.windows[0].language


def new_request(
    audio: Audio,
    options: DecodingOptions,
    facts: ModelFacts,
    frames: Callable[[int], int],
    waiter: "Future[Outcome] | None",
) -> Request:
    """Cut an input into consecutive windows; `frames` says how many feature frames so many samples cost."""
    pieces = list(audio.samples.split(round(facts.max_input_seconds * facts.sample_rate)))  # type: ignore[no-untyped-call]
    notes = audio.notes
    if len(pieces) > 1 and len(pieces[-1]) < _SHORTEST_SECONDS * facts.sample_rate:
        unread = len(pieces.pop()) / facts.sample_rate
        notes = (*notes, f"the last {unread:.4f} s are too short to hold a word and were not read")
    language = options.language or (facts.languages[0] if len(facts.languages) == 1 else None)
    return Request(
        id=next(_ids),
        source=audio.source,
        options=options,
        duration=audio.duration,
        truncated=audio.truncated,
        notes=notes,
        window_seconds=facts.max_input_seconds,
        windows=[Window(next(_keys), piece, frames(len(piece)), options, language) for piece in pieces],
        waiter=waiter,
    )


def transcript(request: Request, facts: ModelFacts, tokenizer: Tokenizer) -> Transcript:
    """Join what was read in the windows."""
    texts, segments = [], []
    notes = list(request.notes)
    for index, window in enumerate(request.windows):
        decoded = request.decoded[window]
        ids = tuple(token for token in decoded.tokens if token < facts.text_tokens)
        text = tokenizer.decode(ids)
        texts.append(text)
        notes += [note for note in decoded.notes if note not in notes]
        if text.strip():
            start = index * request.window_seconds
            end = min(start + request.window_seconds, request.duration)
            segments.append(Segment(start, end, text.strip(), ids, decoded.avg_logprob))
    return Transcript(
        text="".join(texts).strip(),
        segments=tuple(segments),
        language=request.language,
        duration=request.duration,
        language_probability=request.windows[0].language_probability,
        truncated=request.truncated,
        notes=tuple(notes),
    )


def source_name(source: object) -> str:
    """How an input is named that could not be read."""
    if isinstance(source, Audio):
        return source.source
    if isinstance(source, RawAudio):
        source = source.content
    return str(source) if isinstance(source, str | PathLike) else f"<{type(source).__name__}>"
