"""A malformed component declaration."""
