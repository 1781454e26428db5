"""Finds the ids of Whisper's control tokens: they differ between English-only, multilingual and later vocabularies."""

import re
from collections.abc import Mapping
from typing import Any

from oasr.checkpoint.damage import shortened
from oasr.checkpoint.json_file import read_object
from oasr.errors import CheckpointError
from oasr.interfaces.format import Checkpoint
from oasr_whisper.config import ControlTokens
from oasr_whisper.openai_tokenizer import default_suppressions

_SPELLINGS = {
    "end": ("<|endoftext|>",),
    "start": ("<|startoftranscript|>",),
    "translate": ("<|translate|>",),
    "transcribe": ("<|transcribe|>",),
    "previous": ("<|startofprev|>",),
    "no_speech": ("<|nospeech|>", "<|nocaptions|>"),
    "no_timestamps": ("<|notimestamps|>",),
}
_LANGUAGE = re.compile(r"<\|([a-z]{2,3})\|>")
_ENGLISH_ONLY_VOCABULARY = 51_864  # one less than the multilingual one, the test of openai/whisper's is_multilingual


def read_control(checkpoint: Checkpoint, sizes: Mapping[str, int], faults: list[str]) -> dict[str, Any]:
    """Control ids, suppressed tokens and alignment heads as fields of `WhisperConfig`.

    What is missing or contradictory is added to `faults`. Raises `CheckpointError` when there is no tokenizer.
    """
    spelt = read_spellings(checkpoint)
    vocabulary_size = sizes["vocabulary_size"]
    is_multilingual = _is_multilingual(checkpoint, vocabulary_size, spelt)
    ids = _ids(_stated(checkpoint, is_multilingual), spelt, faults)
    languages = _languages(checkpoint, spelt, faults) if is_multilingual else {}
    suppress, suppress_first = _suppressed(checkpoint)
    heads = _alignment_heads(checkpoint, sizes)
    numbers = [*ids.values(), *languages.values(), *suppress, *suppress_first]
    if outside := sorted({number for number in numbers if not 0 <= number < vocabulary_size}):
        listed = shortened(list(map(str, outside)))
        faults.append(f"the weights have {vocabulary_size} tokens, the settings name {listed}")
    if faults:
        return {}
    latest_first_time = checkpoint.generation.get("max_initial_timestamp_index")
    return {
        "tokens": ControlTokens(**ids, languages=languages),
        "suppress": suppress,
        "suppress_first": suppress_first,
        "alignment_heads": heads,
        "max_initial_timestamp_index": 50 if latest_first_time is None else latest_first_time,
    }


def read_spellings(checkpoint: Checkpoint) -> dict[str, int]:
    """Id of every added token as tokenizer.json spells it."""
    if "tokenizer" not in checkpoint.files:
        raise CheckpointError(
            f"{checkpoint.path} has no tokenizer.json, which names the control tokens and turns ids into text; "
            "copy it from the original model."
        )
    path = checkpoint.files["tokenizer"]
    content = read_object(path)
    try:
        return {token["content"]: token["id"] for token in content["added_tokens"]}
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{path} is not a tokenizer of the tokenizers library: {error} is missing.") from error


def _is_multilingual(checkpoint: Checkpoint, vocabulary_size: int, spelt: Mapping[str, int]) -> bool:
    # English-only tokenizers spell the languages too, so they cannot tell; the vocabulary of the releases can.
    if vocabulary_size == _ENGLISH_ONLY_VOCABULARY:
        return False
    stated = checkpoint.generation.get("is_multilingual")
    return bool(stated) if stated is not None else any(map(_LANGUAGE.fullmatch, spelt))


def _stated(checkpoint: Checkpoint, is_multilingual: bool) -> dict[str, tuple[str, int]]:
    """What the generation settings, or else the configuration, say: the key and the id by field."""
    keys = {
        "end": "eos_token_id",
        "start": "decoder_start_token_id",
        "no_timestamps": "no_timestamps_token_id",
        "previous": "prev_sot_token_id",
    }
    stated: dict[str, tuple[str, int]] = {}
    for field, key in keys.items():
        value = _setting(checkpoint, key)
        value = value[0] if isinstance(value, list) and len(value) == 1 else value
        if isinstance(value, int):
            stated[field] = (key, value)
    tasks = checkpoint.generation.get("task_to_id") if is_multilingual else None
    for task, value in (tasks or {}).items():
        if task in ("transcribe", "translate"):
            stated[task] = (f"task_to_id.{task}", value)
    return stated


def _ids(stated: Mapping[str, tuple[str, int]], spelt: Mapping[str, int], faults: list[str]) -> dict[str, int]:
    ids: dict[str, int] = {}
    for field, spellings in _SPELLINGS.items():
        spelling = next((spelling for spelling in spellings if spelling in spelt), None)
        if field in stated:
            key, ids[field] = stated[field]
            if spelling and spelt[spelling] != ids[field]:
                faults.append(f"{key} is {ids[field]}, but the tokenizer has {spelling} at {spelt[spelling]}")
        elif spelling:
            ids[field] = spelt[spelling]
        else:
            faults.append(f"the tokenizer has no {' or '.join(spellings)}")
    if "no_timestamps" in ids:
        # Older tokenizers do not spell the timestamps, which always follow.
        ids["timestamp_begin"] = spelt.get("<|0.00|>", ids["no_timestamps"] + 1)
    return ids


def _languages(checkpoint: Checkpoint, spelt: Mapping[str, int], faults: list[str]) -> dict[str, int]:
    stated = checkpoint.generation.get("lang_to_id") or {}
    wrong = [name for name, number in stated.items() if spelt.get(name, number) != number]
    if wrong:
        faults.append(f"lang_to_id and the tokenizer disagree about {shortened(wrong)}")
    found = stated or {name: number for name, number in spelt.items() if _LANGUAGE.fullmatch(name)}
    if not found:
        faults.append("it is multilingual, but neither lang_to_id nor the tokenizer names a language")
    return {name.strip("<|>"): number for name, number in sorted(found.items(), key=lambda item: item[1])}


def _suppressed(checkpoint: Checkpoint) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Tokens suppressed always and first. A .pt stores none; there openai/whisper's own rule holds."""
    if checkpoint.naming == "openai":
        return default_suppressions(checkpoint.files["tokenizer"])
    if checkpoint.naming == "ctranslate2":
        always, first = checkpoint.config.get("suppress_ids"), checkpoint.config.get("suppress_ids_begin")
    else:
        always, first = _setting(checkpoint, "suppress_tokens"), _setting(checkpoint, "begin_suppress_tokens")
    return tuple(always or ()), tuple(first or ())


def _alignment_heads(checkpoint: Checkpoint, sizes: Mapping[str, int]) -> list[tuple[int, int]] | None:
    heads = _setting(checkpoint, "alignment_heads")
    if not heads:
        return None
    limits = sizes["decoder_layers"], sizes.get("decoder_heads", 0)
    # Distilled models carry along the list of their teacher, whose layers they lack.
    return heads if all(layer < limits[0] and head < limits[1] for layer, head in heads) else None


def _setting(checkpoint: Checkpoint, key: str) -> Any:
    """From the generation settings first: newer exports leave an empty list in config.json."""
    value = checkpoint.generation.get(key)
    return checkpoint.config.get(key) if value is None else value
