"""Tokenizers that ship with core."""
