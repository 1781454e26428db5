"""OASR: inference and serving for speech recognition, built from plugins."""

__version__ = "0.1.0"
