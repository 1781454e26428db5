"""Finds plugins, keeps them apart, and hands out components by kind and name."""

from oasr.registry.records import PluginRecord, Status
from oasr.registry.registry import Registry, default_registry

__all__ = ["PluginRecord", "Registry", "Status", "default_registry"]
