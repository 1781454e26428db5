"""Random weights in the sizes of released models, to measure speed: python examples/random_checkpoint.py NAME FOLDER

NAME is zipformer-large (icefall's LibriSpeech recipe, causal) or conformer (WeNet's, 12 layers of width 512).
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from oasr.checkpoint.convert import save_native
from oasr.testing.weights import randomize
from oasr_conformer.config import ConformerConfig, ConvolutionConfig, FeatureConfig
from oasr_conformer.model import Conformer
from oasr_zipformer.config import StackConfig, ZipformerConfig
from oasr_zipformer.model import Zipformer

VOCABULARY = 500
SIZES = zip((1, 2, 4, 8, 4, 2), (2, 2, 4, 5, 4, 2), (192, 256, 512, 768, 512, 256), (4, 4, 4, 8, 4, 4), strict=True)
FEED_FORWARD = (512, 768, 1536, 2048, 1536, 768)

parser = argparse.ArgumentParser()
parser.add_argument("name", choices=["zipformer-large", "conformer"])
parser.add_argument("folder", type=Path)
options = parser.parse_args()
if options.name == "conformer":
    config = ConformerConfig(
        features=FeatureConfig(), normalized_features=False, subsampling=4, width=512, layers=12, heads=8,
        feed_forward=2048, macaron=True, convolution=ConvolutionConfig(kernel=15, causal=True, norm="layer"),
        positions="relative", activation="swish", normalize_before=True, norm_epsilon=1e-5, dynamic_chunk=True,
        static_chunk=0, vocabulary_size=VOCABULARY, blank=0, decoder=None, tokenizer="symbols",
    )  # fmt: skip
    model = Conformer(config)
else:
    stacks = [
        StackConfig(
            downsampling=downsampling, layers=layers, width=width, heads=heads, query_size=32, value_size=12,
            position_size=4, feed_forward=hidden, kernel=31 if downsampling < 4 else 15,
        )
        for (downsampling, layers, width, heads), hidden in zip(SIZES, FEED_FORWARD, strict=True)
    ]  # fmt: skip
    config = ZipformerConfig(
        mel_bins=80, stacks=tuple(stacks), position_width=48, output_downsampling=2, vocabulary_size=VOCABULARY,
        blank=0, ctc=True, transducer=None, causal=True, chunks=(8, 16, 32), left_contexts=(32, 64, 128),
        tokenizer="symbols",
    )  # fmt: skip
    model = Zipformer(config)
randomize(model, seed=0)
with TemporaryDirectory() as folder:
    symbols = Path(folder) / "tokens.txt"
    symbols.write_text("<blk> 0\n" + "".join(f"▁{i} {i}\n" for i in range(1, VOCABULARY)), encoding="utf-8")
    state = {name: tensor.detach() for name, tensor in model.state_dict().items()}
    architecture = options.name.partition("-")[0]
    save_native(
        options.folder, architecture=architecture, config=config, state=state, files={"symbols": symbols}, generation={}
    )
