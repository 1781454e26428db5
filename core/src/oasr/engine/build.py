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
from oasr.engine.runner import Runner
from oasr.errors import ConfigError, DeviceError
from oasr.interfaces.architecture import CacheLayout
from oasr.interfaces.batching import BatchingPolicy
from oasr.interfaces.decoder import Decoder, LabelSynchronousDecoder
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
    decoder: LabelSynchronousDecoder
    policy: BatchingPolicy
    tokenizer: Tokenizer
    detector: SpeechDetector | None
    """None takes all audio for speech."""

    def runner(self, dtype: torch.dtype, rows: int | None) -> Runner:
        """Load the weights in a number format; `rows` None takes what the memory holds."""
        model = load(self.checkpoint, self.registry, torch.float32 if dtype == torch.int8 else dtype, self.device)
        if dtype == torch.int8:
            to_int8(model)
        facts = model.facts
        frontend = self.registry.create(Kind.FRONTEND, facts.frontend, facts.frontend_options).to(self.device)
        rows = rows or _rows_that_fit(model.head("autoregressive").cache_layout, model.device, model.dtype)
        try:
            return Runner(model, frontend, self.tokenizer, self.decoder, rows)
        except RuntimeError as error:
            raise DeviceError(
                f"{self.device} has no memory for the caches of {rows} rows; lower batching.max_rows"
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
    decoder_class: type[Decoder] = registry.load(Kind.DECODER, decoder.name)
    if not issubclass(decoder_class, LabelSynchronousDecoder):
        raise ConfigError(
            f'Decoder "{decoder.name}" is a {decoder_class.__name__} of a family this engine cannot run; '
            "it runs subclasses of oasr.interfaces.decoder.LabelSynchronousDecoder"
        )
    batching, detector = config.selected("batching"), config.selected("detector")
    device, dtype = choose_device(config.device, config.dtype)
    return Parts(
        checkpoint=checkpoint,
        registry=registry,
        device=device,
        dtype=dtype,
        decoder=registry.construct(Kind.DECODER, decoder.name, decoder.options),
        policy=registry.construct(Kind.BATCHING, batching.name, batching.options),
        tokenizer=registry.construct(Kind.TOKENIZER, facts.tokenizer, checkpoint.files),
        detector=None
        if detector.name == "none"
        else registry.construct(Kind.DETECTOR, detector.name, detector.options),
    )


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
