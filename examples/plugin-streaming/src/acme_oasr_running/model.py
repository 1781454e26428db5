"""The network: means of four frames, after a causal convolution over the features."""

import torch

from acme_oasr_running.config import RunningConfig
from oasr.errors import CheckpointError, RequestError
from oasr.interfaces.architecture import Architecture, EncoderOutput, ModelFacts, WeightRules
from oasr.interfaces.format import Checkpoint
from oasr.interfaces.frontend import FeatureBatch
from oasr.interfaces.heads import CTCHead
from oasr.interfaces.streaming import ChunkShape, StreamingEncoder, StreamingFacts, StreamLayout, StreamView
from oasr.nn import Linear

STRIDE = 4
"""Feature frames in one encoder frame."""
_CHUNK = 8


class Running(Architecture):
    """A network that forgets what lies further back than its memory."""

    Config = RunningConfig

    def __init__(self, config: RunningConfig):
        super().__init__(config)
        self.config = config
        self.input = Linear((config.memory + 1) * config.mel_bins, config.width)
        self.output = Linear(config.width, config.vocabulary_size)
        self.facts = ModelFacts(
            sample_rate=16_000,
            frontend="kaldi-fbank",
            frontend_options={"mel_bins": config.mel_bins},
            tokenizer="symbols",
            text_tokens=config.vocabulary_size,
            frame_shift=STRIDE * 0.01,
            heads=frozenset({"ctc"}),
            default_decoder="ctc-greedy",
            max_input_seconds=30.0,
            streaming=StreamingFacts((), (config.memory,), _CHUNK, config.memory),
        )

    @classmethod
    def read_config(cls, checkpoint: Checkpoint) -> RunningConfig:
        raise CheckpointError(f"{checkpoint.path}: this architecture is stored in OASR's own layout only")

    @classmethod
    def rename(cls, naming: str) -> WeightRules:
        raise CheckpointError(f"this architecture is stored under its own names only, not those of {naming}")

    def head(self, name: str) -> "RunningHead":
        if name != "ctc":
            raise RequestError(f'This network offers the head "ctc", not "{name}"')
        return RunningHead(self)

    def streaming(self, chunk: int, left_context: int | None) -> "RunningStream":
        return RunningStream(self, chunk)

    def encode(self, features: FeatureBatch) -> EncoderOutput:
        before = features.frames.new_zeros(len(features.frames), self.config.memory, self.config.mel_bins)
        return self.encode_after(before, features)

    def encode_after(self, before: torch.Tensor, features: FeatureBatch) -> EncoderOutput:
        """Encode features (rows, time, bins) that follow others, (rows, memory, bins)."""
        heard = torch.cat((before.to(features.frames), features.frames), dim=1)
        windows = heard.unfold(1, self.config.memory + 1, 1).flatten(2)
        frames = self.input(windows.to(self.dtype)).tanh()
        whole = frames.shape[1] // STRIDE
        frames = frames[:, : whole * STRIDE].unflatten(1, (whole, STRIDE)).mean(dim=2)
        return EncoderOutput(frames, features.lengths // STRIDE)


class RunningHead(CTCHead):
    """Scores of the symbols."""

    blank = 0

    def __init__(self, model: Running):
        self._model = model
        self.vocabulary_size = model.config.vocabulary_size

    def log_probs(self, frames: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self._model.output(frames)
        return scores.float().log_softmax(dim=-1)


class RunningStream(StreamingEncoder):
    """The network, chunk by chunk; each stream remembers the last frames of its features."""

    def __init__(self, model: Running, chunk: int):
        config = model.config
        self._model = model
        self.shape = ChunkShape(window=chunk * STRIDE, hop=chunk * STRIDE, frames=chunk, least=STRIDE)
        self.layout = StreamLayout(slots={"before": (config.memory, config.mel_bins)})

    def encode_chunk(self, features: FeatureBatch, streams: StreamView) -> EncoderOutput:
        before = streams.load("before")
        streams.store("before", torch.cat((before.to(features.frames), features.frames), dim=1)[:, -before.shape[1] :])
        return self._model.encode_after(before, features)

    def encode_whole(self, features: FeatureBatch) -> EncoderOutput:
        return self._model.encode(features)
