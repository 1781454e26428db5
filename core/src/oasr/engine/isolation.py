"""Finding what a batch fails of."""

import logging
from collections.abc import Callable, Sequence
from traceback import clear_frames
from typing import TypeVar

from oasr.engine.window import as_error
from oasr.errors import OasrError

_logger = logging.getLogger(__name__)
Item = TypeVar("Item")


def isolate(items: Sequence[Item], compute: Callable[[Sequence[Item]], None]) -> list[tuple[Item, OasrError]]:
    """Compute items as one batch; where that fails, halves of it, until those at fault are alone.

    Returns these with the reason. `compute` is called again with items that it failed of in company.
    """
    if not items:
        return []
    try:
        compute(items)
        return []
    except Exception as error:
        clear_frames(error.__traceback__)  # they hold the memory that the halves will need
        if len(items) == 1:
            return [(items[0], as_error(error))]
        _logger.debug("a batch of %d failed (%s); splitting it", len(items), error)
    half = len(items) // 2
    return isolate(items[:half], compute) + isolate(items[half:], compute)
