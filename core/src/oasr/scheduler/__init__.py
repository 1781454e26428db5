"""What to compute next: pure bookkeeping, without torch."""
