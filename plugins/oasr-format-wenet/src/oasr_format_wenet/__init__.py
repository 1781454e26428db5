"""WeNet checkpoints for OASR."""
