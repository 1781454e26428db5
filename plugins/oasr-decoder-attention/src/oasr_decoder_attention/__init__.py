"""Label-synchronous search over an autoregressive head."""
