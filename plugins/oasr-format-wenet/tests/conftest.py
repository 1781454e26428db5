"""A small release, without the network: the format does not look into the weights."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

CONFIG: dict[str, Any] = {
    "cmvn": "global_cmvn",
    "cmvn_conf": {"cmvn_file": "data/train/global_cmvn", "is_json_cmvn": True},
    "encoder": "conformer",
    "encoder_conf": {"output_size": 4},
    "model": "asr_model",
    "tokenizer": "bpe",
    "tokenizer_conf": {"symbol_table_path": "data/lang/units.txt", "bpe_path": "data/lang/unigram.model"},
}
STATISTICS = '{"mean_stat": [10.0, 20.0], "var_stat": [30.0, 50.0], "frame_num": 10}'


@pytest.fixture
def weights() -> dict[str, torch.Tensor]:
    return {
        "encoder.global_cmvn.mean": torch.tensor([1.0, 2.0]),
        "encoder.global_cmvn.istd": torch.tensor([0.5, 0.25]),
        "encoder.after_norm.weight": torch.arange(8000.0),
        "encoder.encoders.0.conv_module.norm.num_batches_tracked": torch.tensor(3),
    }


@pytest.fixture
def release(tmp_path: Path, weights: dict[str, torch.Tensor]) -> Callable[..., Path]:
    """Writes a release; keys of train.yaml may be changed, and None removes one."""
    folder = tmp_path / "模型 dir"
    folder.mkdir()
    torch.save(weights, folder / "final.pt")
    (folder / "units.txt").write_text("<blank> 0\n<unk> 1\na 2\n<sos/eos> 3\n")
    (folder / "unigram.model").write_bytes(b"pieces")
    (folder / "global_cmvn").write_text(STATISTICS)

    def write(**changes: Any) -> Path:
        config = {key: value for key, value in {**CONFIG, **changes}.items() if value is not None}
        (folder / "train.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        return folder

    return write
