"""A plugin module whose native library does not load."""
