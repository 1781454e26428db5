"""What can be set."""

from pydantic import Field

from oasr.interfaces.component import ComponentConfig


class NoRepeatConfig(ComponentConfig):
    """Greedy search without repetitions."""

    ngram: int = Field(3, ge=1)
    """Tokens in a row that may occur once in a window of audio; 1 forbids every repetition."""
