"""Speaks a plugin API that this core does not know."""

OASR_API = 99


def oasr_components_of_the_future():
    return []
