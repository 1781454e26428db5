"""Memory does not grow with the length of an input."""

import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

RATE = 16_000
MOST_MEGABYTES_AN_HOUR = 50

# In a process of its own, whose high-water mark is of nothing else.
SCRIPT = """
import sys

import torch

from core.tests.engine.test_reading import Timed
from oasr.engine import ASREngine, DecodingOptions, EngineConfig
from oasr.testing import sealed_registry
from oasr.testing.toys import model, plugin

model.ToyArchitecture = Timed
detector, timestamps, toy, *paths = sys.argv[1:]
torch.set_num_threads(1)
registry = sealed_registry(plugin)
settings = {"model": toy, "device": "cpu", "batching": {"max_rows": 4}, "detector": detector}
config = EngineConfig.model_validate(settings, context={"registry": registry})
options = DecodingOptions(language="de", fallback=(), max_new_tokens=2, timestamps=timestamps == "True")
with ASREngine(config, registry) as engine:
    for path in paths:
        assert engine.transcribe(path, options).segments
        print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Five minutes of noise with pauses, and twenty."""
    generator = np.random.default_rng(0)
    minute = generator.normal(0, 3000, 60 * RATE) * np.repeat(generator.integers(0, 4, 120) > 0, RATE // 2)
    paths = [tmp_path_factory.mktemp("long") / f"{minutes}.wav" for minutes in (5, 20)]
    for path in paths:
        with wave.open(str(path), "wb") as out:
            out.setparams((1, 2, RATE, 0, "NONE", ""))
            for _ in range(int(path.stem)):
                out.writeframes(minute.astype("<i2").tobytes())
    return paths


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured with /proc")
@pytest.mark.parametrize(("detector", "timestamps"), [("none", False), ("none", True), ("energy", True)])
def test_a_longer_input_takes_no_more_memory(
    recordings: list[Path], toy: Path, detector: str, timestamps: bool
) -> None:
    arguments = [detector, str(timestamps), str(toy), *map(str, recordings)]
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[3],
    )
    assert ran.returncode == 0, ran.stderr
    shorter, longer = (int(line) / 1024 for line in ran.stdout.split())
    assert longer - shorter < MOST_MEGABYTES_AN_HOUR * 15 / 60
