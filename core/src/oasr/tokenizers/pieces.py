"""What vocabularies of pieces share: how ids become text, and how text is spelt without further help."""

import codecs
import math
import re
from collections.abc import Sequence

from oasr.errors import RequestError
from oasr.interfaces.tokenizer import Tokenizer
from oasr.tokenizers.byte_map import BLANK, spell, spells_bytes, to_bytes

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_CONTROL = re.compile(r"<[^<>\s]+>|#\d+")  # <blk>, <sos/eos>, <|en|>, and #0, which tells homophones apart in a lexicon
_SPACE = "<space>"  # of character vocabularies
_IDEOGRAPH = "[\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"  # Chinese and Japanese, written without blanks
PARTED_IDEOGRAPHS = re.compile(f"({_IDEOGRAPH})")
_NEEDLESS = re.compile(f"(?<={_IDEOGRAPH}) +(?={_IDEOGRAPH})")
_UNDECIDED = re.compile(f"(?<={_IDEOGRAPH}) +$")
_BEFORE_IDEOGRAPH = re.compile(f"{BLANK}(?={_IDEOGRAPH})")
_AFTER_IDEOGRAPH = re.compile(f"(?<={_IDEOGRAPH})(?!{_IDEOGRAPH}|{BLANK}|$)")


class PieceTokenizer(Tokenizer):
    """Ids are places in a list of pieces, in which U+2581 stands for a blank. Text never begins with one.

    A piece may be a byte, `<0xE8>`, and a vocabulary may be spelt in bytes altogether (`byte_map`).
    """

    def __init__(self, pieces: Sequence[str]):
        self._pieces = pieces
        self._in_bytes = spells_bytes(piece for piece in pieces if not _CONTROL.fullmatch(piece))
        self._content = [self._meaning(piece) for piece in pieces]
        self._bytes: dict[int, int] = {}
        self._ids: dict[str, int] = {}
        for token, (piece, content) in enumerate(zip(pieces, self._content, strict=True)):
            if _BYTE.fullmatch(piece):
                self._bytes.setdefault(content[0], token)
            elif content:
                self._ids.setdefault(BLANK if piece == _SPACE else piece, token)
        self._longest = max(map(len, self._ids), default=0)
        self._marks_words = any(piece[0] == BLANK and len(piece) > 1 for piece in self._ids)
        ideographic = [len(piece) for piece in self._ids if PARTED_IDEOGRAPHS.search(piece)]
        self._ideographs_alone = max(ideographic, default=0) == 1

    @property
    def size(self) -> int:
        return len(self._pieces)

    def decode(self, ids: Sequence[int]) -> str:
        stream = self.stream()
        return stream.push(ids) + stream.finish()

    def encode(self, text: str) -> list[int]:
        """The fewest pieces that spell a text. Raises `RequestError` where there are none."""
        words = self._spelled(text).split()
        if not self._marks_words:
            return self._fewest(BLANK.join(words), text)
        marked = "".join(BLANK + word for word in words)
        if self._ideographs_alone:
            marked = _AFTER_IDEOGRAPH.sub(BLANK, _BEFORE_IDEOGRAPH.sub("", marked))
        return self._fewest(marked, text)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._piece(token) for token in ids]

    def stream(self) -> "_Stream":
        return _Stream(self._content, parted=self._in_bytes)

    def _spelled(self, text: str) -> str:
        return spell(text) if self._in_bytes else text

    def _meaning(self, piece: str) -> bytes:
        """What a piece adds to the text, in UTF-8."""
        if byte := _BYTE.fullmatch(piece):
            return bytes.fromhex(byte[1])
        if piece == _SPACE:
            return b" "
        if _CONTROL.fullmatch(piece):
            return b""
        return to_bytes(piece) if self._in_bytes else piece.replace(BLANK, " ").encode()

    def _piece(self, token: int) -> str:
        if not 0 <= token < self.size:
            raise RequestError(f"Token id {token} is outside the vocabulary of {self.size}")
        return self._pieces[token]

    def _fewest(self, spelled: str, text: str) -> list[int]:
        """The fewest ids that spell a string, the longest piece first; `text` is what the user wrote."""
        # From each place: the number of ids, the first of them, and where they lead.
        best: list[tuple[float, list[int], int]] = [(0, [], 0)] * (len(spelled) + 1)
        for start in range(len(spelled) - 1, -1, -1):
            best[start] = (math.inf, [], start)
            for end in range(min(start + self._longest, len(spelled)), start, -1):
                ids = self._alone(spelled[start:end])
                if ids and len(ids) + best[end][0] < best[start][0]:
                    best[start] = (len(ids) + best[end][0], ids, end)
        if best[0][0] == math.inf:
            raise RequestError(f"{text!r} cannot be spelt with the tokens of this model{self._why(spelled)}")
        found: list[int] = []
        place = 0
        while place < len(spelled):
            _, ids, place = best[place]
            found += ids
        return found

    def _alone(self, string: str) -> list[int]:
        """The id of a piece, or those of the bytes of a character without one; none where there is neither."""
        if string in self._ids:
            return [self._ids[string]]
        values = string.encode(errors="replace") if len(string) == 1 else b""
        return [self._bytes[value] for value in values] if self._bytes.keys() >= set(values) else []

    def _why(self, spelled: str) -> str:
        known = set().union(*self._ids)
        for character in spelled:
            if character not in known:
                other = character.swapcase()
                hint = f" (it has {other!r})" if other in known else ""
                shown = "blank" if character == BLANK else repr(character)
                return "" if self._in_bytes else f": no piece has the {shown}{hint}"
        return ""


class _Stream:
    """Decodes UTF-8 byte by byte, so that half a character waits for its rest.

    Where training parted all ideographs with blanks, one that stands between two of them is left out.
    """

    def __init__(self, content: Sequence[bytes], *, parted: bool):
        self._content = content
        self._parted = parted
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self._last = ""

    def push(self, ids: Sequence[int]) -> str:
        return self._show(self._decoder.decode(b"".join(self._content[token] for token in ids)), final=False)

    def finish(self) -> str:
        return self._show(self._decoder.decode(b"", final=True), final=True)

    def _show(self, text: str, *, final: bool) -> str:
        text = self._held + text
        self._held = ""
        if not self._last:
            text = text.lstrip(" ")
        if self._parted:
            seen = _NEEDLESS.sub("", self._last + text)
            undecided = None if final else _UNDECIDED.search(seen)
            if undecided:
                self._held = undecided[0]
            text = seen.removesuffix(self._held)[len(self._last) :]
        self._last = text[-1:] or self._last
        return text
