"""From what a user names to a loaded network: find it, recognise its layout, build and fill the module."""
