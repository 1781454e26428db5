"""The components that core itself ships."""
