"""Has no class at all."""
