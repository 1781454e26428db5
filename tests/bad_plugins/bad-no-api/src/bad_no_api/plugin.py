"""Forgot OASR_API."""

from oasr.plugin import hookimpl


@hookimpl
def oasr_components():
    return []
