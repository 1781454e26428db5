"""A misspelt hook."""
