"""Raises on import."""

raise RuntimeError("this policy was sabotaged")
