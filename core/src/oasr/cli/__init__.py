"""The `oasr` command."""
