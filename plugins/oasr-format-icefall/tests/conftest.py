"""Small checkpoints as icefall lays them out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

VOCABULARY = 4
TOKENS = "<blk> 0\n<sos/eos> 1\n<unk> 2\n▁a 3\n#0 4\n#1 5\n"


def weights(value: float = 1.0) -> dict[str, torch.Tensor]:
    """The names by which a Zipformer is known, and a tensor that is no float."""
    return {
        "encoder_embed.conv.0.weight": torch.full((8, 1, 3, 3), value),
        "encoder.encoders.0.layers.0.self_attn_weights.in_proj.weight": torch.full((6, 2), 2 * value),
        "ctc_output.1.weight": torch.full((VOCABULARY, 2), 3 * value),
        "steps": torch.tensor(7),
    }


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A folder with tokens, and `exp` without weights."""
    path = tmp_path / "模型 dir" / "release"
    write_tokens(path / "data" / "lang_bpe_4")
    (path / "exp").mkdir(parents=True)
    return path


def write_tokens(folder: Path, text: str = TOKENS) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokens.txt").write_text(text, encoding="utf-8")


@pytest.fixture
def save() -> Callable[..., Path]:
    """Write a checkpoint whose first tensor is full of a value, with other entries beside it."""

    def write(path: Path, value: float = 1.0, **entries: Any) -> Path:
        torch.save({"model": weights(value), **entries}, path)
        return path

    return write


@pytest.fixture
def save_epoch(save: Callable[..., Path]) -> Callable[..., Path]:
    """Write a training checkpoint whose average and number of batches are given."""

    def write(path: Path, value: float, average: float, batches: int, **entries: Any) -> Path:
        return save(path, value, model_avg=weights(average), batch_idx_train=batches, **entries)

    return write
