"""A component whose class does not exist."""
