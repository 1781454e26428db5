"""Text for a terminal and for tools that read lines."""

import re

# Controls, line and paragraph separators, and what turns the direction of the text after it.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Text on one line that steers no terminal: control characters, which names of files may hold, are escaped."""
    return _CONTROL.sub(lambda match: repr(match[0])[1:-1], text)
