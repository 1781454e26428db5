"""Slots: the places of a configuration where the user picks a component by name.

A slot takes a name (`decoder = "x"`), a table (`[decoder]` with `name` and options) or, in Python, a `Selection`.
The options are checked by the model that the chosen component declares.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, ValidationError
from pydantic_core import core_schema

from oasr.config.faults import refusal, worded
from oasr.interfaces.component import ComponentConfig
from oasr.plugin import Kind
from oasr.registry import Registry, default_registry


@dataclass(frozen=True, slots=True)
class Selection:
    """The component in a slot and its options; None when it has nothing to set."""

    name: str
    options: ComponentConfig | None = None


@dataclass(frozen=True, slots=True)
class Unnamed:
    """Options for the component that the model will choose; `EngineConfig.with_defaults` checks them once it has."""

    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Slot:
    """Annotation of a field that holds a component of one kind."""

    kind: Kind
    default: str | None = None
    """What a table without a name means; None leaves it to the model."""

    def canonical(self, name: str, registry: Registry) -> str:
        """The name itself for an alias; `name@distribution` stays, for it says more. Raises `ComponentError`."""
        spec = registry.spec(self.kind, name)
        return name if "@" in name else spec.name

    def select(self, value: Any, registry: Registry) -> Selection | Unnamed | None:
        """Validate what was written in the slot.

        Raises `ComponentError` for the name and `ValidationError` for the options; pydantic reports both.
        """
        options = as_table(value)
        if not isinstance(options, dict):
            text = f"write a name or a table with a name and options, not {value!r}"
            raise refusal(self.kind, [((), text)])
        name = options.pop("name", self.default)
        if name is None:
            return Unnamed(options) if options else None
        if not isinstance(name, str):
            raise refusal(self.kind, [(("name",), f"write the name of a {self.kind}, not {name!r}")])
        name = self.canonical(name, registry)
        model = registry.config_model(self.kind, name)
        if model is not None:
            try:
                return Selection(name, model.model_validate(options))
            except ValidationError as error:
                raise worded(error, model) from None
        if options:
            text = f'{self.kind} "{name}" has no options'
            raise refusal(self.kind, [((key,), text) for key in options])
        return Selection(name)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """Validation and serialization of the field, for pydantic."""
        return core_schema.with_info_plain_validator_function(
            lambda value, info: self.select(value, registry_in(info.context)),
            serialization=core_schema.plain_serializer_function_ser_schema(_dump, info_arg=True),
        )


def registry_in(context: Any) -> Registry:
    """The registry given with pydantic's validation context, else the one of this process."""
    return (context or {}).get("registry") or default_registry()


def as_table(value: Any) -> Any:
    """What was written in a slot as a new dict of name and options that were set; a value of a wrong type as it is."""
    if isinstance(value, str):
        return {"name": value}
    if isinstance(value, Selection):
        return {"name": value.name, **(value.options.model_dump(exclude_unset=True) if value.options else {})}
    if isinstance(value, Unnamed):
        return dict(value.options)
    return {} if value is None else dict(value) if isinstance(value, Mapping) else value


def _dump(value: Any, info: core_schema.SerializationInfo) -> Any:
    """As a table, so that the dump can be read back: pydantic alone would leave out what a subclass adds."""
    if not isinstance(value, Selection) or value.options is None:
        return as_table(value) if value is not None else None
    options = value.options.model_dump(
        mode=info.mode,
        by_alias=info.by_alias,
        exclude_unset=info.exclude_unset,
        exclude_defaults=info.exclude_defaults,
        exclude_none=info.exclude_none,
    )
    return {"name": value.name, **options}
