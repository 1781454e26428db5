"""Requires a module that is not installed."""
