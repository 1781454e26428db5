"""What no search over a CTC head can honour."""

from dataclasses import fields

from oasr.errors import RequestError
from oasr.types import DecodingOptions

# What is spoken, how wide to search, and what the engine does with the text. All else needs a model that reads its own
# tokens, or is not known here yet.
_HONOURED = {
    *("language", "languages", "task", "timestamps", "word_timestamps"),
    *("hotwords", "beam", "n_best", "seed"),
    *("fallback", "most_compression", "least_logprob", "most_silence"),
}


def refuse(options: DecodingOptions) -> None:
    """Raise `RequestError` for an option that is set and would be ignored."""
    for field in fields(options):
        value = getattr(options, field.name)
        if field.name not in _HONOURED and value not in (field.default, ()):
            raise RequestError(f"a CTC search cannot honour {field.name}={value!r}: leave it unset")
