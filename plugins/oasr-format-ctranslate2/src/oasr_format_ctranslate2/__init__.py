"""CTranslate2 checkpoints for OASR."""
