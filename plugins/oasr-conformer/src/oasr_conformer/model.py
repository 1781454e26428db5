"""The whole network: encoder, CTC output and attention decoders."""

from torch import nn

from oasr.errors import RequestError
from oasr.interfaces.architecture import Architecture, EncoderOutput, ModelFacts, WeightRules
from oasr.interfaces.format import Checkpoint
from oasr.interfaces.frontend import FeatureBatch
from oasr.interfaces.streaming import StreamingEncoder, StreamingFacts
from oasr.nn import Linear
from oasr_conformer.config import ConformerConfig, DecoderConfig
from oasr_conformer.decoder import Decoder
from oasr_conformer.encoder import Encoder, WholePass
from oasr_conformer.heads import ConformerCTC, ConformerRescoring
from oasr_conformer.settings import read_config
from oasr_conformer.streaming import ChunkEncoder
from oasr_conformer.weights import rules

_LONGEST_SECONDS = 60.0  # released models were trained on utterances of up to 41 s
_DEFAULT_CHUNK = 64  # feature frames: 0.64 s, the 16 encoder frames at fourfold subsampling of U2's results
_DEFAULT_LEFT_CHUNKS = 4


class Decoders(nn.Module):
    """The attention decoders."""

    def __init__(self, width: int, vocabulary_size: int, config: DecoderConfig):
        super().__init__()
        self.left = Decoder(width, vocabulary_size, config.layers, config)
        self.right = Decoder(width, vocabulary_size, config.reverse_layers, config) if config.reverse_layers else None


class Conformer(Architecture):
    """The network and its heads."""

    Config = ConformerConfig

    def __init__(self, config: ConformerConfig):
        super().__init__(config)
        self.config = config
        self.encoder = Encoder(config)
        self.ctc = Linear(config.width, config.vocabulary_size)
        self.decoder = None
        if config.decoder:
            self.decoder = Decoders(config.width, config.vocabulary_size, config.decoder)
        self.facts = facts(config)

    @classmethod
    def read_config(cls, checkpoint: Checkpoint) -> ConformerConfig:
        return read_config(checkpoint)

    @classmethod
    def rename(cls, naming: str) -> WeightRules:
        return rules(naming)

    def encode(self, features: FeatureBatch) -> EncoderOutput:
        if self.config.static_chunk and not self.config.dynamic_chunk:
            return self.streaming(self.config.static_chunk, None).encode_whole(features)
        x, lengths = self.encoder.embed(features.frames, features.lengths)
        return EncoderOutput(self.encoder(x, WholePass(self.encoder, x, lengths)), lengths)

    def head(self, name: str) -> ConformerCTC:
        if name not in self.facts.heads:
            offered = " and ".join(f'"{head}"' for head in sorted(self.facts.heads))
            raise RequestError(f'this Conformer offers {offered}, not the head "{name}"')
        if self.config.decoder is None or self.decoder is None:
            return ConformerCTC(self.config, self.ctc)
        return ConformerRescoring(self.config, self.config.decoder, self.ctc, self.decoder.left, self.decoder.right)

    def streaming(self, chunk: int, left_context: int | None) -> StreamingEncoder:
        return ChunkEncoder(self.encoder, chunk, left_context)


def facts(config: ConformerConfig) -> ModelFacts:
    """What a checkpoint of this configuration dictates."""
    features = config.features
    # WeNet puts <sos/eos> last, or among the first ids, which CTC never gives.
    control = config.decoder is not None and config.decoder.end == config.vocabulary_size - 1
    return ModelFacts(
        sample_rate=features.sample_rate,
        frontend="kaldi-fbank",
        frontend_options={
            "sample_rate": features.sample_rate,
            "mel_bins": features.mel_bins,
            "frame_length_ms": features.frame_length_ms,
            "frame_shift_ms": features.frame_shift_ms,
            "window": "povey",
            "snip_edges": True,
            "high_freq": 0.0,
            "waveform_scale": 32768.0,
        },
        tokenizer=config.tokenizer,
        text_tokens=config.vocabulary_size - control,
        frame_shift=features.frame_shift_ms * config.subsampling / 1000,
        heads=frozenset({"ctc", "rescoring"} if config.decoder else {"ctc"}),
        default_decoder="attention-rescoring" if config.decoder else "ctc-prefix-beam",
        max_input_seconds=_LONGEST_SECONDS,
        streaming=_streaming_facts(config) if config.streams else None,
    )


def _streaming_facts(config: ConformerConfig) -> StreamingFacts:
    if config.dynamic_chunk:
        chunk = _DEFAULT_CHUNK // config.subsampling
        return StreamingFacts((), (), chunk, _DEFAULT_LEFT_CHUNKS * chunk)
    chunk = config.static_chunk
    return StreamingFacts((chunk,), (), chunk, _DEFAULT_LEFT_CHUNKS * chunk)
