"""Recognises which layout a path has by asking every installed format."""

from pathlib import Path

from oasr.checkpoint.damage import blaming, damage, shortened
from oasr.checkpoint.pickles import read_pickle
from oasr.errors import CheckpointError, ComponentError
from oasr.interfaces.format import Checkpoint, CheckpointFormat, Match
from oasr.plugin import Kind
from oasr.registry import Registry

_PICKLE_SUFFIXES = {".pt", ".pth", ".ckpt", ".bin"}
_PICKLE_STARTS = {b"PK", *(bytes((0x80, protocol)) for protocol in range(2, 6))}


def open_checkpoint(path: Path, registry: Registry, format_name: str | None = None) -> Checkpoint:
    """Open a checkpoint in the format that recognises it best, or in the one named.

    Raises `CheckpointError` when no format recognises the path, when two do equally well, or when the checkpoint is
    damaged or incomplete; and `ComponentError` when the format named is not installed.
    """
    with blaming(path, "cannot be opened"):
        if not path.exists():
            raise CheckpointError(f"{path} does not exist.")
        if not path.is_dir() and not path.is_file():
            raise CheckpointError(f"{path} is neither a folder nor a regular file.")
        format_class: type[CheckpointFormat] = registry.load(Kind.FORMAT, format_name or _best(path, registry))
        return format_class().open(path)


def _best(path: Path, registry: Registry) -> str:
    matches, failures = _ask(path, registry)
    if not matches:
        raise CheckpointError(_unrecognised(path, registry, failures))
    highest = max(match.confidence for match in matches.values())
    best = sorted(name for name, match in matches.items() if match.confidence == highest)
    if len(best) > 1:
        seen = "; ".join(f"{name}: {matches[name].why}" for name in best)
        choices = " or ".join(f"--set format={name}" for name in best)
        raise CheckpointError(f"{path} could be read by several formats ({seen}). Choose one: {choices}.")
    return best[0]


def _ask(path: Path, registry: Registry) -> tuple[dict[str, Match], dict[str, str]]:
    """By name, what the formats that recognise the path saw, and why others could not be asked."""
    matches: dict[str, Match] = {}
    failures: dict[str, str] = {}
    for name in registry.names(Kind.FORMAT):
        try:
            match = registry.load(Kind.FORMAT, name).match(path)
        except ComponentError as error:
            failures[name] = str(error)
        except Exception as error:  # a format of a plugin must not stop the others
            failures[name] = f"{type(error).__name__}: {error}"
        else:
            if match is not None:
                matches[name] = match
    return matches, failures


def _unrecognised(path: Path, registry: Registry, failures: dict[str, str]) -> str:
    if path.is_file() and (problem := damage(path)):
        return f"{path} {problem}."
    if path.is_file() and (refusal := _refusal_of_pickle(path)):
        return refusal
    installed = ", ".join(registry.names(Kind.FORMAT)) or "none"
    parts = [f"{path} is in no format that is installed ({installed}). {_found(path)}"]
    advice = "Another format may need its plugin: pip install oasr-format-... (oasr plugins lists yours)."
    parts.append(_better_path(path, registry) or advice)
    if failures:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in failures.items())
        parts.append(f"Formats that could not be asked: {reasons}")
    return " ".join(parts)


def _refusal_of_pickle(path: Path) -> str | None:
    """Why a PyTorch file is not read, which says more than that no format found in it what it looks for."""
    with path.open("rb") as file:
        if path.suffix not in _PICKLE_SUFFIXES or file.read(2) not in _PICKLE_STARTS:
            return None
    try:
        read_pickle(path)
    except CheckpointError as error:
        return str(error)
    return None


def _found(path: Path) -> str:
    if path.is_file():
        with path.open("rb") as file:
            return f"The file starts with {file.read(16)!r}."
    names = sorted(child.name + ("/" if child.is_dir() else "") for child in path.iterdir())
    return f"The folder holds {shortened(names)}." if names else "The folder is empty."


def _better_path(path: Path, registry: Registry) -> str | None:
    """The folder around a file, or a file in a folder, that some format does recognise."""
    others = [path.parent] if path.is_file() else sorted(path.iterdir())[:20]
    for other in others:
        matches, _ = _ask(other, registry)
        if matches:
            return f"{other} is recognised ({', '.join(sorted(matches))}): name that instead."
    return None
