"""Releases and training runs of icefall are recognised and opened, and what is not supported is named."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from oasr.checkpoint.sniff import open_checkpoint
from oasr.errors import CheckpointError
from oasr.registry import default_registry
from oasr_format_icefall.format import IcefallFormat

FIRST = "encoder_embed.conv.0.weight"
Save = Callable[..., Path]


class Gadget:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder: Path):
        self._folder = str(folder)

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self._folder,)


class Sampler:
    """An object of a class that is not installed where the file is read."""

    def __init__(self) -> None:
        self.epoch = 3


def value(checkpoint: Any) -> float:
    """What the first tensor is full of."""
    tensor = dict(checkpoint.tensors())[FIRST]
    assert (tensor == tensor.flatten()[0]).all()
    return float(tensor.flatten()[0])


def refusal(path: Path) -> str:
    with pytest.raises(CheckpointError) as raised:
        IcefallFormat().open(path)
    return str(raised.value)


def test_a_release_is_opened(release: Path, save: Save) -> None:
    save(release / "exp" / "pretrained.pt", 2.0)
    match = IcefallFormat.match(release)
    assert match is not None
    assert match.why == f"pretrained.pt holds {FIRST}"
    checkpoint = open_checkpoint(release, default_registry())
    assert (checkpoint.architecture, checkpoint.naming) == ("zipformer", "icefall")
    assert (checkpoint.path, checkpoint.config, checkpoint.generation) == (release, {}, {})
    assert checkpoint.files == {"symbols": release / "data" / "lang_bpe_4" / "tokens.txt"}
    assert checkpoint.shapes()[FIRST] == (8, 1, 3, 3)
    assert value(checkpoint) == 2.0


def test_both_kinds_of_tokens_are_found(release: Path, save: Save) -> None:
    save(release / "exp" / "pretrained.pt")
    lang = release / "data" / "lang_bpe_4"
    (lang / "bpe.model").write_bytes(b"pieces")
    assert set(IcefallFormat().open(release).files) == {"sentencepiece", "symbols"}
    (lang / "tokens.txt").unlink()
    assert IcefallFormat().open(release).files == {"sentencepiece": lang / "bpe.model"}


def test_a_flat_folder_is_opened(release: Path, save: Save) -> None:
    save(release / "epoch-99.pt")
    (release / "exp").rmdir()
    (release / "data" / "lang_bpe_4" / "tokens.txt").rename(release / "tokens.txt")
    assert IcefallFormat.match(release) is not None
    assert IcefallFormat().open(release).files == {"symbols": release / "tokens.txt"}


@pytest.mark.parametrize("name", ["exp", "exp/pretrained.pt"])
def test_the_tokens_of_a_part_of_a_release_are_found(release: Path, save: Save, name: str) -> None:
    save(release / "exp" / "pretrained.pt")
    assert IcefallFormat.match(release / name) is not None
    checkpoint = IcefallFormat().open(release / name)
    assert checkpoint.files == {"symbols": release / "data" / "lang_bpe_4" / "tokens.txt"}


def test_the_pretrained_file_goes_before_others(release: Path, save: Save) -> None:
    save(release / "exp" / "pretrained.pt", 5.0)
    save(release / "exp" / "epoch-99.pt", 6.0)
    assert value(IcefallFormat().open(release)) == 5.0


def test_nothing_is_guessed_between_several(release: Path, save: Save) -> None:
    for epoch in (1, 2):
        save(release / "exp" / f"epoch-{epoch}.pt")
    message = refusal(release)
    assert "2 checkpoints: epoch-1.pt, epoch-2.pt" in message
    assert '{"epoch": 30, "avg": 9}' in message


def test_the_average_of_training_is_preferred(release: Path, save_epoch: Save) -> None:
    file = save_epoch(release / "exp" / "epoch-3.pt", 1.0, 4.0, 30, num_heads="4,8", causal=True, lr=0.1)
    checkpoint = IcefallFormat().open(file)
    assert value(checkpoint) == 4.0
    assert checkpoint.config == {"batch_idx_train": 30, "num_heads": "4,8", "causal": True, "lr": 0.1}


def test_names_of_several_devices_lose_their_prefix(release: Path) -> None:
    state = {f"module.{name}": tensor for name, tensor in tensors().items()}
    torch.save({"model": state}, release / "exp" / "pretrained.pt")
    assert IcefallFormat().open(release).shapes().keys() == tensors().keys()


def test_files_of_older_torch_are_read(release: Path) -> None:
    torch.save({"model": tensors()}, release / "exp" / "pretrained.pt", _use_new_zipfile_serialization=False)
    assert IcefallFormat.match(release) is not None
    assert value(IcefallFormat().open(release)) == 1.0


def tensors() -> dict[str, torch.Tensor]:
    return {
        FIRST: torch.ones(8, 1, 3, 3),
        "encoder.encoders.0.layers.0.self_attn_weights.in_proj.weight": torch.ones(6, 2),
        "ctc_output.1.weight": torch.ones(4, 2),
    }


class TestOtherObjects:
    """Training checkpoints hold more than tensors, and none of it runs."""

    def test_they_are_left_alone(self, release: Path, save_epoch: Save) -> None:
        file = save_epoch(
            release / "exp" / "epoch-1.pt", 1.0, 2.0, 10, exp_dir=Path("/a/b"), sampler=Sampler(), vocab_size=4
        )
        checkpoint = IcefallFormat().open(file)
        assert value(checkpoint) == 2.0
        assert checkpoint.config == {"batch_idx_train": 10, "vocab_size": 4}

    def test_a_gadget_does_not_run(self, release: Path, save: Save, tmp_path: Path) -> None:
        target = tmp_path / "made by the gadget"
        file = save(release / "exp" / "epoch-1.pt", sampler=Gadget(target))
        assert "can run any code" in refusal(file)
        assert not target.exists()


class TestAveraging:
    """`icefall.json` chooses checkpoints with the flags of icefall's decode.py."""

    @pytest.fixture
    def run(self, release: Path, save_epoch: Save) -> Path:
        """Three epochs of ten batches, in which the weights were 1, 2 and 6 on average."""
        save_epoch(release / "exp" / "epoch-1.pt", 1.5, 1.0, 10)
        save_epoch(release / "exp" / "epoch-2.pt", 2.5, 1.5, 20)
        save_epoch(release / "exp" / "epoch-3.pt", 7.0, 3.0, 30)
        return release

    @pytest.mark.parametrize(
        ("settings", "expected"),
        [
            ({"epoch": 2}, 1.5),
            ({"epoch": 3, "avg": 1}, 3.0),
            ({"epoch": 3, "avg": 2}, (2.0 * 10 + 6.0 * 10) / 20),
            ({"epoch": 2, "use_averaged_model": False}, 2.5),
            ({"epoch": 3, "avg": 2, "use_averaged_model": False}, (2.5 + 7.0) / 2),
            ({"epoch": 3, "avg": 3, "use_averaged_model": False}, (1.5 + 2.5 + 7.0) / 3),
        ],
    )
    def test_values(self, run: Path, settings: dict[str, Any], expected: float) -> None:
        (run / "icefall.json").write_text(json.dumps(settings))
        checkpoint = IcefallFormat().open(run)
        assert value(checkpoint) == pytest.approx(expected)
        assert dict(checkpoint.tensors())["steps"] == 7

    def test_checkpoints_by_batches(self, release: Path, save: Save) -> None:
        for batches, weight in ((4000, 1.0), (8000, 2.0), (12000, 9.0)):
            save(release / "exp" / f"checkpoint-{batches}.pt", weight)
        (release / "icefall.json").write_text('{"iter": 8000, "avg": 2}')
        assert value(IcefallFormat().open(release)) == pytest.approx(1.5)

    def test_the_settings_may_lie_elsewhere(self, run: Path, tmp_path: Path) -> None:
        settings = tmp_path / "mine" / "icefall.json"
        settings.parent.mkdir()
        folders = {"exp_dir": str(run / "exp"), "lang_dir": str(run / "data" / "lang_bpe_4")}
        settings.write_text(json.dumps({"epoch": 3, "avg": 2, **folders}))
        assert IcefallFormat.match(settings) is not None
        checkpoint = IcefallFormat().open(settings)
        assert value(checkpoint) == pytest.approx(4.0)
        assert checkpoint.files == {"symbols": run / "data" / "lang_bpe_4" / "tokens.txt"}

    def test_they_state_what_weights_do_not_show(self, run: Path) -> None:
        (run / "icefall.json").write_text('{"epoch": 3, "pos_head_dim": 8, "chunk_size": "16,32"}')
        config = IcefallFormat().open(run).config
        assert config == {"batch_idx_train": 30, "pos_head_dim": 8, "chunk_size": "16,32"}

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ('{"epoch": 9}', r"has no epoch-9\.pt.*it has epoch-1\.pt, epoch-2\.pt, epoch-3\.pt"),
            ('{"iter": 9}', r"has no checkpoint-9\.pt.*it has none of the kind"),
            ('{"epoch": 3, "avg": 3}', "has 3 checkpoints up to .*an average of 3, which takes 4"),
            ('{"epoch": 0}', "epoch is 0, where a number from 1"),
            ('{"epoch": true}', "epoch is True, where a number from 1"),
            ('{"epoch": 3, "iter": 2}', "both epoch and iter"),
            ('{"avg": 3}', "neither epoch nor iter"),
            ('{"epoch": 3, "use_averaged_model": "no"}', "where true or false"),
            ('{"epochs": 3}', '"epochs", which is not known. Did you mean "epoch"'),
            ('{"epoch": 3, "lang_dir": "nowhere"}', "lang_dir is 'nowhere', which is no folder"),
            ("[3]", "holds a list"),
            ("{", "not valid JSON"),
        ],
    )
    def test_what_cannot_be_is_named(self, run: Path, settings: str, message: str) -> None:
        (run / "icefall.json").write_text(settings)
        with pytest.raises(CheckpointError, match=message):
            IcefallFormat().open(run)

    def test_there_is_no_average_where_none_was_kept(self, release: Path, save: Save) -> None:
        save(release / "exp" / "epoch-1.pt")
        (release / "icefall.json").write_text('{"epoch": 1, "use_averaged_model": true}')
        assert '"use_averaged_model": false' in refusal(release)

    def test_batches_are_needed(self, run: Path, save_epoch: Save) -> None:
        (run / "icefall.json").write_text('{"epoch": 3, "avg": 2}')
        save_epoch(run / "exp" / "epoch-1.pt", 1.0, 1.0, 30)
        assert "nothing to average" in refusal(run)
        save_epoch(run / "exp" / "epoch-1.pt", 1.0, 1.0, "many")
        assert "batch_idx_train" in refusal(run)

    def test_other_models_are_not_averaged(self, run: Path) -> None:
        (run / "icefall.json").write_text('{"epoch": 3, "avg": 2, "use_averaged_model": false}')
        torch.save({"model": {FIRST: torch.ones(8, 1, 3, 3)}}, run / "exp" / "epoch-2.pt")
        assert "cannot be averaged: they differ in ctc_output.1.weight" in refusal(run)


