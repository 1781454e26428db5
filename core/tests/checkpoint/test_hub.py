"""A model is found on this machine first; what is cached needs no network, and what is missing is named."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub.errors
import pytest
from huggingface_hub import constants

from oasr.checkpoint.hub import locate
from oasr.checkpoint.hub_files import missing_files, wanted
from oasr.checkpoint.inventory import available
from oasr.errors import CheckpointError
from oasr.interfaces.model import PackagedModel
from oasr.plugin import ComponentSpec, Kind
from oasr.registry import Registry

COMPLETE = {"config.json": b"{}", "model.safetensors": b"x", "tokenizer.json": b"{}"}
INDEX = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}


class Shipped(PackagedModel):
    def path(self) -> Path:
        return Path(__file__).parent


class Damaged(PackagedModel):
    def path(self) -> Path:
        raise CheckpointError("the package has lost its weights")


SHIPPED = ComponentSpec(Kind.MODEL, "shipped", "Test", f"{__name__}:Shipped", aliases=("ship.ped",))
DAMAGED = ComponentSpec(Kind.MODEL, "damaged", "Test", f"{__name__}:Damaged")


def test_an_existing_path_is_taken_as_it_is(
    tmp_path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "openai" / "whisper-tiny"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert locate("openai/whisper-tiny", registry) == Path("openai/whisper-tiny")
    assert locate("~/openai/whisper-tiny", registry) == folder
    assert locate(folder, registry) == folder


@pytest.mark.parametrize("name", ["模型 dir/ü (1)", "תיקייה/Модель 2"])
def test_any_path_the_system_allows(tmp_path: Path, name: str, registry: Registry) -> None:
    (tmp_path / name).mkdir(parents=True)
    assert locate(str(tmp_path / name), registry) == tmp_path / name


@pytest.mark.parametrize("name", ["shipped", "ship.ped"])
def test_a_packaged_model_by_name_and_alias(name: str, make_registry: Callable[..., Registry]) -> None:
    assert locate(name, make_registry(SHIPPED)) == Path(__file__).parent


def test_no_name_means_the_one_packaged_model(make_registry: Callable[..., Registry]) -> None:
    assert locate(None, make_registry(SHIPPED)) == Path(__file__).parent
    with pytest.raises(CheckpointError, match=r"several are installed \(damaged, shipped\)"):
        locate(None, make_registry(SHIPPED, DAMAGED))
    with pytest.raises(CheckpointError, match="none is installed"):
        locate(None, make_registry())


@pytest.mark.parametrize(
    "name", ["", "  ", "nothing", "/no/such/folder", "./no/such", "a/b/c", "../x", "a/b@", "~/nowhere"]
)
def test_a_name_that_means_nothing_lists_the_packaged_models(
    name: str, make_registry: Callable[..., Registry], connections: list[Any], cache: Path
) -> None:
    with pytest.raises(CheckpointError, match="Packaged models installed: shipped"):
        locate(name, make_registry(SHIPPED))
    assert connections == []


def test_a_packaged_model_that_is_nearly_meant_is_suggested(make_registry: Callable[..., Registry]) -> None:
    with pytest.raises(CheckpointError, match=r'installed: shipped\. Did you mean "shipped"\?'):
        locate("Shiped", make_registry(SHIPPED))


def test_a_cached_model_needs_no_connection(cached: Callable[..., Path], registry: Registry, connections: list) -> None:
    snapshot = cached("acme/speech", COMPLETE)
    started = time.monotonic()
    assert locate("acme/speech", registry) == snapshot
    assert connections == []
    assert time.monotonic() - started < 5


def test_the_cache_and_its_switch_are_those_of_the_hubs_own_library() -> None:
    code = (
        "import sys; from oasr.checkpoint.hub_cache import cache_folder, is_offline;"
        "print(cache_folder(), is_offline());"
        "sys.exit(bool({'torch', 'requests', 'httpx', 'socket'} & set(sys.modules)))"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    environment |= {"HF_HOME": "/models", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == ["/models/hub", "True"]


def test_revisions_are_branches_and_commits(cached: Callable[..., Path], registry: Registry) -> None:
    main, other = cached("acme/speech", COMPLETE), cached("acme/speech", COMPLETE, "b" * 40, "v2")
    assert locate("acme/speech", registry) == main
    assert locate("acme/speech@v2", registry) == other
    assert locate(f"acme/speech@{'b' * 40}", registry) == other


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        ({"model.safetensors": b"x", "tokenizer.json": b"{}"}, ["config.json"]),
        ({"config.json": b"{}", "tokenizer.json": b"{}"}, ["model.safetensors"]),
        ({"config.json": b"{}", "model.safetensors": b"x"}, ["tokenizer.json"]),
        ({"config.json": b"{}", "model.bin": b"x"}, ["tokenizer.json"]),
        (
            {
                "config.json": b"{}",
                "tokenizer.json": b"{}",
                "model.safetensors.index.json": json.dumps(INDEX).encode(),
                "model-00001-of-00002.safetensors": b"x",
            },
            ["model-00002-of-00002.safetensors"],
        ),
        ({"README.md": b""}, ["config.json", "model.safetensors", "tokenizer.json"]),
    ],
    ids=["config", "weights", "tokenizer", "ctranslate2", "shard", "all"],
)
def test_offline_a_half_filled_cache_names_what_is_missing_at_once(
    files: dict[str, bytes],
    missing: list[str],
    cached: Callable[..., Path],
    registry: Registry,
    connections: list,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    snapshot = cached("acme/speech", files)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(CheckpointError) as caught:
        locate("acme/speech", registry)
    assert f"lacks {', '.join(missing)}, and HF_HUB_OFFLINE" in str(caught.value)
    assert connections == []
    assert {path.name for path in snapshot.iterdir()} == set(files)


def test_a_link_whose_file_is_gone_counts_as_missing(cached: Callable[..., Path]) -> None:
    snapshot = cached("acme/speech", COMPLETE)
    (snapshot / "model.safetensors").resolve().unlink()
    assert missing_files(snapshot) == ["model.safetensors"]


def test_without_a_network_the_error_says_what_is_missing_and_keeps_what_is_there(
    cached: Callable[..., Path], registry: Registry, connections: list
) -> None:
    snapshot = cached("acme/speech", {"config.json": b"{}"})
    with pytest.raises(CheckpointError) as caught:
        locate("acme/speech", registry)
    message = str(caught.value)
    assert "lacks model.safetensors, tokenizer.json" in message
    assert "copy the model" in message
    assert connections != []
    assert (snapshot / "config.json").read_bytes() == b"{}"


def test_offline_a_model_that_was_never_fetched(
    cache: Path, registry: Registry, connections: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(CheckpointError, match=r"not in .*needs config\.json.*HF_HUB_OFFLINE"):
        locate("acme/speech", registry)
    assert connections == []
    assert not cache.exists()


def test_only_what_is_needed_is_downloaded() -> None:
    side = ["config.json", "generation_config.json", "tokenizer.json", "merges.txt", "preprocessor_config.json"]
    other = [
        "README.md",
        ".gitattributes",
        "flax_model.msgpack",
        "tf_model.h5",
        "model.fp32.safetensors",
        "onnx/a.onnx",
    ]
    pickles = ["pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model-00001-of-00001.bin"]
    shards = ["model.safetensors.index.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    assert wanted([*side, *other, *pickles, "model.safetensors"]) == sorted([*side, "model.safetensors"])
    assert wanted([*side, *other, *pickles, *shards]) == sorted([*side, *shards])
    assert wanted([*side, *other, "pytorch_model.bin"]) == sorted([*side, "pytorch_model.bin"])
    assert wanted([*side, *other, "model.bin", "vocabulary.txt"]) == sorted([*side, "model.bin", "vocabulary.txt"])
    assert wanted(["exp/model.pt", "data/bpe.model", "README.md", "a.onnx"]) == ["data/bpe.model", "exp/model.pt"]


def test_packaged_and_cached_models_are_listed(
    cached: Callable[..., Path], make_registry: Callable[..., Registry]
) -> None:
    cached("acme/half", {"config.json": b"{}"})
    native = {"format": 1, "architecture": "ToyForTests", "config": {}, "generation": {}, "files": {}}
    cached("acme/speech", {**COMPLETE, "oasr.json": json.dumps(native).encode()})
    models = {model.name: model for model in available(make_registry(DAMAGED))}
    assert set(models) == {"damaged", "acme/half", "acme/speech"}
    assert models["damaged"].problem == "the package has lost its weights"
    assert models["acme/half"].problem == "incomplete: model.safetensors, tokenizer.json missing"
    assert (models["acme/speech"].architecture, models["acme/speech"].problem) == ("toy", None)
    assert models["acme/speech"].size > 0


@pytest.fixture
def hub(cached: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A Hub whose one model has these files; what was asked of it is written here too."""
    seen: dict[str, Any] = {"files": {**COMPLETE, "README.md": b"", "pytorch_model.bin": b"x"}}

    def model_info(self: Any, repository: str, revision: str) -> Any:
        if "error" in seen:
            raise seen["error"]
        return SimpleNamespace(siblings=[SimpleNamespace(rfilename=name) for name in seen["files"]])

    def snapshot_download(repository: str, revision: str, allow_patterns: list[str], cache_dir: Path) -> str:
        seen["asked"] = (repository, revision, allow_patterns)
        return str(cached(repository, {name: seen["files"][name] for name in allow_patterns}, reference=revision))

    monkeypatch.setattr("huggingface_hub.HfApi.model_info", model_info)
    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    return seen


