"""The tokenizer that openai/whisper keeps in its package instead of beside the weights.

Its assets list the tokens of a byte-level BPE in the order in which training merged them, base64 with a rank. The
merges follow from that order. Source: openai/whisper, whisper/tokenizer.py.
"""

import base64
import re
from collections.abc import Mapping
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from oasr.checkpoint.byte_level_bpe import byte_alphabet, tokenizer_json

_TIMESTAMPS = 1501
_PLAIN_SPECIALS = (
    "<|translate|>",
    "<|transcribe|>",
    "<|startoflm|>",
    "<|startofprev|>",
    "<|nospeech|>",
    "<|notimestamps|>",
)
# In the order of their ids; a vocabulary has the first 99 or all 100.
_LANGUAGE_CODES = (
    "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi ml "
    "cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am "
    "yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su yue"
)
_LANGUAGES = tuple(_LANGUAGE_CODES.split())

# Symbols of speaker tags and of sounds that are not speech.
_SINGLE_SYMBOLS = '"#()*+/:;<=>@[\\]^_`{|}~「」『』'
_LONGER_SYMBOLS = "<< >> <<< >>> -- --- -( -[ (' (\" (( )) ((( ))) [[ ]] {{ }} ♪♪ ♪♪♪"
_SYMBOLS = (*_SINGLE_SYMBOLS, *_LONGER_SYMBOLS.split())
_MUSIC = "♩♪♫♬♭♮♯"


def package_tokenizer(vocabulary_size: int) -> dict[str, Any] | None:
    """Content of a tokenizer.json for a released vocabulary; None when openai-whisper is not installed.

    Raises `ValueError` when no release has a vocabulary of that size.
    """
    spec = find_spec("whisper")
    if spec is None or not spec.submodule_search_locations:
        return None
    is_multilingual = vocabulary_size >= 51_865  # as openai/whisper decides, model.py
    name = "multilingual" if is_multilingual else "gpt2"
    asset = Path(spec.submodule_search_locations[0]) / "assets" / f"{name}.tiktoken"
    if not asset.exists():
        return None
    ranks = read_ranks(asset)
    control = _control_tokens(len(ranks), vocabulary_size)
    alphabet = byte_alphabet()
    spelt = {token: "".join(alphabet[byte] for byte in token) for token in ranks}
    merges = [(spelt[left], spelt[right]) for left, right in merges_of(ranks)]
    return tokenizer_json({spelt[token]: rank for token, rank in ranks.items()}, merges, control)


def read_ranks(asset: Path) -> dict[bytes, int]:
    """Rank, which is the id, of every token of a `.tiktoken` file."""
    lines = (line.split() for line in asset.read_text(encoding="ascii").splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in lines}


def merges_of(ranks: Mapping[bytes, int]) -> list[tuple[bytes, bytes]]:
    """The merge that made each token, in order: the two pieces left when only earlier merges are applied to it."""
    merges = []
    for token in sorted(ranks, key=lambda token: ranks[token]):
        if len(token) > 1:
            pieces = _apply(ranks, token, before=ranks[token])
            if len(pieces) == 2:
                merges.append((pieces[0], pieces[1]))
    return merges


def _apply(ranks: Mapping[bytes, int], token: bytes, before: int) -> list[bytes]:
    pieces = [token[at : at + 1] for at in range(len(token))]
    while len(pieces) > 1:
        joined = [ranks.get(left + right, before) for left, right in pairwise(pieces)]
        lowest = min(joined)
        if lowest >= before:
            break
        at = joined.index(lowest)
        pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]
    return pieces


def _control_tokens(text_tokens: int, vocabulary_size: int) -> dict[str, int]:
    languages = vocabulary_size - text_tokens - 2 - len(_PLAIN_SPECIALS) - _TIMESTAMPS
    if not 99 <= languages <= len(_LANGUAGES):
        raise ValueError(f"no Whisper release has a vocabulary of {vocabulary_size} tokens")
    names = [
        "<|endoftext|>",
        "<|startoftranscript|>",
        *(f"<|{code}|>" for code in _LANGUAGES[:languages]),
        *_PLAIN_SPECIALS,
        *(f"<|{step * 0.02:.2f}|>" for step in range(_TIMESTAMPS)),
    ]
    return {name: text_tokens + number for number, name in enumerate(names)}


def default_suppressions(tokenizer: Path) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Tokens openai/whisper suppresses always and first, which it computes from the tokenizer.

    Always: symbols that transcripts of speech do not need, with and without a space before, where they are one token;
    of musical notes the first token, which no other text starts with; a hyphen or quote at the start of a word; and
    the control tokens. First: a lone space and the end (decoding.py, _get_suppress_tokens and SuppressBlank).
    """
    from tokenizers import Tokenizer

    vocabulary = Tokenizer.from_file(str(tokenizer))
    control = {token: number for token, number in vocabulary.get_vocab().items() if re.fullmatch(r"<\|.*\|>", token)}

    def encode(text: str) -> list[int]:
        return list(vocabulary.encode(text, add_special_tokens=False).ids)

    always = {encode(" -")[0], encode(" '")[0]}
    for symbol in [*_SYMBOLS, *_MUSIC]:
        for ids in (encode(symbol), encode(" " + symbol)):
            if len(ids) == 1 or symbol in _MUSIC:
                always.add(ids[0])
    silenced = ("startoftranscript", "translate", "transcribe", "startoflm", "startofprev", "nospeech", "nocaptions")
    always |= {control[f"<|{name}|>"] for name in silenced if f"<|{name}|>" in control}
    return tuple(sorted(always)), (*encode(" "), control["<|endoftext|>"])
