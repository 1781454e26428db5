"""The models that can be used without a network: packaged ones, and those in the cache of the Hugging Face Hub."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from oasr.checkpoint.damage import shortened
from oasr.checkpoint.hub import packaged_path
from oasr.checkpoint.hub_cache import snapshots
from oasr.checkpoint.hub_files import missing_files
from oasr.checkpoint.sniff import open_checkpoint
from oasr.errors import CheckpointError, OasrError
from oasr.plugin import Kind
from oasr.registry import Registry


@dataclass(frozen=True, slots=True)
class AvailableModel:
    """A model that can be used without a network."""

    name: str
    """What to write as the model."""
    origin: str
    """`packaged` or `cached`."""
    path: Path | None
    """None for a packaged model whose package is damaged."""
    size: int
    """Bytes on disk."""
    architecture: str | None
    """The installed component that runs it; None when there is none."""
    problem: str | None
    """Why it cannot be used; None when nothing is known against it."""


def available(registry: Registry) -> Iterator[AvailableModel]:
    """Packaged models, then those in the Hub's cache."""
    for name in registry.names(Kind.MODEL):
        try:
            path = packaged_path(name, registry)
        except OasrError as error:
            yield AvailableModel(name, "packaged", None, 0, None, str(error))
        else:
            yield _describe(name, "packaged", path, registry)
    for hub_id, folder in snapshots():
        yield _describe(str(hub_id), "cached", folder, registry)


def _describe(name: str, origin: str, path: Path, registry: Registry) -> AvailableModel:
    architecture, problem = None, None
    try:
        if lacking := missing_files(path) if origin == "cached" else []:
            raise CheckpointError(f"incomplete: {shortened(lacking)} missing")
        checkpoint = open_checkpoint(path, registry)
        architecture = registry.spec(Kind.ARCHITECTURE, checkpoint.architecture).name
    except OasrError as error:
        problem = str(error)
    return AvailableModel(name, origin, path, _size(path), architecture, problem)


def _size(path: Path) -> int:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)
