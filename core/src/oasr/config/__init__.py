"""The configuration: one schema, several sources, components checked by their own models."""

from oasr.config.document import document
from oasr.config.needs import check_needs
from oasr.config.schema import AudioConfig, EngineConfig
from oasr.config.slots import Selection, Unnamed
from oasr.config.sources import LoadedConfig, load_config

__all__ = [
    "AudioConfig",
    "EngineConfig",
    "LoadedConfig",
    "Selection",
    "Unnamed",
    "check_needs",
    "document",
    "load_config",
]
