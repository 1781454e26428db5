"""A plugin module that exits."""
