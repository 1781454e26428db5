"""Releases and training folders are recognised and opened as they are; what is another model or damaged is named."""

import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from oasr.checkpoint.sniff import open_checkpoint
from oasr.errors import CheckpointError
from oasr.registry import default_registry
from oasr_format_wenet.format import WeNetCheckpoint, WeNetFormat

Release = Callable[..., Path]
Weights = dict[str, torch.Tensor]


def opened(path: Path) -> WeNetCheckpoint:
    checkpoint = WeNetFormat().open(path)
    assert isinstance(checkpoint, WeNetCheckpoint)
    return checkpoint


def read(path: Path) -> Weights:
    return dict(opened(path).tensors())


def test_a_release_is_opened(release: Release, weights: Weights) -> None:
    folder = release()
    match = WeNetFormat.match(folder)
    assert match
    assert match.why == "train.yaml describes an encoder"
    checkpoint = opened(folder)
    assert (checkpoint.architecture, checkpoint.naming) == ("conformer", "wenet")
    assert checkpoint.config["encoder_conf"] == {"output_size": 4}
    assert checkpoint.files == {"symbols": folder / "units.txt", "sentencepiece": folder / "unigram.model"}
    assert read(folder).keys() == weights.keys()


def test_a_release_is_found_among_all_formats(release: Release) -> None:
    assert open_checkpoint(release(), default_registry()).naming == "wenet"


def test_one_checkpoint_of_a_training_is_opened(release: Release, weights: Weights) -> None:
    folder = release()
    torch.save({**weights, "encoder.after_norm.weight": torch.full((3,), 7.0)}, folder / "step_100.pt")
    assert WeNetFormat.match(folder / "step_100.pt")
    assert read(folder / "step_100.pt")["encoder.after_norm.weight"].tolist() == [7.0] * 3


def test_names_of_data_parallel_training_are_the_same(release: Release, weights: Weights) -> None:
    folder = release()
    torch.save({f"module.{name}": tensor for name, tensor in weights.items()}, folder / "final.pt")
    assert opened(folder).shapes().keys() == weights.keys()


@pytest.mark.parametrize(
    ("names", "chosen"), [(["avg_30.pt"], "avg_30.pt"), (["epoch_1.pt", "avg5.pt"], "avg5.pt"), (["7.pt"], "7.pt")]
)
def test_without_final_pt_the_file_that_can_be_meant(
    release: Release, weights: Weights, names: list[str], chosen: str
) -> None:
    folder = release()
    (folder / "final.pt").unlink()
    for name in names:
        torch.save(weights, folder / name)
    assert [path.name for path in opened(folder).weights] == [chosen]


def test_without_final_pt_several_others_are_not_guessed(release: Release) -> None:
    folder = release()
    (folder / "final.pt").rename(folder / "epoch_1.pt")
    (folder / "epoch_2.pt").write_bytes((folder / "epoch_1.pt").read_bytes())
    with pytest.raises(CheckpointError, match=r"several other weights: epoch_1\.pt, epoch_2\.pt\. Name the file"):
        opened(folder)


def test_an_average_on_request(release: Release, weights: Weights) -> None:
    folder = release()
    for number, value in ((1, 1.0), (2, 4.0), (3, 7.0)):
        changed = {name: torch.full_like(tensor, value) for name, tensor in weights.items()}
        torch.save(changed, folder / f"epoch_{number}.pt")
    (folder / "wenet.json").write_text('{"average": ["epoch_1.pt", "epoch_2.pt", "epoch_3.pt"]}')
    mean = read(folder)
    assert mean["encoder.after_norm.weight"].unique().tolist() == [4.0]
    assert mean["encoder.encoders.0.conv_module.norm.num_batches_tracked"] == 7
    assert read(folder / "epoch_1.pt")["encoder.after_norm.weight"].unique().tolist() == [1.0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"average": []}', "a list of weight files"),
        ('{"average": "final.pt"}', "a list of weight files"),
        ('{"average": ["final.pt"], "avg": 3}', "and nothing else"),
        ('{"average": ["../final.pt"]}', "not a file beside it"),
        ('{"average": ["epoch_9.pt"]}', r"epoch_9\.pt is missing"),
        ("{", r"wenet\.json is not valid JSON"),
    ],
)
def test_a_damaged_request_for_an_average_is_named(release: Release, content: str, message: str) -> None:
    folder = release()
    (folder / "wenet.json").write_text(content)
    with pytest.raises(CheckpointError, match=message):
        opened(folder)


