"""A configuration as TOML text for people."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from oasr.config.layers import BARE_KEY, dotted, flattened
from oasr.config.schema import EngineConfig
from oasr.config.slots import Selection


def document(config: EngineConfig) -> str:
    """Every key with its value and a comment; a key without a value is commented out."""
    tables, lines = [], []
    for key, field in EngineConfig.model_fields.items():
        value = getattr(config, key)
        if isinstance(value, Selection | BaseModel):
            tables += ["", *_comment(field), f"[{key}]", *_table(value)]
        else:
            lines += [*_comment(field), _assignment(key, value, field)]
    return "\n".join([*lines, *tables, ""])


def assignments(config: EngineConfig) -> dict[str, str]:
    """One line `decoder.beam = 8` for each dotted key that `load_config` gives an origin for."""
    return {
        dotted(path): f"{dotted(path)} = {toml_value(value)}" if value is not None else f"# {dotted(path)} is not set"
        for path, value in flattened(config.model_dump(mode="json"))
    }


def toml_value(value: Any) -> str:
    """A value of a JSON-like tree in TOML; entries of a dict that are None are left out, as TOML has no null."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        pairs = (f"{_key(key)} = {toml_value(below)}" for key, below in value.items() if below is not None)
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    return repr(value)


def _table(value: Selection | BaseModel) -> Iterator[str]:
    section = value.options if isinstance(value, Selection) else value
    if isinstance(value, Selection):
        yield "# Name of the component; the other keys here are its options."
        yield f"name = {toml_value(value.name)}"
    if section is None:
        return
    dumped = section.model_dump(mode="json")
    for key, field in type(section).model_fields.items():
        yield from _comment(field)
        yield _assignment(key, dumped[key], field)


def _comment(field: FieldInfo) -> list[str]:
    return [f"# {' '.join(field.description.split())}"] if field.description else []


def _assignment(key: str, value: Any, field: FieldInfo) -> str:
    if value is not None:
        return f"{_key(key)} = {toml_value(value)}"
    example = (field.examples or ["..."])[0]
    return f"# {_key(key)} = {toml_value(example)}"


def _key(key: str) -> str:
    return key if BARE_KEY.fullmatch(key) else toml_value(key)
