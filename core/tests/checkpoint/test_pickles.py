"""PyTorch files never run code, and a damaged one says what is wrong with it."""

import argparse
import os
import pickle
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from oasr.checkpoint.pickles import read_pickle, read_state_dict
from oasr.errors import CheckpointError


class Gadget:
    """Creates a folder when it is unpickled."""

    def __init__(self, folder: Path):
        self._folder = str(folder)

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self._folder,)


@pytest.mark.parametrize("as_zip", [True, False], ids=["zip", "legacy"])
def test_tensors_and_plain_containers_are_read(tmp_path: Path, as_zip: bool) -> None:
    content = {"dims": {"n": 3}, "state": {"w": torch.arange(4.0)}, "epoch": 2, "names": ["a"]}
    torch.save(content, tmp_path / "a.pt", _use_new_zipfile_serialization=as_zip)
    read = read_pickle(tmp_path / "a.pt")
    assert torch.equal(read.pop("state")["w"], torch.arange(4.0))
    assert read == {"dims": {"n": 3}, "epoch": 2, "names": ["a"]}


@pytest.mark.parametrize("as_zip", [True, False], ids=["zip", "legacy"])
def test_a_gadget_is_refused_and_does_not_run(tmp_path: Path, as_zip: bool) -> None:
    target = tmp_path / "made by the gadget"
    torch.save({"w": Gadget(target)}, tmp_path / "a.pt", _use_new_zipfile_serialization=as_zip)
    with pytest.raises(CheckpointError, match=r"contains (posix|nt)\.mkdir, and unpickling a class can run any code"):
        read_pickle(tmp_path / "a.pt")
    assert not target.exists()


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_a_bare_pickle_is_refused_and_does_not_run(tmp_path: Path) -> None:
    target = tmp_path / "made by the gadget"
    (tmp_path / "a.pt").write_bytes(pickle.dumps(Gadget(target)))
    with pytest.raises(CheckpointError, match="holds more than tensors"):
        read_pickle(tmp_path / "a.pt")
    assert not target.exists()


def test_a_harmless_class_is_named_with_the_way_out(tmp_path: Path) -> None:
    torch.save({"args": argparse.Namespace(lr=1)}, tmp_path / "a.pt")
    with pytest.raises(CheckpointError, match=r"argparse\.Namespace.*torch\.save\(model\.state_dict\(\), path\)"):
        read_pickle(tmp_path / "a.pt")


@pytest.mark.parametrize("as_zip", [True, False], ids=["zip", "legacy"])
def test_objects_beside_the_tensors_can_be_read_as_nothing(tmp_path: Path, as_zip: bool) -> None:
    content = {"w": torch.ones(2), "args": argparse.Namespace(lr=1), "folder": Path("/a"), "epoch": 3}
    torch.save(content, tmp_path / "a.pt", _use_new_zipfile_serialization=as_zip)
    trusted = torch.serialization.get_safe_globals()
    read = read_pickle(tmp_path / "a.pt", stand_ins=True)
    assert torch.equal(read["w"], torch.ones(2))
    assert read["epoch"] == 3
    assert not isinstance(read["args"], argparse.Namespace)
    assert not isinstance(read["folder"], Path)
    assert torch.serialization.get_safe_globals() == trusted


@pytest.mark.parametrize("callable_", [os.mkdir, eval, exec, print])
def test_nothing_of_a_gadget_runs_behind_a_stand_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], callable_: Any
) -> None:
    class Caller:
        def __reduce__(self) -> tuple[Any, ...]:
            return callable_, (f"print({str(tmp_path)!r})",)

    torch.save({"w": Caller()}, tmp_path / "a.pt")
    with suppress(CheckpointError):
        read_pickle(tmp_path / "a.pt", stand_ins=True)
    assert capsys.readouterr().out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["a.pt"]


def test_a_configuration_object_of_a_package_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("acme_settings")
    module.Settings = type("Settings", (), {"__module__": "acme_settings"})
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "acme_settings", module)
        torch.save({"config": module.Settings()}, tmp_path / "a.pt")
    with pytest.raises(CheckpointError, match=r"contains acme_settings\.Settings"):
        read_pickle(tmp_path / "a.pt")


def test_an_empty_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.pt").touch()
    with pytest.raises(CheckpointError, match=r"is empty \(0 bytes\)"):
        read_pickle(tmp_path / "a.pt")


@pytest.mark.parametrize("share", [0.01, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("as_zip", [True, False], ids=["zip", "legacy"])
def test_a_cut_file_is_called_truncated(tmp_path: Path, as_zip: bool, share: float) -> None:
    file = tmp_path / "a.pt"
    torch.save({"w": torch.ones(1000)}, file, _use_new_zipfile_serialization=as_zip)
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(CheckpointError, match="truncated"):
        read_pickle(file)


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is missing"):
        read_pickle(tmp_path / "a.pt")


@pytest.mark.parametrize("protocol", range(2, 6))
def test_no_refusal_advises_to_switch_the_check_off(tmp_path: Path, protocol: int) -> None:
    (tmp_path / "a.pt").write_bytes(pickle.dumps({"w": Gadget(tmp_path / "made")}, protocol=protocol))
    with pytest.raises(CheckpointError) as refused:
        read_pickle(tmp_path / "a.pt")
    assert "weights_only" not in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("key", [5, None, ("a", "b")])
def test_tensors_without_a_name_are_refused(tmp_path: Path, key: Any) -> None:
    torch.save({"w": torch.ones(1), key: torch.ones(1)}, tmp_path / "a.bin")
    with pytest.raises(CheckpointError, match=r"a\.bin holds entries that are not named tensors"):
        read_state_dict(tmp_path / "a.bin")
