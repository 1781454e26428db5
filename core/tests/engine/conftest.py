"""Engines that run toys, whole or sabotaged."""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from oasr.audio import Audio
from oasr.engine import ASREngine, DecodingOptions, EngineConfig
from oasr.plugin import ComponentSpec, Kind, hookimpl
from oasr.testing import sealed_registry
from oasr.testing.toys import plugin as toys
from oasr.testing.toys.audio import toy_audio
from oasr.testing.toys.checkpoint import write_toy
from oasr.types import StepStats

_CUDA = pytest.param(
    "cuda",
    marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")],
)
_SAMPLE_RATE = 16_000
_serial = count()
MakeEngine = Callable[..., ASREngine]


@pytest.fixture(scope="package", autouse=True)
def _single_thread() -> Iterator[None]:
    """Toys are too small to share out; on a busy machine the threads would only wait for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy(tmp_path_factory.mktemp("toys") / "toy")


@pytest.fixture(params=["cpu", _CUDA])
def device(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def half(device: str) -> str:
    """The half precision that this device computes in."""
    return "float16" if device == "cuda" else "bfloat16"


@pytest.fixture
def steps() -> list[StepStats]:
    """How busy the engine was after each step."""
    return []


@pytest.fixture
def make_engine(
    toy: Path, device: str, steps: list[StepStats], monkeypatch: pytest.MonkeyPatch
) -> Iterator[MakeEngine]:
    """An engine on the toy: `make_engine(rows=2, components={(Kind.ARCHITECTURE, "toy"): Sabotaged})`."""
    engines = []

    def make(
        *,
        rows: int = 4,
        model: Path = toy,
        components: Mapping[tuple[Kind, str], type] | None = None,
        hooks: Mapping[str, Callable] | None = None,
        **settings: Any,
    ) -> ASREngine:
        registry = sealed_registry(_plugin(components or {}, steps, hooks or {}, monkeypatch))
        settings = {"device": device, "dtype": "float32", "batching": {"max_rows": rows}} | settings
        config = EngineConfig.model_validate({"model": str(model), **settings}, context={"registry": registry})
        engines.append(ASREngine(config, registry))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


def _plugin(
    components: Mapping[tuple[Kind, str], type],
    steps: list[StepStats],
    hooks: Mapping[str, Callable],
    monkeypatch: pytest.MonkeyPatch,
) -> ModuleType:
    """The toys, some of them replaced by classes of a test, and an observer."""
    module = ModuleType(f"acme_toys_{next(_serial)}.plugin")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    specs = {(spec.kind, spec.name): spec for spec in toys.oasr_components()}
    for (kind, name), target in components.items():
        setattr(module, target.__name__, target)
        plain = ComponentSpec(kind, name, "A component of a test", "x:X")
        specs[kind, name] = replace(specs.get((kind, name), plain), target=f"{module.__name__}:{target.__name__}")

    def oasr_components() -> list[ComponentSpec]:
        return list(specs.values())

    def oasr_step_finished(stats: StepStats) -> None:
        steps.append(stats)

    module.OASR_API = toys.OASR_API
    for name, function in {
        "oasr_components": oasr_components,
        "oasr_step_finished": oasr_step_finished,
        **hooks,
    }.items():
        setattr(module, name, hookimpl(function))
    return module


@pytest.fixture
def engine(make_engine: MakeEngine) -> ASREngine:
    return make_engine()


@pytest.fixture
def alone(make_engine: MakeEngine) -> Callable[..., str]:
    """What an engine with a single row, which never batches, reads in an input."""
    lonely = make_engine(rows=1)
    return lambda audio, options=None: lonely.transcribe(audio, options).text


def speech(seed: int, seconds: float = 0.6) -> Audio:
    """An input that reads unlike any other."""
    return Audio(toy_audio(seed, seconds), _SAMPLE_RATE, f"speech-{seed}")


def constant(level: float, seconds: float = 0.6, source: str = "culprit") -> Audio:
    """An input that a sabotaged network recognises by its level, see `has_level`."""
    return Audio(torch.full((round(seconds * _SAMPLE_RATE),), level), _SAMPLE_RATE, source)


def has_level(frames: torch.Tensor, level: float) -> torch.Tensor:
    """Which rows of the toy's features (rows, time, features) are of a constant input."""
    return (frames[:, 0, 0] - level).abs() < 1e-4


GERMAN = DecodingOptions(language="de", fallback=())  # what toys say is never probable
