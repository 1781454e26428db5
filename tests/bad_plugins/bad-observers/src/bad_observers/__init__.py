"""Hooks that raise."""
