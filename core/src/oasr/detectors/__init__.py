"""Speech detectors that ship with core, and cutting audio at pauses."""
