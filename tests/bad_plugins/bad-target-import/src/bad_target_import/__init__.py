"""A component whose module raises."""
