"""Whisper for OASR."""
