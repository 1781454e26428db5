"""Every error OASR raises on purpose.

A message says what happened, what exists and what to do next. Catch `OasrError` to handle all of them;
anything else that escapes is a defect in OASR or in a plugin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oasr.types import Outcome


class OasrError(Exception):
    """Root of all errors raised on purpose."""


class MissingDependencyError(OasrError):
    """An optional package is absent; the message names the `pip install` that brings it."""


class ComponentError(OasrError, ValueError):
    """A component could not be found, chosen or loaded.

    Also a `ValueError`, so that pydantic reports it beside the other faults of a configuration.
    """


class UnknownComponentError(ComponentError):
    """No installed plugin provides a component of that kind and name."""


class AmbiguousComponentError(ComponentError):
    """Several distributions provide the name; the message lists the `name@distribution` forms."""


class ComponentLoadError(ComponentError):
    """The component is declared, but its module or class cannot be used."""


class ConfigError(OasrError, ValueError):
    """A configuration file, `--set` or keyword is wrong."""


class AudioError(OasrError):
    """An audio input cannot be used. `source` names the input as the user gave it."""

    def __init__(self, source: str, problem: str):
        super().__init__(f"{source}: {problem}")
        self.source = source
        self.problem = problem

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.source, self.problem)


class EmptyAudioError(AudioError):
    """The input has no bytes, or no samples could be decoded from it."""


class NoAudioStreamError(AudioError):
    """The container is readable but holds no audio stream."""


class UnsupportedAudioError(AudioError):
    """The bytes are not audio in a known container or codec."""


class InvalidSamplesError(AudioError):
    """The samples are NaN or infinite, of a wrong type, or of an ambiguous shape."""


class AudioLimitError(AudioError):
    """Decoding passed the configured limit of seconds or bytes."""


class CheckpointError(OasrError):
    """A checkpoint is missing, damaged, incomplete or of a variant that is not supported."""


class ModelNotFoundError(CheckpointError):
    """Nothing of the name given can be had: no path, packaged model or model of the Hub."""


class RequestError(OasrError, ValueError):
    """A request asks for something this model or decoder cannot do, or is malformed."""


class RequestAbortedError(OasrError):
    """The request was aborted before it finished."""


class DeviceError(OasrError):
    """The device cannot run the model, or has no memory left for this input."""


class ModelError(OasrError):
    """The model, or a search or tokenizer that works for it, raised on this input."""


class NonFiniteError(OasrError):
    """The model computed NaN or infinity, also in float32."""


class BatchError(OasrError):
    """Some of many inputs failed. `outcomes` holds all of them, in the order given, the finished ones included."""

    def __init__(self, outcomes: Sequence[Outcome]):
        failed = [outcome for outcome in outcomes if outcome.error is not None]
        shown = "; ".join(named_error(outcome.source, outcome.error) for outcome in failed[:5])
        super().__init__(f"{len(failed)} of {len(outcomes)} inputs failed (the rest is in .outcomes): {shown}")
        self.outcomes = tuple(outcomes)

    def __reduce__(self) -> tuple[type, tuple[tuple[Outcome, ...]]]:
        return type(self), (self.outcomes,)


def named_error(source: str, error: OasrError | None) -> str:
    """What went wrong with an input, beginning with its name, which some messages hold already."""
    text = str(error)
    return text if text.startswith(source) else f"{source}: {text}"
