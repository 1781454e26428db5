"""A plugin module that writes to standard output."""
