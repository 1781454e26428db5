"""Zipformer (Yao et al., 2023): an encoder at several frame rates under a CTC head.

The numerics follow icefall, egs/librispeech/ASR/zipformer. Unlike there, a row of a padded batch is what it is alone:
what lies behind its length is hidden from the convolutions, the attention and the means over groups of frames.
"""

import torch
import torch.nn.functional as F

from oasr.errors import RequestError
from oasr.interfaces.architecture import Architecture, EncoderOutput, ModelFacts, WeightRules
from oasr.interfaces.format import Checkpoint
from oasr.interfaces.frontend import FeatureBatch
from oasr.interfaces.heads import CTCHead
from oasr.interfaces.streaming import StreamingFacts
from oasr.nn import Linear
from oasr_zipformer.config import ZipformerConfig
from oasr_zipformer.encoder import Encoder
from oasr_zipformer.streaming import ZipformerStreams
from oasr_zipformer.subsampling import FEWEST_FRAMES, Subsampling, subsampled
from oasr_zipformer.transducer import Joiner, Prediction
from oasr_zipformer.weights import read_config, rules

_SAMPLE_RATE = 16_000
_FRAME_SECONDS = 0.02  # of the front end
_MAX_INPUT_SECONDS = 60.0
# What icefall's releases are exported for, in frames of 20 ms.
_USUAL_CHUNK, _USUAL_LEFT_CONTEXT = 16, 128


class Zipformer(Architecture):
    """The network, its CTC head, and the weights of a transducer."""

    Config = ZipformerConfig

    def __init__(self, config: ZipformerConfig):
        super().__init__(config)
        self.config = config
        self.subsampling = Subsampling(config.mel_bins, config.stacks[0].width)
        self.encoder = Encoder(config)
        if config.ctc:
            self.ctc = Linear(config.width, config.vocabulary_size)
        if config.transducer:
            self.prediction = Prediction(config.transducer, config.vocabulary_size)
            self.joiner = Joiner(config.transducer, config.width, config.vocabulary_size)
        self.facts = facts(config)

    @classmethod
    def read_config(cls, checkpoint: Checkpoint) -> ZipformerConfig:
        return read_config(checkpoint)

    @classmethod
    def rename(cls, naming: str) -> WeightRules:
        return rules(naming)

    def encode(self, features: FeatureBatch) -> EncoderOutput:
        return self.encode_limited(features, None, None)

    def encode_limited(self, features: FeatureBatch, chunk: int | None, left_context: int | None) -> EncoderOutput:
        """Encode whole inputs, with attention limited to chunks and to a left context, in frames of 20 ms."""
        missing = max(0, FEWEST_FRAMES - features.frames.shape[1])
        frames = F.pad(features.frames, (0, 0, 0, missing)).to(self.dtype)
        lengths = subsampled(features.lengths)
        x = self.encoder.whole(self.subsampling(frames, lengths), lengths, chunk, left_context)
        return EncoderOutput(x, -(-lengths // self.config.output_downsampling))

    def head(self, name: str) -> "ZipformerCTC":
        if name not in self.facts.heads:
            offered = " and ".join(f'"{head}"' for head in sorted(self.facts.heads)) or "no head"
            raise RequestError(f'This Zipformer offers {offered}, not "{name}"')
        return ZipformerCTC(self)

    def streaming(self, chunk: int, left_context: int | None) -> ZipformerStreams:
        allowed = self.facts.streaming
        if allowed is None:
            raise RequestError("This Zipformer was not trained to read live audio: it needs to hear the end first")
        if chunk not in allowed.chunks or left_context not in allowed.left_contexts or left_context is None:
            raise RequestError(
                f"This Zipformer reads live audio in chunks of {_either(allowed.chunks)} frames with a left context of "
                f"{_either(allowed.left_contexts)}, not in chunks of {chunk} with {left_context}"
            )
        return ZipformerStreams(self, chunk, left_context)


class ZipformerCTC(CTCHead):
    """One linear layer."""

    def __init__(self, model: Zipformer):
        self._project = model.ctc
        self.vocabulary_size = model.config.vocabulary_size
        self.blank = model.config.blank

    def log_probs(self, frames: torch.Tensor) -> torch.Tensor:
        return self._project(frames).float().log_softmax(dim=-1)


def facts(config: ZipformerConfig) -> ModelFacts:
    """What a checkpoint of this configuration dictates."""
    return ModelFacts(
        sample_rate=_SAMPLE_RATE,
        frontend="kaldi-fbank",
        frontend_options={
            "mel_bins": config.mel_bins,
            "high_freq": -400.0,
            "snip_edges": False,
            "waveform_scale": 1.0,
        },
        tokenizer=config.tokenizer,
        text_tokens=config.vocabulary_size,
        frame_shift=_FRAME_SECONDS * config.output_downsampling,
        heads=frozenset({"ctc"} if config.ctc else ()),
        default_decoder="ctc-greedy" if config.ctc else "transducer-greedy",
        max_input_seconds=_MAX_INPUT_SECONDS,
        streaming=streaming_facts(config),
    )


def streaming_facts(config: ZipformerConfig) -> StreamingFacts | None:
    """The chunks and left contexts of a causal checkpoint, and of these what releases use, or else the smallest
    chunk and the largest left context."""
    if not (config.causal and config.chunks and config.left_contexts):
        return None
    chunk, left_context = _USUAL_CHUNK // config.output_downsampling, _USUAL_LEFT_CONTEXT // config.output_downsampling
    return StreamingFacts(
        chunks=config.chunks,
        left_contexts=config.left_contexts,
        default_chunk=chunk if chunk in config.chunks else min(config.chunks),
        default_left_context=left_context if left_context in config.left_contexts else max(config.left_contexts),
    )


def _either(numbers: tuple[int | None, ...]) -> str:
    return " or ".join(map(str, numbers))
