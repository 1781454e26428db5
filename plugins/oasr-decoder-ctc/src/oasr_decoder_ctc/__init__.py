"""Frame-synchronous search over a CTC head."""
