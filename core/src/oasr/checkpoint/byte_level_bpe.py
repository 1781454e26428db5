"""Writes a tokenizer.json for the byte-level BPE of GPT-2, which toolkits store in several other ways."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any


@cache
def byte_alphabet() -> tuple[str, ...]:
    """The printable character that stands for each byte (openai/gpt-2, encoder.py, bytes_to_unicode)."""
    printable = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    spare = iter(range(256, 512))
    return tuple(chr(byte if byte in printable else next(spare)) for byte in range(256))


def tokenizer_json(
    vocabulary: Mapping[str, int], merges: Sequence[tuple[str, str]], control: Mapping[str, int]
) -> dict[str, Any]:
    """Content of a tokenizer.json of the tokenizers library.

    Vocabulary and merges are spelt in the byte alphabet; control tokens are spelt as they are.
    """
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": number,
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for token, number in sorted(control.items(), key=lambda item: item[1])
        ],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "vocab": dict(vocabulary),
            "merges": [list(pair) for pair in merges],
        },
    }
