"""A small environment of components, so that no test sees the machine's plugins."""

import sys
from types import ModuleType

import pytest
from pydantic import Field

from oasr.interfaces.component import ComponentConfig
from oasr.plugin import ComponentSpec, Kind, hookimpl
from oasr.registry import Registry


class BeamConfig(ComponentConfig):
    """Options of the toy decoder `beam`."""

    beam: int = Field(4, ge=1, description="Hypotheses kept.")
    penalty: float = Field(1.0, description="Exponent of the\nlength penalty.")
    stop: tuple[str, ...] = Field((), description="Words to stop at.")


class WideConfig(ComponentConfig):
    """Options of the toy decoder `wide`."""

    beam: int = Field(8, ge=1, description="Hypotheses kept.")
    limit: int | None = Field(None, description="Most tokens.")


class BucketedConfig(ComponentConfig):
    """Options of the toy policy `bucketed`."""

    max_rows: int = Field(16, ge=1, description="Most rows.")


class FifoConfig(ComponentConfig):
    """Options of the toy policy `fifo`."""

    width: int = Field(2, ge=1, description="Rows at a time.")


def _plugin() -> ModuleType:
    def spec(kind: Kind, name: str, config: str | None = None, aliases: tuple[str, ...] = ()) -> ComponentSpec:
        target = f"toy_options:{config}" if config else None
        return ComponentSpec(kind, name, "A toy", "toy:Toy", config=target, aliases=aliases)

    @hookimpl
    def oasr_components():
        return [
            spec(Kind.DECODER, "beam", "BeamConfig", aliases=("beam-search",)),
            spec(Kind.DECODER, "wide", "WideConfig"),
            spec(Kind.DECODER, "plain"),
            spec(Kind.DECODER, "faulty", "Missing"),
            spec(Kind.BATCHING, "bucketed", "BucketedConfig"),
            spec(Kind.BATCHING, "fifo", "FifoConfig"),
            spec(Kind.DETECTOR, "none"),
            spec(Kind.FORMAT, "toy-format"),
        ]

    module = ModuleType("oasr_toy.plugin")
    module.OASR_API = 1
    module.oasr_components = oasr_components
    return module


@pytest.fixture(scope="session")
def toys():
    options = ModuleType("toy_options")
    for model in (BeamConfig, WideConfig, BucketedConfig, FifoConfig):
        setattr(options, model.__name__, model)
    sys.modules["toy_options"] = options
    yield Registry.from_modules(_plugin(), builtins=False)
    del sys.modules["toy_options"]


@pytest.fixture(autouse=True)
def _only_toys(toys, monkeypatch):
    monkeypatch.setattr("oasr.config.slots.default_registry", lambda: toys)
    monkeypatch.setattr("oasr.config.sources.default_registry", lambda: toys)


@pytest.fixture(scope="session")
def beam_config():
    return BeamConfig


@pytest.fixture
def write(tmp_path):
    """Write a configuration file and return its path."""

    def write(content: str | bytes):
        path = tmp_path / "oasr.toml"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
