"""WeNet's Conformer for OASR."""
