"""Fails as a native extension built for another system does: with OSError, not ImportError."""

import ctypes

ctypes.CDLL("libsabotaged.so.1")

OASR_API = 1
