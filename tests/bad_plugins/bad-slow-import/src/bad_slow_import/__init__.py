"""A plugin module that takes its time."""