class TestTokens:
    """Tokens are those of the model, or none."""

    @pytest.fixture
    def opened(self, release: Path, save: Save) -> Path:
        save(release / "exp" / "pretrained.pt")
        return release

    def test_the_folder_that_fits_is_taken(self, opened: Path) -> None:
        other = opened / "data" / "lang_char"
        other.mkdir()
        (other / "tokens.txt").write_text("<blk> 0\na 1\n")
        assert IcefallFormat().open(opened).files["symbols"].parent.name == "lang_bpe_4"

    def test_nothing_is_guessed_between_two_that_fit(self, opened: Path) -> None:
        other = opened / "data" / "lang_char"
        other.mkdir()
        (other / "tokens.txt").write_text("<blk> 0\na 1\nb 2\nc 3\n")
        assert "Name one in icefall.json as lang_dir" in refusal(opened)
        (opened / "icefall.json").write_text('{"lang_dir": "data/lang_char"}')
        assert IcefallFormat().open(opened).files["symbols"].parent == other

    def test_a_copy_of_the_tokens_does_no_harm(self, opened: Path) -> None:
        lang = opened / "data" / "lang_bpe_4"
        (lang / "bpe.model").write_bytes(b"pieces")
        (opened / "tokens.txt").write_bytes((lang / "tokens.txt").read_bytes())
        assert IcefallFormat().open(opened).files["symbols"].parent == lang

    def test_tokens_of_another_model_are_refused(self, opened: Path) -> None:
        (opened / "data" / "lang_bpe_4" / "tokens.txt").write_text("<blk> 0\na 1\n")
        assert "the weights know 4 tokens" in refusal(opened)

    def test_without_tokens_it_says_where_they_belong(self, opened: Path) -> None:
        (opened / "data" / "lang_bpe_4" / "tokens.txt").unlink()
        message = refusal(opened)
        assert "neither tokens.txt nor bpe.model" in message
        assert "lang_dir" in message

    def test_damaged_tokens_are_named(self, opened: Path) -> None:
        (opened / "data" / "lang_bpe_4" / "tokens.txt").write_text("<blk> 0\na one\n")
        assert "tokens.txt, line 2" in refusal(opened)

    def test_models_of_bytes_are_found(self, opened: Path) -> None:
        lang = (opened / "data" / "lang_bpe_4").rename(opened / "data" / "lang_bbpe_4")
        (lang / "bbpe.model").write_bytes(b"pieces")
        assert IcefallFormat().open(opened).files["sentencepiece"] == lang / "bbpe.model"


