"""Exits on import, as a script without a main guard does."""

import sys

sys.exit(3)
