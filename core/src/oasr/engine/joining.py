"""Texts that follow each other."""

import unicodedata
from collections.abc import Iterable

# Scripts that write no blanks between words, by how Unicode names their characters begin.
_SPACELESS = ("CJK", "HIRAGANA", "KATAKANA", "BOPOMOFO", "THAI", "LAO", "KHMER", "MYANMAR", "FULLWIDTH", "IDEOGRAPHIC")


class Growth:
    """A text that grows by deltas, which join to `text`: without blanks around it, and one between its stretches."""

    def __init__(self) -> None:
        self.text = ""
        self._held = ""
        """Blanks that belong to the text once something follows them."""
        self._paused = False

    def pause(self) -> None:
        """What comes next is another stretch of speech."""
        self._paused = bool(self.text)

    def add(self, text: str) -> str:
        """Continue the text; returns the delta."""
        body = text.rstrip()
        if not body:
            self._held += text
            return ""
        if not self.text:
            delta = body.lstrip()
        elif self._paused:
            delta = between(self.text, body.lstrip()) + body.lstrip()
        else:
            delta = self._held + body
        self._held = text[len(body) :]
        self._paused = False
        self.text += delta
        return delta


def joined(texts: Iterable[str]) -> str:
    """Texts that follow each other as one, without blanks around it."""
    whole = ""
    for text in texts:
        whole += between(whole, text) + text
    return whole.strip()


def between(left: str, right: str) -> str:
    """What stands between two texts: a blank, unless one of them is empty or ends there in a script without blanks."""
    if not left or not right or left[-1].isspace() or right[0].isspace():
        return ""
    return "" if is_spaceless(left[-1]) or is_spaceless(right[0]) else " "


def is_spaceless(character: str) -> bool:
    """Whether a character belongs to a script that writes no blanks between words."""
    return unicodedata.name(character, "").startswith(_SPACELESS)
