"""A plugin module that imports something absent."""
