"""Imports a module that nobody has."""

import module_that_nobody_has  # noqa: F401

OASR_API = 1
