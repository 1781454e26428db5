"""A hook that does not return a list."""
