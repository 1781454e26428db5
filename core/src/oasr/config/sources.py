"""Where a configuration comes from: component defaults < checkpoint < file < flags < `--set`."""

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from oasr.config.faults import listing
from oasr.config.layers import BARE_KEY, DEFAULT, Layer, dotted, flattened, origin_at, values
from oasr.config.schema import LAYERING, EngineConfig, in_words
from oasr.errors import ConfigError
from oasr.registry import Registry, default_registry


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A configuration and, for each of its dotted keys, where the value came from."""

    config: EngineConfig
    origins: Mapping[str, str]
    """`component default`, `checkpoint`, the path of the file, the flag such as `--device`, or `--set`."""


def load_config(
    file: Path | str | None = None,
    sets: Sequence[str] = (),
    flags: Mapping[str, object] | None = None,
    checkpoint_defaults: Mapping[str, object] | None = None,
    registry: Registry | None = None,
) -> LoadedConfig:
    """Merge the sources and validate once.

    `sets` are `KEY=VALUE` texts, of which the later wins; `flags` are values by dotted key, where None means not
    given. Raises `ConfigError` listing every fault with its source.
    """
    known = registry or default_registry()
    from_file = LAYERING.layer(read_toml(Path(file)), str(file), known) if file is not None else {}
    assigned = [(parse_set(text), "--set") for text in sets]
    flagged = [
        (_nested(key.split("."), value), "--" + key.replace("_", "-"))
        for key, value in (flags or {}).items()
        if value is not None
    ]
    typed: Layer = {}
    for written, origin in [*flagged, *assigned]:
        typed = LAYERING.merge(typed, LAYERING.layer(written, origin, known))
    chosen = LAYERING.closed(LAYERING.merge(LAYERING.closed(from_file), typed))
    below = LAYERING.closed(LAYERING.layer(checkpoint_defaults or {}, "checkpoint", known))
    merged = LAYERING.merge(below, chosen)
    try:
        config = TypeAdapter(EngineConfig).validate_python(values(merged), context={"registry": known})
    except ValidationError as error:
        raise ConfigError(listing(in_words(error), lambda path: origin_at(merged, path))) from None
    paths = [path for path, _ in flattened(config.model_dump())]
    return LoadedConfig(config, {dotted(path): origin_at(merged, path) or DEFAULT for path in paths})


def read_toml(file: Path) -> dict[str, Any]:
    """The tables of a file. Raises `ConfigError` naming the file and, for bad syntax, the line."""
    if os.path.exists(file) and not file.is_file():  # noqa: PTH110  which never raises
        raise ConfigError(f"{file}: is not a regular file")  # a pipe would block, and a device never end
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"{file}: there is no such file. `oasr config init -o {file}` writes one.") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a null byte
        raise ConfigError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{file}: is not UTF-8 text (at line {line}). Save it as UTF-8.") from None
    except ValueError as error:
        raise ConfigError(f"{file}: is not valid TOML: {error}") from None
    except RecursionError:
        raise ConfigError(f"{file}: is nested too deeply") from None


def parse_set(text: str) -> dict[str, Any]:
    """The nested dict that `decoder.beam=8` means. What is not a TOML value is text. Raises `ConfigError`."""
    key, equals, value = text.partition("=")
    parts = [part.strip() for part in key.split(".")]
    if not equals or not all(map(BARE_KEY.fullmatch, parts)):
        raise ConfigError(f"--set {text}: write KEY=VALUE with a dotted key, such as audio.workers=8")
    return _nested(parts, _toml_or_text(value.strip()))


def _toml_or_text(text: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    # No option is a date, but a name may look like one; and a line break must not bring in more keys.
    if parsed.keys() != {"value"} or not isinstance(parsed["value"], str | bool | int | float | list | dict):
        return text
    return parsed["value"]


def _nested(parts: Sequence[str], value: Any) -> dict[str, Any]:
    for part in reversed(parts):
        value = {part: value}
    return dict(value)
