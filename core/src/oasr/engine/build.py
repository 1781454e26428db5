"""From a configuration to a loaded model."""

from dataclasses import dataclass
from math import prod

import psutil
import torch

from oasr.checkpoint.hub import locate
from oasr.checkpoint.load import load, outline
from oasr.checkpoint.sniff import open_checkpoint
from oasr.config import EngineConfig, check_needs
from oasr.engine.device import choose_device
from oasr.engine.encoding import AudioEncoder
from oasr.engine.frames import FrameRunner
from oasr.engine.runner import Runner
from oasr.engine.stream_runner import StreamRunner
from oasr.errors import ConfigError, DeviceError, RequestError
from oasr.interfaces.architecture import CacheLayout
from oasr.interfaces.batching import BatchingPolicy
from oasr.interfaces.decoder import Decoder, FrameSynchronousDecoder, LabelSynchronousDecoder, Rescorer
from oasr.interfaces.detector import SpeechDetector
from oasr.interfaces.format import Checkpoint
from oasr.interfaces.tokenizer import Tokenizer
from oasr.nn import to_int8
from oasr.plugin import Kind
from oasr.registry import Registry

_MOST_ROWS_CPU = 8
_MOST_ROWS_GPU = 128
_CACHE_SHARE = 0.5  # of the free memory; the rest is for activations


@dataclass(frozen=True)
class Parts:
    """The components of one engine, chosen and checked, and how to run them."""

    checkpoint: Checkpoint
    registry: Registry
    device: torch.device
    dtype: torch.dtype
    decoder: LabelSynchronousDecoder | FrameSynchronousDecoder
    rescorer: Rescorer | None
    """What looks at the decoder's hypotheses again."""
    policy: BatchingPolicy
    tokenizer: Tokenizer
    detector: SpeechDetector | None
    """None takes all audio for speech."""
    streams: int
    """Most live streams at once."""

    def runner(self, dtype: torch.dtype, rows: int | None) -> Runner | FrameRunner:
        """Load the weights in a number format; `rows` None takes what the memory holds."""
        model = load(self.checkpoint, self.registry, torch.float32 if dtype == torch.int8 else dtype, self.device)
        if dtype == torch.int8:
            to_int8(model)
        facts = model.facts
        frontend = self.registry.create(Kind.FRONTEND, facts.frontend, facts.frontend_options).to(self.device)
        encoder = AudioEncoder(model, frontend)
        if isinstance(self.decoder, FrameSynchronousDecoder):
            most = _MOST_ROWS_GPU if self.device.type == "cuda" else _MOST_ROWS_CPU
            return FrameRunner(encoder, self.tokenizer, self.decoder, self.rescorer, rows or most)
        rows = rows or _rows_that_fit(model.head("autoregressive").cache_layout, model.device, model.dtype)
        try:
            return Runner(encoder, self.tokenizer, self.decoder, rows)
        except RuntimeError as error:
            raise DeviceError(
                f"{self.device} has no memory for the caches of {rows} rows; lower batching.max_rows"
            ) from error

    def stream_runner(self, runner: Runner | FrameRunner, chunk: int, left_context: int | None) -> StreamRunner:
        """Live streams read with the weights of another runner."""
        if not isinstance(runner, FrameRunner):
            raise RequestError("This model writes text only once it has heard all: it cannot read live audio")
        streaming = runner.encoder.model.streaming(chunk, left_context)
        try:
            return StreamRunner(runner, streaming, self.streams)
        except RuntimeError as error:
            raise DeviceError(
                f"{self.device} has no memory for the states of {self.streams} live streams; lower "
                "streaming.max_streams or limit left_context"
            ) from error


def assemble(config: EngineConfig, registry: Registry) -> Parts:
    """Find the model and check what goes with it, before any weight is read.

    Raises an `OasrError` for whatever is missing or does not fit together.
    """
    checkpoint = open_checkpoint(locate(config.model, registry), registry, config.format)
    facts = outline(checkpoint, registry).facts
    config = config.with_defaults({"decoder": facts.default_decoder}, registry)
    decoder = config.selected("decoder")
    check_needs(registry.spec(Kind.DECODER, decoder.name), registry.spec(Kind.ARCHITECTURE, checkpoint.architecture))
    search, rescorer = _search(registry.construct(Kind.DECODER, decoder.name, decoder.options), decoder.name, registry)
    batching, detector = config.selected("batching"), config.selected("detector")
    device, dtype = choose_device(config.device, config.dtype)
    return Parts(
        checkpoint=checkpoint,
        registry=registry,
        device=device,
        dtype=dtype,
        decoder=search,
        rescorer=rescorer,
        policy=registry.construct(Kind.BATCHING, batching.name, batching.options),
        tokenizer=registry.construct(Kind.TOKENIZER, facts.tokenizer, checkpoint.files),
        detector=None
        if detector.name == "none"
        else registry.construct(Kind.DETECTOR, detector.name, detector.options),
        streams=config.streaming.max_streams,
    )


def _search(
    decoder: Decoder, name: str, registry: Registry
) -> tuple[LabelSynchronousDecoder | FrameSynchronousDecoder, Rescorer | None]:
    """The search, and what looks at its hypotheses again when that is what was chosen."""
    if isinstance(decoder, Rescorer):
        first = registry.create(Kind.DECODER, decoder.search, {})
        if isinstance(first, FrameSynchronousDecoder):
            return first, decoder
        raise ConfigError(f'Decoder "{name}" rescores "{decoder.search}", which does not read frames in order')
    if not isinstance(decoder, LabelSynchronousDecoder | FrameSynchronousDecoder):
        raise ConfigError(
            f'Decoder "{name}" is a {type(decoder).__name__} of a family this engine cannot run; it runs those of '
            "oasr.interfaces.decoder"
        )
    return decoder, None


def _rows_that_fit(layout: CacheLayout, device: torch.device, dtype: torch.dtype) -> int:
    """Rows whose caches take no more than a share of the free memory."""
    paged = layout.paged
    numbers = 2 * paged.layers * paged.heads * paged.head_size * paged.max_tokens
    numbers += sum(prod(shape) for shape in layout.slots.values())
    if device.type == "cuda":
        free, most = torch.cuda.mem_get_info(device)[0], _MOST_ROWS_GPU
    else:
        free, most = psutil.virtual_memory().available, _MOST_ROWS_CPU
    return max(1, min(most, int(free * _CACHE_SHARE / (numbers * dtype.itemsize))))
