"""A plugin module that does not parse."""
