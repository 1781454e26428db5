"""The keys of a configuration. Their docstrings are what `oasr config init` and the documentation print."""

import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
)

from oasr.config.faults import listing, worded
from oasr.config.layers import Layering, values
from oasr.config.slots import Selection, Slot, Unnamed, registry_in
from oasr.errors import ConfigError
from oasr.plugin import Kind
from oasr.registry import Registry

_FACTS = (
    "architecture",
    "frame_shift",
    "frontend",
    "frontend_options",
    "heads",
    "languages",
    "max_input_seconds",
    "sample_rate",
    "tasks",
    "text_tokens",
    "tokenizer",
    "vocabulary_size",
)
_REMARKS = {
    **dict.fromkeys(_FACTS, "is a fact of the checkpoint, which a configuration cannot override. Remove it."),
    "ckpt_dir": "is another word for model. Set one of the two.",
}
_DTYPE_SPELLINGS = {"fp32": "float32", "float": "float32", "fp16": "float16", "half": "float16", "bf16": "bfloat16"}


def _as_text(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _as_dtype(value: Any) -> Any:
    return _DTYPE_SPELLINGS.get(value, value) if isinstance(value, str) else value


def _known_device(name: str) -> str:
    if not re.fullmatch(r"auto|cpu|cuda(:[0-9]{1,3})?", name):
        raise ValueError(f'"{name}" is not a device. Write auto, cpu, cuda or cuda:N, such as cuda:0.')
    return name


def _known_format(name: str, info: ValidationInfo) -> str:
    return Slot(Kind.FORMAT).canonical(name, registry_in(info.context))


class AudioConfig(BaseModel):
    """What one input may cost before it is refused, and how inputs are decoded."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)

    max_seconds: float = Field(default=24 * 60 * 60.0, gt=0, allow_inf_nan=False)
    """Longest audio accepted, in seconds."""
    max_bytes: int = Field(default=4 * 1024**3, ge=1)
    """Largest file accepted, in bytes."""
    workers: int = Field(default=4, ge=1, le=256)
    """Threads that open audio, and as many that decode the rest of what is long."""


class StreamingConfig(BaseModel):
    """Live streams."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)

    max_streams: int = Field(default=256, ge=1)
    """Most live streams at once of one chunk size and left context, allocated together when the first is opened."""


class EngineConfig(BaseModel):
    """Everything an engine is built from. Raises `ConfigError`, which lists all faults at once.

    Equal to what it dumps: `EngineConfig.model_validate(config.model_dump()) == config`. Pass
    `context={"registry": registry}` to validate against another registry than the one of this process.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    model: Annotated[str, BeforeValidator(_as_text), Field(min_length=1)] | None = Field(
        default=None, validation_alias=AliasChoices("model", "ckpt_dir"), examples=["path/to/checkpoint"]
    )
    """What to load: a folder or file, a Hugging Face Hub id, or the name of a packaged model."""
    format: Annotated[str, AfterValidator(_known_format)] | None = Field(default=None, examples=["oasr"])
    """Layout of the checkpoint; recognised from its files unless given."""
    device: Annotated[str, AfterValidator(_known_device)] = "auto"
    """Where to compute: auto, cpu, cuda or cuda:N."""
    dtype: Annotated[Literal["auto", "float32", "float16", "bfloat16", "int8"], BeforeValidator(_as_dtype)] = "auto"
    """Number format of the weights: auto, float32, float16, bfloat16, or on a CPU int8."""
    decoder: Annotated[Selection | Unnamed | None, Slot(Kind.DECODER)] = Field(default=None, examples=["NAME"])
    """The search over what the model computes; the model's own default unless given."""
    batching: Annotated[Selection, Slot(Kind.BATCHING, default="bucketed")] = Field(
        default="bucketed", validate_default=True
    )
    """The policy that chooses which audio to encode together."""
    detector: Annotated[Selection, Slot(Kind.DETECTOR, default="none")] = Field(
        default="none",
        validate_default=True,
    )
    """Where somebody speaks: none reads on from window to window, any other reads what it finds as one batch."""
    audio: AudioConfig = AudioConfig()
    """What one input may cost, and how inputs are decoded."""
    streaming: StreamingConfig = StreamingConfig()
    """Live streams."""

    def __init__(self, /, **values: Any):
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ConfigError(listing(in_words(error))) from None

    # Tells pydantic that validation need not go through __init__, which would lose the registry in the context.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @classmethod
    def model_validate(cls, obj: Any, **settings: Any) -> Self:
        """As in pydantic, with `ConfigError` in place of `ValidationError`."""
        try:
            return super().model_validate(obj, **settings)
        except ValidationError as error:
            raise ConfigError(listing(in_words(error))) from None

    def with_defaults(self, defaults: Mapping[str, Any], registry: Registry | None = None) -> "EngineConfig":
        """This configuration over a checkpoint's defaults: whatever was set here wins.

        Options of another component than the one chosen here are left out. Raises `ConfigError`.
        """
        context = {"registry": registry}
        known = registry_in(context)
        lower = LAYERING.closed(LAYERING.layer(defaults, "", known))
        higher = LAYERING.closed(LAYERING.layer(self.model_dump(exclude_unset=True), "", known))
        return EngineConfig.model_validate(values(LAYERING.merge(lower, higher)), context=context)

    def selected(self, slot: str) -> Selection:
        """The component in a slot. Raises `ConfigError` when neither the user nor the checkpoint has chosen one."""
        value = getattr(self, slot)
        if not isinstance(value, Selection):
            raise ConfigError(f"{slot}: nothing is chosen and the checkpoint has no default. Set {slot} to a name.")
        return value


SLOTS = {
    key: slot for key, field in EngineConfig.model_fields.items() for slot in field.metadata if isinstance(slot, Slot)
}
LAYERING = Layering(SLOTS, synonyms={"ckpt_dir": "model"})


def in_words(error: ValidationError) -> ValidationError:
    """Faults of an `EngineConfig`, worded."""
    return worded(error, EngineConfig, _REMARKS)
