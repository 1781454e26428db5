"""A toy recogniser: tiny, seeded and complete, so that an engine runs without any plugin or download."""