def test_what_is_needed_is_downloaded_once(hub: dict, registry: Registry) -> None:
    folder = locate("acme/speech@v2", registry)
    assert hub.pop("asked") == ("acme/speech", "v2", sorted(COMPLETE))
    assert locate("acme/speech@v2", registry) == folder
    assert "asked" not in hub


def test_a_repository_without_weights_is_refused(hub: dict, registry: Registry) -> None:
    hub["files"] = {"config.json": b"{}", "tokenizer.json": b"{}"}
    with pytest.raises(CheckpointError, match=r"on the Hugging Face Hub lacks model\.safetensors"):
        locate("acme/speech", registry)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ("RepositoryNotFoundError", "has no such model, or it is private"),
        ("GatedRepoError", "accept its terms on https://huggingface.co/acme/speech"),
        ("RevisionNotFoundError", "no branch, tag or commit 'main'"),
    ],
)
def test_what_the_hub_refuses_is_explained(error: str, message: str, hub: dict, registry: Registry) -> None:
    kind = getattr(huggingface_hub.errors, error)
    hub["error"] = kind.__new__(kind)
    with pytest.raises(CheckpointError, match=message):
        locate("acme/speech", registry)


@pytest.mark.parametrize("name", ["~no-such-user/x", Path("~no-such-user"), "n" * 300, "n" * 5000, "nul\0byte"])
def test_a_name_that_no_path_can_have_is_refused(
    name: str | Path, registry: Registry, connections: list[Any], cache: Path
) -> None:
    with pytest.raises(CheckpointError):
        locate(name, registry)
    assert connections == []


def test_a_cache_in_the_home_of_nobody_holds_nothing(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", "~no-such-user/hub")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert list(available(registry)) == []
    with pytest.raises(CheckpointError, match="not in ~no-such-user/hub"):
        locate("openai/whisper-tiny", registry)