def test_checkpoints_of_different_models_are_not_averaged(release: Release, weights: Weights) -> None:
    folder = release()
    torch.save({**weights, "encoder.after_norm.weight": torch.zeros(3)}, folder / "other.pt")
    (folder / "wenet.json").write_text('{"average": ["final.pt", "other.pt"]}')
    with pytest.raises(
        CheckpointError, match=r"other\.pt cannot be averaged with final\.pt: encoder\.after_norm\.weight"
    ):
        opened(folder).shapes()


SUMS = [10.0, 20.0], [30.0, 50.0], 10.0
KALDI = " [\n  10 20 10\n  30.0 50.0 0 ]\n"


@pytest.mark.parametrize("content", ['{"mean_stat": [10, 20], "var_stat": [30, 50], "frame_num": 10}', KALDI])
@pytest.mark.parametrize("is_json", [True, False])
def test_statistics_are_read_from_a_file_where_the_weights_lack_them(
    release: Release, weights: Weights, content: str, is_json: bool
) -> None:
    """The content tells its layout; what train.yaml says of it does not matter."""
    folder = release(cmvn_conf={"cmvn_file": "/mnt/data/global_cmvn", "is_json_cmvn": is_json})
    torch.save({"encoder.after_norm.weight": weights["encoder.after_norm.weight"]}, folder / "final.pt")
    (folder / "global_cmvn").write_text(content)
    tensors = read(folder)
    assert tensors["encoder.global_cmvn.mean"].tolist() == [1.0, 2.0]
    # Variances 30/10 - 1 and 50/10 - 4.
    assert tensors["encoder.global_cmvn.istd"].tolist() == pytest.approx([2**-0.5, 1.0])


def test_statistics_of_constant_features_are_finite(release: Release, weights: Weights) -> None:
    folder = release()
    torch.save({"encoder.after_norm.weight": weights["encoder.after_norm.weight"]}, folder / "final.pt")
    (folder / "global_cmvn").write_text('{"mean_stat": [10], "var_stat": [10], "frame_num": 10}')
    assert read(folder)["encoder.global_cmvn.istd"].isfinite().all()


def test_statistics_in_the_weights_need_no_file(release: Release) -> None:
    folder = release()
    (folder / "global_cmvn").unlink()
    assert read(folder)["encoder.global_cmvn.mean"].tolist() == [1.0, 2.0]


def test_statistics_as_old_releases_state_them(release: Release, weights: Weights) -> None:
    folder = release(cmvn=None, cmvn_conf=None, cmvn_file="data/global_cmvn", is_json_cmvn=False)
    torch.save({"encoder.after_norm.weight": weights["encoder.after_norm.weight"]}, folder / "final.pt")
    (folder / "global_cmvn").write_text(KALDI)
    assert read(folder)["encoder.global_cmvn.mean"].tolist() == [1.0, 2.0]


def test_a_model_without_statistics_has_none(release: Release, weights: Weights) -> None:
    folder = release(cmvn=None, cmvn_conf=None)
    torch.save({"encoder.after_norm.weight": weights["encoder.after_norm.weight"]}, folder / "final.pt")
    assert read(folder).keys() == {"encoder.after_norm.weight"}


def test_statistics_that_are_nowhere_are_named(release: Release, weights: Weights) -> None:
    folder = release()
    torch.save({"encoder.after_norm.weight": weights["encoder.after_norm.weight"]}, folder / "final.pt")
    (folder / "global_cmvn").unlink()
    with pytest.raises(CheckpointError, match=r"has no global_cmvn: .*data/train/global_cmvn"):
        opened(folder).shapes()


