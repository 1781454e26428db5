"""Transcripts as text, and where it goes."""
