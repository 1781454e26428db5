"""A plugin that does not say which plugin API it speaks."""
