"""A sound plugin among sabotaged ones."""
