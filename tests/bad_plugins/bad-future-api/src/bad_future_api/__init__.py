"""A plugin written for a later plugin API."""
