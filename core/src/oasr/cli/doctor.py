"""`oasr doctor`: what this machine can run, and what to do about the rest.

`oasr doctor --json` prints `{"checks": [{"level", "subject", "finding", "advice"}]}`, where `level` is ok, warn or
fail. The exit code is 1 when something fails, else 0.
"""

import contextlib
import json
import os
import platform
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib import import_module
from importlib.metadata import Distribution, PackageNotFoundError, distributions, version
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlparse
from urllib.request import url2pathname

import typer

from oasr import __version__
from oasr.plugin import ENTRY_POINT_GROUP, Check
from oasr.registry import Registry, Status

# The import name of each is its distribution name.
_REQUIRED = ("torch", "torchaudio", "numpy", "av", "pydantic", "tokenizers", "safetensors", "huggingface_hub")
_OPTIONAL = {"triton": "fused GPU kernels", "sentencepiece": "checkpoints with a SentencePiece vocabulary"}
_SWITCHES = ("OASR_", "HF_HOME", "HF_HUB_", "HF_ENDPOINT", "CUDA_VISIBLE_DEVICES", "TRITON_INTERPRET")
_LEVELS = {
    Status.OK: "ok",
    Status.DISABLED: "ok",
    Status.UNAVAILABLE: "warn",
    Status.CONFLICT: "warn",
    Status.INCOMPATIBLE: "fail",
    Status.BROKEN: "fail",
}
_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def command(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Check this machine: versions, devices, plugins, caches. Exits 1 when something fails."""
    with contextlib.redirect_stdout(sys.stderr):  # what an imported package prints must not spoil the JSON
        checks = [check for section in _SECTIONS for check in _survive(section)]
    if as_json:
        typer.echo(json.dumps({"checks": [asdict(check) for check in checks]}, indent=2))
    else:
        for check in checks:
            advice = f"\n      -> {check.advice}" if check.advice else ""
            level = typer.style(f"{check.level:6}", fg=_COLOURS[check.level])
            typer.echo(f"{level}{check.subject}: {check.finding}{advice}")
    if any(check.level == "fail" for check in checks):
        raise typer.Exit(1)


def _survive(section: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    """A check that fails itself is a finding: doctor is run on machines where things are wrong."""
    try:
        yield from section()
    except (Exception, SystemExit) as error:
        yield Check("warn", section.__name__.strip("_"), f"could not be checked: {error!r}", "Please report this.")


def _versions() -> Iterator[Check]:
    yield Check("ok", "oasr-core", __version__)
    yield Check("ok", "python", f"{platform.python_version()} on {platform.platform()}")
    for distribution in _REQUIRED:
        # Imported, not only looked up: a wheel for another torch installs and then cannot load its native library.
        try:
            import_module(distribution)
            yield Check("ok", distribution, version(distribution))
        except (Exception, SystemExit) as error:
            advice = f"pip install --force-reinstall {distribution}"
            yield Check("fail", distribution, f"cannot be imported: {error!r}", advice)
    for distribution, purpose in _OPTIONAL.items():
        try:
            yield Check("ok", distribution, version(distribution))
        except PackageNotFoundError:
            yield Check("ok", distribution, f"not installed; optional, for {purpose}")


def _devices() -> Iterator[Check]:
    try:
        torch: Any = import_module("torch")
    except Exception:
        yield Check("warn", "devices", "unknown, because torch cannot be imported", "Repair torch first.")
        return
    if not torch.cuda.is_available():
        if not shutil.which("nvidia-smi") and not Path("/proc/driver/nvidia").exists():
            yield Check("ok", "devices", "CPU only; no NVIDIA driver found")
        elif torch.version.cuda is None:
            advice = "Install a build of torch for CUDA: https://pytorch.org/get-started/locally"
            yield Check("warn", "devices", "CPU only; there is an NVIDIA GPU, but torch is built without CUDA", advice)
        else:
            advice = "See that `nvidia-smi` works, and that CUDA_VISIBLE_DEVICES hides nothing."
            found = f"CPU only; there is an NVIDIA GPU, which torch for CUDA {torch.version.cuda} cannot use"
            yield Check("warn", "devices", found, advice)
        return
    for index in range(torch.cuda.device_count()):
        facts = torch.cuda.get_device_properties(index)
        memory = f"{facts.total_memory / 2**30:.0f} GiB"
        yield Check("ok", f"cuda:{index}", f"{facts.name}, {memory}, compute capability {facts.major}.{facts.minor}")


def _int8() -> Iterator[Check]:
    try:
        from oasr.engine.device import multiplies_int8_exactly
    except Exception:
        return  # what is wrong with torch has been said
    if multiplies_int8_exactly():
        yield Check("ok", "int8 on the CPU", "exact: --dtype int8 can be used")
    else:
        yield Check("warn", "int8 on the CPU", "not exact on this processor", "Use --dtype float32.")


def _plugins() -> Iterator[Check]:
    registry = Registry.discover()
    for record in registry.records:
        level: Any = _LEVELS[record.status]
        finding = "; ".join(filter(None, (f"{record.distribution} {record.version}", record.reason, record.note)))
        advice = f"oasr plugins show {record.name}" if level != "ok" else ""
        yield Check(level, f"plugin {record.name}", f"{record.status}, {finding}", advice)
    for warning in registry.warnings:
        yield Check("warn", "environment", warning, "Correct or unset the variable.")
    for result in registry.hooks.collect("oasr_doctor", Check):
        if result.error is not None:
            advice = f"Report this to the authors of {result.plugin.partition(':')[0]}."
            yield Check("warn", result.plugin, f"its own check raised {result.error!r}", advice)
        yield from result.value or ()


def _environment() -> Iterator[Check]:
    switches = sorted(name for name in os.environ if name.startswith(_SWITCHES))
    # Names that hold a secret are shown without it.
    shown = [f"{name}={os.environ[name] if 'TOKEN' not in name else '***'}" for name in switches]
    yield Check("ok", "environment", ", ".join(shown) or "no switches set")


def _editable_installs() -> Iterator[Check]:
    """Entry points are written at install time: editing the pyproject.toml of an editable install changes nothing."""
    for distribution in distributions():
        project = _editable_project(distribution)
        if project is None or not (project / "pyproject.toml").is_file():
            continue
        declared = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8")).get("project", {})
        wanted = declared.get("entry-points", {}).get(ENTRY_POINT_GROUP, {})
        present = {each.name: each.value for each in distribution.entry_points if each.group == ENTRY_POINT_GROUP}
        if wanted != present:
            stale = ", ".join(sorted(name for name in wanted | present if wanted.get(name) != present.get(name)))
            finding = f"{project / 'pyproject.toml'} and the installed entry points differ in {stale}"
            yield Check("warn", distribution.metadata["Name"], finding, f"Re-run: pip install -e {project}")


def _editable_project(distribution: Distribution) -> Path | None:
    origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    if not origin.get("dir_info", {}).get("editable"):
        return None
    return Path(url2pathname(urlparse(origin["url"]).path))


def _model_cache() -> Iterator[Check]:
    from oasr.checkpoint.hub_cache import cache_folder

    cache = cache_folder()
    existing = next(folder for folder in (cache, *cache.parents) if folder.exists())
    if os.access(existing, os.W_OK):
        yield Check("ok", "model cache", str(cache))
    else:
        advice = "Set HF_HOME to a folder you may write to; models on disk work regardless."
        yield Check("warn", "model cache", f"{cache} is not writable", advice)


_SECTIONS = (_versions, _devices, _int8, _plugins, _environment, _editable_installs, _model_cache)
