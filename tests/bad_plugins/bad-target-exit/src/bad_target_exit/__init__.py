"""A component whose module exits."""
