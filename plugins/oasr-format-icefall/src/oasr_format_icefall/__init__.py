"""icefall checkpoints for OASR."""
