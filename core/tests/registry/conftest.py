"""Plugins made on the spot, and folders that look like site-packages."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from oasr.plugin import ComponentSpec, hookimpl


@pytest.fixture
def make_plugin() -> Callable[..., ModuleType]:
    """A plugin module: `make_plugin("acme-oasr-x", [spec, ...], oasr_doctor=function)`."""

    def make(distribution: str, specs: list[ComponentSpec] | None = None, **hooks: Callable) -> ModuleType:
        module = ModuleType(f"{distribution.replace('-', '_')}.plugin")
        module.OASR_API = 1
        if specs is not None:

            def oasr_components() -> list[ComponentSpec]:
                return specs

            hooks = {"oasr_components": oasr_components, **hooks}
        for name, function in hooks.items():
            setattr(module, name, hookimpl(function))
        return module

    return make


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """Installs a distribution into a fresh folder on `sys.path`: `site("acme-x", source)`; returns the folder."""
    before = set(sys.modules)

    def install(name: str, source: str, *, version: str = "1.0", folder: str = "site", entry: str = "") -> Path:
        package = name.replace("-", "_")
        target = tmp_path / folder
        (target / package).mkdir(parents=True, exist_ok=True)
        (target / package / "__init__.py").touch()
        (target / package / "plugin.py").write_text(source)
        info = target / f"{package}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        line = entry or f"{name.removeprefix('oasr-')} = {package}.plugin"
        (info / "entry_points.txt").write_text(f"[oasr.plugins]\n{line}\n")
        if str(target) not in sys.path:
            monkeypatch.syspath_prepend(str(target))
        return target

    yield install
    for module in set(sys.modules) - before:
        if module.startswith(("acme", "zeta")):
            del sys.modules[module]
