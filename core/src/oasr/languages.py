"""What people call languages, and the code that a model means by it.

People write codes (ISO 639-1, -2 and -3, withdrawn ones such as `iw`, those some models made up, such as `jw`), tags
with regions and scripts (`en-US`, `pt_BR`, `zh-Hans-CN`) and names. `match` maps them onto the codes one model offers.
What it does not know for sure is refused, never guessed.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import NamedTuple

from oasr.errors import RequestError

AUTO = "auto"
"""Leave it to the model to name the language; nothing at all means the same."""

# What may be written but names none of these languages for sure.
_UNDECIDED = {
    "hbs": ("hr", "sr", "bs"),
    "sh": ("hr", "sr", "bs"),
    "serbo-croatian": ("hr", "sr", "bs"),
    "zh-hk": ("yue", "zh"),
    "zh-mo": ("yue", "zh"),
}
# Countries written for what most people there speak. `br` is a language as well.
_COUNTRIES = {
    "br": "pt",
    "cn": "zh",
    "cz": "cs",
    "dk": "da",
    "gb": "en",
    "gr": "el",
    "jp": "ja",
    "kr": "ko",
    "se": "sv",
    "tw": "zh",
    "ua": "uk",
    "us": "en",
    "vn": "vi",
}
# Languages that a model may know under the name of a larger or closely related one, which is for the user to decide.
_RELATED = {
    "ckb": "ku",
    "gan": "zh",
    "hak": "zh",
    "hsn": "zh",
    "nan": "zh",
    "nn": "no",
    "no": "nn",
    "wuu": "zh",
    "yue": "zh",
}
_TAG = re.compile(r"[a-z]{2,3}(-[a-z0-9]{1,8})+")
_SCRIPT = re.compile(r"-[a-z]{4}(?=-|$)")
_MOST_NAMED = 5
_MOST_QUOTED = 60


class _Language(NamedTuple):
    code: str
    name: str
    spellings: tuple[str, ...]
    """All of them, codes included, as they are looked up."""


def unspecified(text: str | None) -> bool:
    """Whether this leaves the language to the model: None, an empty text and `auto` do."""
    return text is None or text.strip().lower() in ("", AUTO)


def canonical(text: str) -> str | None:
    """The ISO 639 code of a language by any of its codes, tags or names; None when the text names none for sure."""
    key = _key(text)
    found = _by_spelling().get(key)
    if found is None and _is_tag(text) and not _undecided(key):
        first, second, *_ = key.split("-")
        # Three letters in second place narrow a language down (zh-yue); scripts have four, regions two or digits.
        found = _by_spelling().get(second if len(second) == 3 and second.isalpha() else first)
    return found.code if found else None


def name(code: str) -> str | None:
    """English name such as `English`, which OpenAI's API writes in lower case; None for an unknown code."""
    language = canonical(code)
    return _by_spelling()[language].name if language else None


def match(text: str, offered: Collection[str]) -> str:
    """The one of the `offered` codes that `text` means, however either is spelt.

    Raises `RequestError` when the model does not offer that language, or when the text could mean several of them.
    """
    key = _key(text)
    for code in offered:
        if _key(code) == key:
            return code
    language = canonical(text)
    matching = [code for code in offered if language is not None and canonical(code) == language]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise RequestError(f"The language {_quoted(text)} could be any of {', '.join(matching)}: write one of them")
    raise RequestError(f"{_fault(text)}.{_suggestion(text, offered)} {_listing(offered)}")


def _fault(text: str) -> str:
    if title := name(text):
        known = _quoted(text) if _key(title) == _key(text) else f"{title} ({_quoted(text)})"
        return f"This model does not know {known}"
    if _undecided(_key(text)):
        return f"{_quoted(text)} could be more than one language"
    return f"The language {_quoted(text)} is unknown"


def _quoted(text: str) -> str:
    return repr(text) if len(text) <= _MOST_QUOTED else f"{text[:_MOST_QUOTED]!r}..."


def _suggestion(text: str, offered: Collection[str]) -> str:
    meant = _meant(text)
    close = [code for code in offered if canonical(code) in meant]
    if not close and canonical(text) is None:
        spellings = {spelling: code for code in offered for spelling in _spellings(code)}
        close = [spellings[each] for each in get_close_matches(_key(text), spellings, n=3, cutoff=0.7)]
    return f" Did you mean {' or '.join(map(_described, dict.fromkeys(close)))}?" if close else ""


def _meant(text: str) -> set[str | None]:
    """Languages that somebody who writes this may have in mind."""
    key = _key(text)
    language = canonical(text)
    if language is not None:
        return {_RELATED.get(language), _COUNTRIES.get(key)} - {None}
    first = canonical(key.partition("-")[0]) if _is_tag(text) else None
    return {*_undecided(key), _COUNTRIES.get(key), first} - {None}


def _listing(offered: Collection[str]) -> str:
    if not offered:
        return "This model offers no choice of language"
    if len(offered) == 1:
        return f"This model knows only {_described(*offered)}"
    if len(offered) <= _MOST_NAMED:
        return f"This model knows {', '.join(map(_described, offered))}"
    return f"This model knows {', '.join(sorted(offered))}"


def _described(code: str) -> str:
    title = name(code)
    return f"{code} ({title})" if title else code


def _spellings(code: str) -> Iterable[str]:
    language = canonical(code)
    return (_key(code), *(_by_spelling()[language].spellings if language else ()))


def _is_tag(text: str) -> bool:
    return _TAG.fullmatch(_key(text)) is not None and len(text.split()) == 1


def _undecided(key: str) -> tuple[str, ...]:
    return _UNDECIDED.get(_SCRIPT.sub("", key), ())


def _key(text: str) -> str:
    """What a spelling is looked up by: case, accents and the kind of hyphen do not count."""
    letters = unicodedata.normalize("NFKD", text.casefold().strip())
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return "-".join(part for part in re.split(r"[\s_-]+", plain) if part)


@cache
def _by_spelling() -> dict[str, _Language]:
    languages: dict[str, _Language] = {}
    table = Path(__file__).with_name("languages.txt").read_text(encoding="utf-8")
    for row in (line for line in table.splitlines() if not line.startswith("#")):
        code, codes, title, names = [field.strip() for field in (row + "|").split("|")][:4]
        spellings = [code, *codes.split(), title, *filter(None, names.split(", "))]
        language = _Language(code, title, tuple(dict.fromkeys(map(_key, spellings))))
        languages |= dict.fromkeys(language.spellings, language)
    return languages
