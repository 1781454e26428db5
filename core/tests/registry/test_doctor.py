"""`oasr doctor` runs on machines where things are wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOUND = "from oasr.plugin import hookimpl\nOASR_API = 1\n@hookimpl\ndef oasr_components(): return []\n"


def checks_of(environ: dict[str, str], *paths: Path) -> tuple[int, dict[str, dict]]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OASR_")} | environ
    inherited = [environment["PYTHONPATH"]] if "PYTHONPATH" in environment else []
    environment["PYTHONPATH"] = os.pathsep.join([*map(str, paths), *inherited])
    done = subprocess.run(
        [sys.executable, "-m", "oasr", "doctor", "--json"], env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, {check["subject"]: check for check in json.loads(done.stdout)["checks"]}


def test_a_torch_that_cannot_be_loaded_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("print('loading')\nraise OSError('libcudart.so.99: cannot open')")
    code, checks = checks_of({}, tmp_path)
    assert code == 1
    assert checks["torch"]["level"] == "fail"
    assert "libcudart.so.99" in checks["torch"]["finding"]
    assert checks["devices"]["level"] == "warn"
    assert checks["plugin core"]["level"] == "ok"


TORCH = """
class cuda:
    is_available = staticmethod(lambda: False)
class version:
    cuda = {!r}
"""


@pytest.mark.parametrize(
    ("driver", "cuda", "level", "finding"),
    [
        (False, "13.0", "ok", "CPU only; no NVIDIA driver found"),
        (False, None, "ok", "CPU only; no NVIDIA driver found"),
        (True, "13.0", "warn", "torch for CUDA 13.0 cannot use"),
        (True, None, "warn", "torch is built without CUDA"),
    ],
)
def test_a_machine_without_a_gpu_lacks_nothing(
    tmp_path: Path, driver: bool, cuda: str | None, level: str, finding: str
) -> None:
    if Path("/proc/driver/nvidia").exists():
        pytest.skip("there is a driver")
    (tmp_path / "torch.py").write_text(TORCH.format(cuda))
    (tmp_path / "bin").mkdir()
    if driver:
        (tmp_path / "bin" / "nvidia-smi").write_text("#!/bin/sh\n")
        (tmp_path / "bin" / "nvidia-smi").chmod(0o755)
    _, checks = checks_of({"PATH": str(tmp_path / "bin")}, tmp_path)
    assert checks["devices"]["level"] == level
    assert finding in checks["devices"]["finding"]


@pytest.mark.parametrize(("declared", "level"), [("acme_x.plugin", None), ("acme_x.renamed", "warn")])
def test_an_editable_install_that_is_out_of_date(site, tmp_path: Path, declared: str, level: str | None) -> None:
    folder = site("acme-x", SOUND)
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text(f'[project.entry-points."oasr.plugins"]\nacme-x = "{declared}"\n')
    origin = {"url": project.as_uri(), "dir_info": {"editable": True}}
    (folder / "acme_x-1.0.dist-info" / "direct_url.json").write_text(json.dumps(origin))
    _, checks = checks_of({}, folder)
    assert checks.get("acme-x", {}).get("level") == level
    if level:
        assert checks["acme-x"]["advice"] == f"Re-run: pip install -e {project}"


def test_switches_of_the_environment_are_listed_without_secrets(tmp_path: Path) -> None:
    # Emptied of plugins, so that the only finding under this subject is the list itself.
    _, checks = checks_of({"OASR_PLUGINS": "", "HF_HUB_TOKEN": "secret"}, tmp_path)
    assert "OASR_PLUGINS=" in checks["environment"]["finding"]
    assert "secret" not in json.dumps(checks)