@pytest.mark.parametrize(
    "content",
    [
        '{"mean_stat": [1], "var_stat": [1, 2], "frame_num": 10}',
        '{"mean_stat": [], "var_stat": [], "frame_num": 10}',
        '{"mean_stat": [1], "var_stat": [1], "frame_num": 0}',
        '{"mean_stat": [1], "var_stat": [1], "frame_num": null}',
        '{"mean_stat": "x", "var_stat": [1], "frame_num": 3}',
        '{"mean_stat": [NaN], "var_stat": [1], "frame_num": 3}',
        '{"mean_stat": [1]}',
        "[ 10 20 10\n 30 50 ]",
        "[ 10 20 10\n 30 x 0 ]",
        "[ 10 20 10\n 30 50 0",
        "\x00BFM statistics",
        "something else",
    ],
)
def test_damaged_statistics_are_named(release: Release, weights: Weights, content: str) -> None:
    folder = release()
    torch.save({"encoder.after_norm.weight": weights["encoder.after_norm.weight"]}, folder / "final.pt")
    (folder / "global_cmvn").write_text(content)
    with pytest.raises(CheckpointError, match=re.escape(str(folder / "global_cmvn"))):
        opened(folder).shapes()


@pytest.mark.parametrize(
    ("present", "stated", "chosen"),
    [
        (["units.txt"], "data/dict/lang_char.txt", "units.txt"),
        (["units.txt", "lang_char.txt"], "data/dict/lang_char.txt", "lang_char.txt"),
        (["words.txt"], None, "words.txt"),
        (["train_unigram50_units.txt"], None, "train_unigram50_units.txt"),
    ],
)
def test_symbols_beside_the_weights(release: Release, present: list[str], stated: str | None, chosen: str) -> None:
    folder = release(tokenizer_conf={"symbol_table_path": stated})
    (folder / "units.txt").unlink()
    for name in present:
        (folder / name).write_text("a 0\n")
    assert opened(folder).files["symbols"].name == chosen


def test_a_path_of_train_yaml_serves_where_nothing_lies_beside_the_weights(release: Release, tmp_path: Path) -> None:
    elsewhere = tmp_path / "lang.txt"
    elsewhere.write_text("a 0\n")
    folder = release(tokenizer_conf={"symbol_table_path": str(elsewhere)})
    assert opened(folder).files["symbols"] == folder / "units.txt"
    (folder / "units.txt").unlink()
    assert opened(folder).files["symbols"] == elsewhere


def test_characters_need_no_pieces(release: Release) -> None:
    assert "sentencepiece" not in opened(release(tokenizer="char")).files


def test_several_models_of_pieces_are_not_guessed(release: Release) -> None:
    folder = release(tokenizer=None, tokenizer_conf=None)
    (folder / "other.model").touch()
    with pytest.raises(CheckpointError, match=r"other\.model, unigram\.model, and train\.yaml does not say which"):
        opened(folder)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"model": "transducer"}, "a transducer"),
        ({"model": None, "predictor": "rnn"}, "a transducer"),
        ({"model": "paraformer"}, "a Paraformer"),
        ({"model": None, "paraformer": True}, "a Paraformer"),
        ({"model": "whisper"}, "a Whisper"),
        ({"tokenizer": "whisper"}, "a Whisper"),
        ({"model": "sense_voice_small"}, "the model sense_voice_small"),
        ({"encoder": "squeezeformer"}, "the encoder squeezeformer"),
        ({"encoder": "efficientConformer"}, "the encoder efficientConformer"),
        ({"encoder": "e_branchformer"}, "the encoder e_branchformer"),
        ({"encoder": ["conformer"]}, "the encoder \\['conformer'\\]"),
    ],
)
def test_other_models_of_wenet_are_refused_by_name(release: Release, changes: dict[str, Any], named: str) -> None:
    folder = release(**changes)
    assert WeNetFormat.match(folder)
    with pytest.raises(CheckpointError, match=rf"train\.yaml describes {named}"):
        opened(folder)


