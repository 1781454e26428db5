"""How the faults of a configuration are worded: one line each, `path: what is wrong; what exists`."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from oasr.registry.hints import did_you_mean

Path = tuple[str | int, ...]


def refusal(title: str, faults: Iterable[tuple[Path, str]]) -> ValidationError:
    """Faults at paths, to be raised inside a validator: pydantic then puts the path of the field in front."""
    return ValidationError.from_exception_data(
        title,
        [
            InitErrorDetails(type=PydanticCustomError("fault", "{what}", {"what": what}), loc=path, input=None)
            for path, what in faults
        ],
    )


def worded(error: ValidationError, model: type[BaseModel], remarks: Mapping[str, str] | None = None) -> ValidationError:
    """The same faults in OASR's words. `remarks` says why a certain top-level key of `model` is refused."""
    return refusal(
        error.title,
        [(detail["loc"], _what(detail, model, remarks or {})) for detail in error.errors(include_url=False)],
    )


def listing(error: ValidationError, origin: Callable[[Path], str | None] = lambda path: None) -> str:
    """Text for a person, from worded faults. `origin` tells where the value at a path came from."""
    lines = []
    for detail in error.errors(include_url=False):
        source = origin(detail["loc"])
        path = ".".join(map(str, detail["loc"])) or "configuration"
        lines.append(f"{path}: {detail['msg']}" + (f" (from {source})" if source else ""))
    if len(lines) == 1:
        return lines[0]
    return "\n  ".join([f"the configuration has {len(lines)} faults:", *lines])


def _what(detail: ErrorDetails, model: type[BaseModel], remarks: Mapping[str, str]) -> str:
    kind, path, value = detail["type"], detail["loc"], detail["input"]
    if kind == "value_error":
        return str(detail["ctx"]["error"])  # raised by a validator, whose text stands on its own
    if kind == "extra_forbidden":
        if len(path) == 1 and path[0] in remarks:
            return remarks[str(path[0])]
        known = sorted(_keys(model, path[:-1]))
        hint = did_you_mean(str(path[-1]), known) or (f" Keys are {', '.join(known)}." if known else "")
        return f"unknown key.{hint}"
    if kind in ("fault", "missing") or not isinstance(value, str | int | float | bool):
        return detail["msg"]
    return f"{detail['msg']}, not {_shortened(value)}"


def _keys(model: type[BaseModel], path: Path) -> Iterable[str]:
    """Keys that exist in the section at `path`; none when it is no section with fixed keys."""
    for part in path:
        field = model.model_fields.get(str(part))
        section = field.annotation if field else None
        if not (isinstance(section, type) and issubclass(section, BaseModel)):
            return ()
        model = section
    return model.model_fields


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
