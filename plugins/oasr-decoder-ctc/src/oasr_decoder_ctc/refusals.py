"""What no search over a CTC head can honour."""

from oasr.errors import RequestError
from oasr.types import DecodingOptions


def refuse(options: DecodingOptions) -> None:
    """Raise `RequestError` for options that need a model that reads its own tokens."""
    if options.temperature > 0 or options.best_of > 1:
        raise RequestError("a CTC model draws no samples: leave temperature at 0 and best_of at 1")
    if options.suppress_tokens:
        raise RequestError("a CTC search suppresses no tokens: leave suppress_tokens empty")