@pytest.mark.parametrize(
    ("first", "message"),
    [
        ("encoder.encoders.0.layers.0.self_attn.in_proj.weight", "Zipformer of the first version"),
        ("encoder.encoder.layers.0.self_attn.in_proj.weight", "a Conformer of icefall"),
        ("encoder.encoder.layers.0.lstm.weight_ih_l0", "an LSTM"),
        ("encoder.encoder.emformer_layers.0.attention.emb_to_query.weight", "an Emformer"),
        ("encoder.something.else", r"is no Zipformer: its tensors are encoder\.encoder_embed"),
    ],
)
def test_other_models_of_icefall_are_named(release: Path, first: str, message: str) -> None:
    state = {f"encoder.{FIRST}": torch.ones(8, 1, 3, 3), first: torch.ones(2, 2)}
    torch.save({"model": state}, release / "exp" / "pretrained.pt")
    assert IcefallFormat.match(release) is not None
    with pytest.raises(CheckpointError, match=message):
        IcefallFormat().open(release)


@pytest.mark.filterwarnings("ignore:`torch.jit:FutureWarning")
class TestExports:
    """Programs are refused by name."""

    @pytest.fixture
    def export(self, release: Path) -> Path:
        path = release / "exp" / "jit_script_chunk_16_left_128.pt"
        torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), str(path))
        return path

    def test_one_that_is_named(self, export: Path) -> None:
        assert IcefallFormat.match(export) is not None
        assert "jit_script_chunk_16_left_128.pt is a TorchScript export" in refusal(export)

    def test_a_folder_of_nothing_else(self, release: Path, export: Path) -> None:
        assert IcefallFormat.match(release) is not None
        assert "holds only TorchScript or ONNX exports (jit_script_chunk_16_left_128.pt)" in refusal(release)

    def test_weights_beside_them_are_taken(self, release: Path, export: Path, save: Save) -> None:
        save(release / "exp" / "epoch-99.pt")
        assert value(IcefallFormat().open(release)) == 1.0


