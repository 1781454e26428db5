"""Claims the name of a component of core."""
