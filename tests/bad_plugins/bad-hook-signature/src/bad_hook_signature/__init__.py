"""A hook with an argument that does not exist."""
