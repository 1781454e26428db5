"""Writes toy checkpoints in OASR's own layout, in a moment and always the same."""

from pathlib import Path

import tokenizers

from oasr.checkpoint.byte_level_bpe import byte_alphabet
from oasr.checkpoint.convert import save_native
from oasr.testing.toys.config import ToyConfig
from oasr.testing.toys.model import ToyArchitecture
from oasr.testing.weights import randomize


def write_toy(
    folder: Path,
    config: ToyConfig | None = None,
    *,
    seed: int = 0,
    architecture: type[ToyArchitecture] = ToyArchitecture,
) -> Path:
    """Write a toy of random weights to a new folder and return it; the same seed gives the same toy."""
    config = config or ToyConfig()
    model = architecture(config)
    randomize(model, seed)
    tokenizer = write_tokenizer(folder.with_name(f"{folder.name}-tokenizer.json"), config)
    state = {name: tensor.detach() for name, tensor in model.state_dict().items()}
    return save_native(
        folder, architecture="toy", config=config, state=state, files={"tokenizer": tokenizer}, generation={}
    )


def write_tokenizer(path: Path, config: ToyConfig | None = None) -> Path:
    """Write a tokenizer.json whose text ids are the bytes of UTF-8, and return its path."""
    config = config or ToyConfig()
    vocabulary = {character: byte for byte, character in enumerate(byte_alphabet())}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    control = ["<|end|>", "<|start|>", "<|previous|>", *(f"<|{code}|>" for code in config.languages)]
    tokenizer.add_special_tokens(control)
    tokenizer.save(str(path))
    return path
