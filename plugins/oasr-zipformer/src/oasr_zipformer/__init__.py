"""Zipformer for OASR."""