def test_a_file_without_a_model_is_named(release: Path) -> None:
    torch.save({"state_dict": {FIRST: torch.ones(1)}}, release / "exp" / "pretrained.pt")
    assert 'no entry "model"' in refusal(release)
    torch.save({"model": {FIRST: "text"}}, release / "exp" / "pretrained.pt")
    assert f"not named tensors: {FIRST}" in refusal(release)


def test_a_release_without_weights_is_named(release: Path) -> None:
    assert "holds no weights: pretrained.pt or epoch-N.pt is missing" in refusal(release)


def test_other_paths_are_not_taken(tmp_path: Path) -> None:
    torch.save({"model": {"conv.weight": torch.ones(1)}}, tmp_path / "model.pt")
    assert IcefallFormat.match(tmp_path) is None
    assert IcefallFormat.match(tmp_path / "model.pt") is None
    assert IcefallFormat.match(tmp_path / "nowhere.pt") is None


@pytest.mark.parametrize("name", ["goldens/zipformer-context1", "models/icefall-zipformer-digits"])
def test_recorded_releases_are_opened(shared: Callable[[str], Path], name: str) -> None:
    checkpoint = open_checkpoint(shared(f"{name}/checkpoint"), default_registry())
    assert checkpoint.architecture == "zipformer"
    assert checkpoint.files["symbols"].name == "tokens.txt"
