"""Distributions of a stranger, installed by pip: found, checked and picked by name, without a change of core."""

import os
import subprocess
import sys
import wave
from collections.abc import Callable
from pathlib import Path

import pytest

from oasr.testing.toys.audio import toy_audio
from oasr.testing.toys.checkpoint import write_toy

EXAMPLES = Path(__file__).parents[1] / "examples"
PROJECT = EXAMPLES / "plugin-decoder"
STREAMING = EXAMPLES / "plugin-streaming"
Run = Callable[..., subprocess.CompletedProcess]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples as pip leaves them, and beside them the toys as an entry point, for something to transcribe with."""
    site = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--no-build-isolation", "--no-deps", "--no-compile", "--target", str(site)]
    pip = subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, str(PROJECT), str(STREAMING)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert pip.returncode == 0, pip.stderr
    info = site / "acme_oasr_toys-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-oasr-toys\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[oasr.plugins]\nacme-toys = oasr.testing.toys.plugin\n")
    return site


@pytest.fixture(scope="module")
def run(site: Path) -> Run:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OASR_")}
    environment["PYTHONPATH"] = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])

    def run(*command: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "-m", *command], env=environment, capture_output=True, text=True, check=False, cwd=site
        )

    return run


@pytest.fixture(scope="module")
def transcribe(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """`oasr transcribe` of ten seconds with the toy and more arguments."""
    folder = tmp_path_factory.mktemp("toy")
    model = write_toy(folder / "toy")
    samples = (toy_audio(1, seconds=10.0) * 32767).short().numpy()
    with wave.open(str(folder / "a.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(samples.tobytes())
    inputs = [str(folder / "a.wav"), "--model", str(model), "--device", "cpu"]
    return lambda *arguments: run("oasr", "transcribe", *inputs, *arguments)


def test_it_is_under_100_lines() -> None:
    sources = list(PROJECT.glob("src/*/*.py"))
    assert len(sources) == 4
    assert sum(len(path.read_text().splitlines()) for path in sources) < 100


def test_it_is_listed(run: Run) -> None:
    done = run("oasr", "plugins")
    [line] = [line for line in done.stdout.splitlines() if "acme-oasr-decoder-norepeat" in line]
    assert line.split()[3] == "ok"
    assert line.endswith("decoder no-repeat")


def test_it_passes_the_kit(run: Run) -> None:
    done = run("oasr", "check", "acme-oasr-decoder-norepeat")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "decoder no-repeat" in done.stdout


@pytest.mark.parametrize("project", [PROJECT, STREAMING], ids=lambda project: project.name)
def test_its_own_tests_pass(run: Run, project: Path) -> None:
    done = run("pytest", "-q", "-p", "no:cacheprovider", "-c", str(project / "pyproject.toml"), str(project / "tests"))
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_the_streaming_architecture_is_listed(run: Run) -> None:
    done = run("oasr", "plugins", "show", "acme-running")
    assert done.returncode == 0, done.stderr
    assert ["status:", "ok"] in [line.split() for line in done.stdout.splitlines()]
    assert "architecture acme-running" in done.stdout


def test_the_streaming_architecture_passes_the_kit(run: Run) -> None:
    """As far as that goes without a checkpoint, which its own tests write."""
    done = run("oasr", "check", "acme-oasr-running")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failed" in done.stdout


def test_it_is_picked_by_name(transcribe: Run) -> None:
    default = transcribe()
    assert default.returncode == 0, default.stderr
    # Letters that may occur once in each window of a second: unlike anything the default says.
    chosen = transcribe("--set", "decoder=no-repeat", "--set", "decoder.ngram=1")
    assert chosen.returncode == 0, chosen.stderr
    assert chosen.stdout.strip()
    assert chosen.stdout != default.stdout


def test_its_options_are_checked(transcribe: Run) -> None:
    done = transcribe("--set", "decoder=no-repeat", "--set", "decoder.ngrams=4")
    assert done.returncode == 2
    assert 'Did you mean "ngram"?' in done.stderr


def test_what_it_cannot_honour_is_refused_by_name(transcribe: Run) -> None:
    done = transcribe("--set", "decoder=no-repeat", "--temperature", "0.5")
    assert done.returncode != 0
    assert "no-repeat" in done.stderr
    assert "temperature" in done.stderr
