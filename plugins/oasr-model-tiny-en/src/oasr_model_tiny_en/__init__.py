"""Whisper tiny.en, packaged for OASR."""
