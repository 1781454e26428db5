"""Text spelt byte by byte: one printable character for each byte of its UTF-8, as icefall's byte-level BPE has it.

The 256 characters were chosen so that no Unicode normalisation changes them (fairseq, byte_utils.py): printable ASCII
stands for itself, and Latin letters from U+0100 on, but for those that are compositions, for the other bytes in order.
Training puts a blank on either side of each East Asian character.
"""

import re
from collections.abc import Iterable
from itertools import chain

BLANK = "\N{LOWER ONE EIGHTH BLOCK}"
"""What stands for a blank in the pieces of a vocabulary."""

_RUNS = ((256, 288), (32, 127), (288, 306), (308, 319), (321, 329), (330, 383), (384, 423))
_CHARACTERS = "".join(map(chr, chain.from_iterable(range(start, end) for start, end in _RUNS)))
_BYTES = {character: byte for byte, character in enumerate(_CHARACTERS)} | {BLANK: 32}
_EAST_ASIAN = re.compile(
    "([\u1100-\u11ff\u2e80-\ua4cf\ua840-\ud7af\uf900-\ufaff\ufe30-\ufe4f\uff65-\uffdc\U00020000-\U0002ffff])"
)


def spells_bytes(pieces: Iterable[str]) -> bool:
    """Whether a vocabulary is written in bytes.

    So it is when it has nothing but characters of the map, among them first and later bytes of characters beyond
    ASCII, and no control characters: European languages whose letters are in the map use some that would be these.
    """
    letters = set().union(*pieces)
    if not letters <= _BYTES.keys():
        return False
    values = {_BYTES[letter] for letter in letters}
    first, later = any(0xC2 <= value <= 0xF4 for value in values), any(0x80 <= value < 0xC0 for value in values)
    return first and later and min(values) >= 32


def to_bytes(piece: str) -> bytes:
    """The bytes that a piece of such a vocabulary spells."""
    return bytes(_BYTES[character] for character in piece)


def spell(text: str) -> str:
    """Text as such a vocabulary spells it, with blanks as blanks."""
    parted = " ".join(_EAST_ASIAN.sub(r" \1 ", text).split())
    return "".join(_CHARACTERS[byte] for byte in parted.encode())
