"""The engine and what is needed to use it."""

from oasr.config import EngineConfig
from oasr.engine.engine import ASREngine
from oasr.types import DecodingOptions

__all__ = ["ASREngine", "DecodingOptions", "EngineConfig"]
