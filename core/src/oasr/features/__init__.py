"""Frontends that ship with core."""
