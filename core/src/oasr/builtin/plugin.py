"""What core offers, through the same door as every other distribution."""

from oasr.plugin import ComponentSpec, Kind, hookimpl

OASR_API = 1


@hookimpl
def oasr_components() -> list[ComponentSpec]:
    """The built-in components."""
    return [
        ComponentSpec(
            kind=Kind.FRONTEND,
            name="log-mel",
            summary="Log-mel spectrogram",
            target="oasr.features.log_mel:LogMel",
            config="oasr.features.config:LogMelConfig",
        ),
        ComponentSpec(
            kind=Kind.FRONTEND,
            name="kaldi-fbank",
            summary="Log-mel filter banks as Kaldi computes them",
            target="oasr.features.kaldi_fbank:KaldiFbank",
            config="oasr.features.config:KaldiFbankConfig",
        ),
        ComponentSpec(
            kind=Kind.TOKENIZER,
            name="huggingface",
            summary="A tokenizer.json of the tokenizers library",
            target="oasr.tokenizers.huggingface:HuggingFaceTokenizer",
        ),
        ComponentSpec(
            kind=Kind.TOKENIZER,
            name="sentencepiece",
            summary="A SentencePiece model, with the ids of a symbol table where there is one",
            target="oasr.tokenizers.sentencepiece:SentencePieceTokenizer",
        ),
        ComponentSpec(
            kind=Kind.TOKENIZER,
            name="symbols",
            summary="A symbol table such as tokens.txt or units.txt",
            target="oasr.tokenizers.symbols:SymbolTokenizer",
        ),
        ComponentSpec(
            kind=Kind.FORMAT,
            name="oasr",
            summary="OASR's own layout: safetensors and oasr.json",
            target="oasr.checkpoint.native:NativeFormat",
        ),
        ComponentSpec(
            kind=Kind.DETECTOR,
            name="none",
            summary="Takes all audio for speech",
            target="oasr.detectors.everything:Everything",
        ),
        ComponentSpec(
            kind=Kind.DETECTOR,
            name="energy",
            summary="Speech by its loudness over the noise",
            target="oasr.detectors.energy:EnergyDetector",
            config="oasr.detectors.config:EnergyConfig",
        ),
        ComponentSpec(
            kind=Kind.BATCHING,
            name="bucketed",
            summary="Batches of similar length under a frame budget",
            target="oasr.scheduler.bucketed:BucketedPolicy",
            config="oasr.scheduler.config:BucketedConfig",
        ),
    ]
