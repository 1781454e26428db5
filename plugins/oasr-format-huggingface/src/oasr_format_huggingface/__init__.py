"""Hugging Face checkpoints for OASR."""
