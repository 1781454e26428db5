"""Sizes of the toy, and the ids its prompts are made of."""

from pydantic import PositiveInt

from oasr.interfaces.component import ComponentConfig

END, START, PREVIOUS = 256, 257, 258
"""Control tokens; the ids below are the bytes of UTF-8, those above are languages."""


class ToyConfig(ComponentConfig):
    """One configuration is one shape of network."""

    width: PositiveInt = 16
    heads: PositiveInt = 2
    layers: PositiveInt = 2
    features: PositiveInt = 8
    audio_frames: PositiveInt = 25
    """Encoder frames of the longest window."""
    text_context: PositiveInt = 96
    """Most tokens of one window, the prompt included."""
    languages: tuple[str, ...] = ("en", "de", "fr")

    @property
    def language_tokens(self) -> dict[str, int]:
        """Id of each language code."""
        return {code: PREVIOUS + 1 + index for index, code in enumerate(self.languages)}

    @property
    def vocabulary_size(self) -> int:
        """Number of ids."""
        return PREVIOUS + 1 + len(self.languages)
