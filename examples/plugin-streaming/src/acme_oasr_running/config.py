"""Sizes of the network."""

from pydantic import PositiveInt

from oasr.interfaces.component import ComponentConfig


class RunningConfig(ComponentConfig):
    """One configuration is one shape of network."""

    mel_bins: PositiveInt = 16
    width: PositiveInt = 24
    memory: PositiveInt = 6
    """Feature frames that the convolution looks back."""
    vocabulary_size: PositiveInt = 29
