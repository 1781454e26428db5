"""Windows whose numbers overflowed are read again in float32."""

import warnings

import torch

from oasr.engine.build import Parts
from oasr.engine.frames import FrameRunner
from oasr.engine.runner import Runner
from oasr.engine.window import Decoded, Window, as_error
from oasr.errors import NonFiniteError, OasrError


class SecondReading:
    """The same model in float32, loaded when it is first needed: half precision overflows on some weights and cards."""

    def __init__(self, parts: Parts, dtype: torch.dtype):
        """`dtype` is what windows are read in first."""
        self._parts = parts
        self._dtype = dtype
        self._runner: Runner | FrameRunner | None = None

    def read(self, window: Window, source: str) -> Decoded | OasrError:
        """What a window says, or why that cannot be had."""
        if self._dtype == torch.float32:
            return NonFiniteError(f"{source}: the model computed NaN or infinity in float32")
        if self._runner is None:
            warnings.warn(
                f"The model computed NaN or infinity in {self._dtype}; reading such windows again in float32. If this "
                "happens often, set --dtype float32",
                stacklevel=2,
            )
        try:
            self._runner = self._runner or self._parts.runner(torch.float32, rows=1)
            result = _alone(self._runner, window)
        except Exception as error:
            self._runner = None  # its rows are in an unknown state
            return as_error(error)
        if isinstance(result, Decoded) and not result.finite:
            return NonFiniteError(f"{source}: the model computed NaN or infinity, also in float32")
        return result


def _alone(runner: Runner | FrameRunner, window: Window) -> Decoded | OasrError:
    _, failed = runner.start([window])
    results: list[tuple[Window, Decoded | OasrError]] = [*failed.items()]
    while runner.busy:
        results += runner.advance()
    [(_, result)] = results
    return result
