"""A toy network, checkpoints of it, and a machine without a network."""

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from huggingface_hub import constants
from torch import nn

from oasr.errors import CheckpointError
from oasr.interfaces.architecture import Architecture, Rename, WeightRules
from oasr.interfaces.component import ComponentConfig
from oasr.interfaces.format import Checkpoint
from oasr.plugin import ComponentSpec, Kind, hookimpl
from oasr.registry import Registry


class ToyConfig(ComponentConfig):
    width: int


class Toy(Architecture):
    """A fused projection, one that stands alone, and a buffer of counts."""

    Config = ToyConfig

    def __init__(self, config: ToyConfig):
        super().__init__(config)
        self.fused = nn.Linear(config.width, 2 * config.width)
        self.out = nn.Linear(config.width, config.width, bias=False)
        self.again = nn.Linear(config.width, config.width, bias=False)
        self.again.weight = self.out.weight
        self.register_buffer("counts", torch.zeros(3, dtype=torch.int64))

    @classmethod
    def read_config(cls, checkpoint: Checkpoint) -> ToyConfig:
        return ToyConfig(width=checkpoint.config["size"])

    @classmethod
    def rename(cls, naming: str) -> WeightRules:
        if naming != "toys":
            raise CheckpointError("only toys")
        return WeightRules(
            renames=(
                Rename(r"left\.(weight|bias)", r"fused.\1", (0, 2)),
                Rename(r"right\.weight", r"fused.weight", (1, 2)),
                Rename(r"(out\.weight|counts)", r"\1"),
                Rename(r"spare\..*", None),
            ),
            zeros=(Rename(r"fused\.bias", None, (1, 2)),),
        )

    def encode(self, features: Any) -> Any:
        raise NotImplementedError

    def head(self, name: str) -> Any:
        raise NotImplementedError


class MemoryCheckpoint(Checkpoint):
    """Tensors that were never in a file."""

    def __init__(
        self, tensors: Mapping[str, torch.Tensor], naming: str = "toys", files: Mapping[str, Path] | None = None
    ):
        self.path = Path("memory")
        self.architecture = "toy"
        self.naming = naming
        self.config = {"size": 2}
        self.generation = {"length": 7}
        self.files = files or {}
        self._tensors = tensors

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return {name: tuple(tensor.shape) for name, tensor in self._tensors.items()}

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        yield from self._tensors.items()


def plugin(*specs: ComponentSpec) -> ModuleType:
    module = ModuleType("acme_toy.plugin")
    module.OASR_API = 1
    module.oasr_components = hookimpl(_named(lambda: list(specs)))
    return module


def _named(function: Callable) -> Callable:
    function.__name__ = "oasr_components"
    return function


TOY = ComponentSpec(Kind.ARCHITECTURE, "toy", "Toy", f"{__name__}:Toy", aliases=("ToyForTests",))


@pytest.fixture
def make_registry() -> Callable[..., Registry]:
    """A registry of core's built-ins, the toy and whatever else is given."""
    return lambda *specs: Registry.from_modules(plugin(TOY, *specs))


@pytest.fixture
def registry(make_registry: Callable[..., Registry]) -> Registry:
    return make_registry()


@pytest.fixture
def toy_tensors() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    return {
        "left.weight": torch.randn(2, 2, generator=generator),
        "left.bias": torch.randn(2, generator=generator),
        "right.weight": torch.randn(2, 2, generator=generator),
        "out.weight": torch.randn(2, 2, generator=generator),
        "counts": torch.tensor([1, 2, 3]),
    }


@pytest.fixture
def toy(toy_tensors: dict[str, torch.Tensor]) -> Callable[..., MemoryCheckpoint]:
    """A checkpoint of the toy: `toy()`, or with other tensors, `toy(out=None)` leaves one out."""

    def make(naming: str = "toys", **changes: torch.Tensor | None) -> MemoryCheckpoint:
        renamed = {name.replace("__", "."): tensor for name, tensor in changes.items()}
        tensors = {**toy_tensors, **renamed}
        return MemoryCheckpoint({name: tensor for name, tensor in tensors.items() if tensor is not None}, naming)

    return make


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """No connection succeeds; the addresses tried."""
    tried: list[Any] = []

    def refuse(self: socket.socket, address: Any) -> None:
        tried.append(address)
        raise OSError("the test allows no network")

    def no_address(host: Any, *rest: Any, **options: Any) -> None:
        tried.append(host)
        raise socket.gaierror("the test allows no network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", no_address)
    return tried


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the Hub."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hf" / "hub"))
    return tmp_path / "hf" / "hub"


@pytest.fixture
def cached(cache: Path) -> Callable[..., Path]:
    """Puts files into the cache as huggingface_hub does and returns the snapshot's folder."""

    def put(repository: str, files: Mapping[str, bytes], commit: str = "a" * 40, reference: str = "main") -> Path:
        root = cache / f"models--{repository.replace('/', '--')}"
        snapshot = root / "snapshots" / commit
        for number, (name, content) in enumerate(files.items()):
            blob = root / "blobs" / f"{commit[:4]}{number}"
            blob.parent.mkdir(parents=True, exist_ok=True)
            blob.write_bytes(content)
            (snapshot / name).parent.mkdir(parents=True, exist_ok=True)
            (snapshot / name).symlink_to(os.path.relpath(blob, (snapshot / name).parent))
        (root / "refs").mkdir(exist_ok=True)
        (root / "refs" / reference).write_text(commit)
        return snapshot

    return put