@pytest.mark.parametrize("model", ["asr_model", "ctl_model", "k2_model"])
@pytest.mark.parametrize("encoder", ["conformer", "transformer", None])
def test_models_of_the_same_shape_are_not(release: Release, model: str, encoder: str | None) -> None:
    assert opened(release(model=model, encoder=encoder)).architecture == "conformer"


@pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning")
@pytest.mark.parametrize("name", ["final.zip", "final_quant.zip"])
def test_torchscript_is_refused_by_name(release: Release, name: str) -> None:
    folder = release()
    (folder / "final.pt").unlink()
    module = torch.jit.script(torch.nn.Linear(2, 2))
    module.save(folder / name)
    for path in (folder, folder / name):
        assert WeNetFormat.match(path)
        with pytest.raises(CheckpointError, match=rf"{name} is a TorchScript program.*Use final\.pt"):
            opened(path)


@pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning")
def test_torchscript_under_the_name_of_weights_is_refused(release: Release) -> None:
    folder = release()
    torch.jit.script(torch.nn.Linear(2, 2)).save(folder / "final.pt")
    with pytest.raises(CheckpointError, match=r"final\.pt is a TorchScript program"):
        opened(folder)


def test_weights_without_train_yaml_are_recognised_and_refused(release: Release) -> None:
    folder = release()
    (folder / "train.yaml").unlink()
    assert WeNetFormat.match(folder)
    with pytest.raises(CheckpointError, match=r"comes without train\.yaml, .*Copy it"):
        opened(folder)


def test_train_yaml_without_weights_is_recognised_and_refused(release: Release) -> None:
    folder = release()
    (folder / "final.pt").unlink()
    assert WeNetFormat.match(folder)
    with pytest.raises(CheckpointError, match=r"has no weights: final\.pt is missing"):
        opened(folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("encoder: [1", "not valid YAML"),
        ("- encoder: a", "holds a list"),
        ("encoder: !!python/object/apply:os.system ['true']", "not valid YAML"),
        ("encoder: " + "[" * 5000, "not valid YAML|nested too deeply"),
        ("encoder: 2001-13-45", "not valid YAML"),
        ("", "is empty"),
    ],
)
def test_a_damaged_train_yaml_is_named(release: Release, content: str, message: str) -> None:
    folder = release()
    (folder / "train.yaml").write_text(content)
    assert WeNetFormat.match(folder)
    with pytest.raises(CheckpointError, match=message):
        opened(folder)


class Payload:
    """Unpickling it would write a file."""

    def __init__(self, target: Path):
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.target,)


def test_a_pickle_never_runs_code(release: Release, tmp_path: Path) -> None:
    folder = release()
    torch.save({"a": torch.zeros(2), "payload": Payload(tmp_path / "ran")}, folder / "final.pt")
    with pytest.raises(CheckpointError, match="unpickling a class can run any code"):
        opened(folder).shapes()
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("content", [{}, {"model": {"a": torch.zeros(2)}}, [torch.zeros(2)]])
def test_weights_of_another_form_are_named(release: Release, content: Any) -> None:
    folder = release()
    torch.save(content, folder / "final.pt")
    with pytest.raises(CheckpointError, match=r"final\.pt holds"):
        opened(folder).shapes()


def test_other_paths_are_not_taken(release: Release, tmp_path: Path) -> None:
    folder = release()
    assert WeNetFormat.match(folder / "units.txt") is None
    assert WeNetFormat.match(tmp_path) is None
    (tmp_path / "exp").mkdir()
    torch.save({}, tmp_path / "exp" / "pretrained.pt")
    assert WeNetFormat.match(tmp_path / "exp") is None
    (tmp_path / "exp" / "train.yaml").write_text("lr: 3\n")
    with zipfile.ZipFile(tmp_path / "audio.zip", "w"):
        pass
    assert WeNetFormat.match(tmp_path / "audio.zip") is None
