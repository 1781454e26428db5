"""A small streaming architecture for OASR."""
