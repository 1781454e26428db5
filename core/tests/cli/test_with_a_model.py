"""The command as a user runs it, with real weights. What is heard matters elsewhere; the sounds here are tones."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import av
import numpy as np
import pytest

from oasr.plugin import Kind
from oasr.registry import default_registry

MODEL = "tiny-en"

pytestmark = pytest.mark.skipif(
    MODEL not in default_registry().names(Kind.MODEL), reason=f"the packaged model {MODEL} is not installed"
)


def oasr(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "oasr", *map(str, arguments)]


def run(*arguments: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Few tokens, because tones can make a model talk without end."""
    command = [*oasr(*arguments), "--max-new-tokens", "4"]
    return subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=300)


def write_tone(path: Path, seconds: float = 1.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    rate = 16000
    tone = (8000 * np.sin(2 * np.pi * 440 * np.arange(int(seconds * rate)) / rate)).astype(np.int16)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("flac" if path.suffix == ".flac" else "pcm_s16le", rate=rate, layout="mono")
        frame = av.AudioFrame.from_ndarray(tone[None], format="s16", layout="mono")
        frame.rate = rate
        for packet in (*stream.encode(frame), *stream.encode(None)):
            container.mux(packet)
    return path


def test_one_file_and_standard_input_read_the_same(tmp_path: Path) -> None:
    tone = write_tone(tmp_path / "tone.wav")
    by_name = run("transcribe", tone, "--format", "json", "--quiet")
    by_pipe = run("transcribe", "-", "--format", "json", "--quiet", stdin=tone.read_bytes())
    assert (by_name.returncode, by_name.stderr) == (0, b"")
    assert (by_pipe.returncode, by_pipe.stderr) == (0, b"")
    assert json.loads(by_name.stdout) == json.loads(by_pipe.stdout) | {"source": str(tone)}
    assert json.loads(by_name.stdout)["duration"] == 1.0
    assert json.loads(by_name.stdout)["language"] == "en"


def test_a_folder_with_a_bad_file_is_read_but_for_that(tmp_path: Path) -> None:
    names = ["a b.wav", "a b.flac", "tief/日本 ü.wav", "tief/er/c.flac"]
    for name in names:
        write_tone(tmp_path / "in" / name)
    (tmp_path / "in" / "bad.mp3").write_bytes(b"nothing to hear")
    done = run("transcribe", tmp_path / "in", "-o", tmp_path / "out")
    assert (done.returncode, done.stdout) == (1, b"")
    written = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert written == {f"{name}.txt" for name in names}
    assert b"bad.mp3: is not audio" in done.stderr
    assert b"1 of 5 inputs failed" in done.stderr


def test_a_killed_run_leaves_whole_files_and_the_next_one_does_the_rest(tmp_path: Path) -> None:
    out = tmp_path / "out"
    names = [f"{number:02}.wav" for number in range(12)]
    for name in names:
        write_tone(tmp_path / "in" / name)
    # One row, so that the inputs end one after the other and the kill comes between two of them.
    arguments = ["transcribe", tmp_path / "in", "-o", out, "--format", "json,txt", "--set", "batching.max_rows=1"]
    arguments += ["--max-new-tokens", "4"]
    killed = subprocess.Popen(oasr(*arguments), stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not list(out.glob("*.txt")) and killed.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    os.kill(killed.pid, signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL, "it ended before it could be killed"

    visible = [path for path in out.iterdir() if not path.name.startswith(".")]
    assert 0 < len(visible) < 2 * len(names)
    for path in visible:
        assert path.suffix in (".json", ".txt")
        assert path.read_text(encoding="utf-8").endswith("\n")
        assert path.suffix == ".txt" or json.loads(path.read_text(encoding="utf-8"))["duration"] == 1.0
    finished = {name for name in names if (out / f"{name}.json").exists() and (out / f"{name}.txt").exists()}
    kept = {name: (out / f"{name}.json").stat().st_mtime_ns for name in finished}

    done = run(*arguments[:-2], "--skip-existing")
    assert done.returncode == 0
    assert f"skipping {len(finished)} of {len(names)} inputs".encode() in done.stderr
    assert {path.name for path in out.iterdir() if not path.name.startswith(".")} == {
        f"{name}.{form}" for name in names for form in ("json", "txt")
    }
    assert all((out / f"{name}.json").stat().st_mtime_ns == at for name, at in kept.items())


def test_a_reader_that_leaves_early_is_no_error_to_read_about(tmp_path: Path) -> None:
    for number in range(3):
        write_tone(tmp_path / f"{number}.wav")
    with subprocess.Popen(
        oasr("transcribe", tmp_path, "--quiet", "--max-new-tokens", "4"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


def test_a_full_disk_under_standard_output_is_one_message(tmp_path: Path) -> None:
    tone = write_tone(tmp_path / "tone.wav")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            oasr("transcribe", tone, "--quiet"), stdout=full, stderr=subprocess.PIPE, check=False, timeout=300
        )
    assert (done.returncode, done.stderr) == (
        1,
        b"oasr: Standard output cannot be written: No space left on device\n",
    )


def test_a_model_of_one_language_refuses_to_translate_by_name(tmp_path: Path) -> None:
    done = run("translate", write_tone(tmp_path / "tone.wav"), "--model", MODEL)
    assert (done.returncode, done.stdout) == (2, b"")
    assert (
        done.stderr == b"oasr: task 'translate' needs a multilingual checkpoint; this model only transcribes English\n"
    )


def test_hotwords_that_do_not_fit_are_a_warning(tmp_path: Path) -> None:
    tone = write_tone(tmp_path / "tone.wav")
    done = run("transcribe", tone, "--model", MODEL, "--hotwords", ",".join(f"Term{n}" for n in range(100)))
    assert done.returncode == 0
    assert f"oasr: {tone}: hotwords trimmed to the first".encode() in done.stderr


def test_the_facts_of_the_packaged_model_are_told() -> None:
    done = subprocess.run(oasr("models", "--facts", "--json"), capture_output=True, check=False, timeout=300)
    [model] = [model for model in json.loads(done.stdout) if model["name"] == MODEL]
    assert (model["languages"], model["tasks"], model["problem"]) == (["en"], ["transcribe"], None)
    assert model["size"] > 50_000_000
