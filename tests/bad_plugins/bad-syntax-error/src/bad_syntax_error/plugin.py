"""Does not parse."""

OASR_API = 1

def oasr_components(:
    return []
