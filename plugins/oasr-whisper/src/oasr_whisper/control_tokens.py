"""Finds the ids of Whisper's control tokens: they differ between English-only, multilingual and later vocabularies."""

import re
from collections.abc import Mapping
from typing import Any

from oasr.checkpoint.damage import shortened
from oasr.interfaces.format import Checkpoint
from oasr_whisper.config import ControlTokens
from oasr_whisper.openai_tokenizer import default_suppressions
from oasr_whisper.settings import Settings, read_settings, read_spellings

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
    settings = read_settings(checkpoint, faults)
    vocabulary_size = sizes["vocabulary_size"]
    is_multilingual = _is_multilingual(settings, vocabulary_size, spelt)
    ids = _ids(_stated(settings, is_multilingual), spelt, faults)
    languages = _languages(settings, spelt, faults) if is_multilingual else {}
    suppress, suppress_first = _suppressed(checkpoint, settings)
    heads = _alignment_heads(settings, sizes)
    numbers = [*ids.values(), *languages.values(), *suppress, *suppress_first]
    if outside := sorted({number for number in numbers if not 0 <= number < vocabulary_size}):
        listed = shortened(list(map(str, outside)))
        faults.append(f"the weights have {vocabulary_size} tokens, the settings name {listed}")
    if faults:
        return {}
    latest_first_time = settings.max_initial_timestamp_index
    return {
        "tokens": ControlTokens(**ids, languages=languages),
        "suppress": suppress,
        "suppress_first": suppress_first,
        "alignment_heads": heads,
        "max_initial_timestamp_index": 50 if latest_first_time is None else latest_first_time,
    }


def _is_multilingual(settings: Settings, vocabulary_size: int, spelt: Mapping[str, int]) -> bool:
    # English-only tokenizers spell the languages too, so they cannot tell; the vocabulary of the releases can.
    if vocabulary_size == _ENGLISH_ONLY_VOCABULARY:
        return False
    stated = settings.is_multilingual
    return stated if stated is not None else any(map(_LANGUAGE.fullmatch, spelt))


def _stated(settings: Settings, is_multilingual: bool) -> dict[str, tuple[str, int]]:
    """What the generation settings, or else the configuration, say: the key and the id by field."""
    keys = {
        "end": "eos_token_id",
        "start": "decoder_start_token_id",
        "no_timestamps": "no_timestamps_token_id",
        "previous": "prev_sot_token_id",
    }
    stated: dict[str, tuple[str, int]] = {}
    for field, key in keys.items():
        value = getattr(settings, key)
        value = value[0] if isinstance(value, list) and len(value) == 1 else value
        if isinstance(value, int):
            stated[field] = (key, value)
    tasks = (settings.task_to_id or {}) if is_multilingual else {}
    for task, value in tasks.items():
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


def _languages(settings: Settings, spelt: Mapping[str, int], faults: list[str]) -> dict[str, int]:
    stated = settings.lang_to_id or {}
    wrong = [name for name, number in stated.items() if spelt.get(name, number) != number]
    if wrong:
        faults.append(f"lang_to_id and the tokenizer disagree about {shortened(wrong)}")
    found = stated or {name: number for name, number in spelt.items() if _LANGUAGE.fullmatch(name)}
    if not found:
        faults.append("it is multilingual, but neither lang_to_id nor the tokenizer names a language")
    return {name.strip("<|>"): number for name, number in sorted(found.items(), key=lambda item: item[1])}


def _suppressed(checkpoint: Checkpoint, settings: Settings) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Tokens suppressed always and first. A .pt stores none; there openai/whisper's own rule holds."""
    if checkpoint.naming == "openai":
        return default_suppressions(checkpoint.files["tokenizer"])
    if checkpoint.naming == "ctranslate2":
        always, first = settings.suppress_ids, settings.suppress_ids_begin
    else:
        always, first = settings.suppress_tokens, settings.begin_suppress_tokens
    return tuple(always or ()), tuple(first or ())


def _alignment_heads(settings: Settings, sizes: Mapping[str, int]) -> list[tuple[int, int]] | None:
    heads = settings.alignment_heads
    if not heads:
        return None
    limits = sizes["decoder_layers"], sizes.get("decoder_heads", 0)
    # Distilled models carry along the list of their teacher, whose layers they lack.
    return heads if all(layer < limits[0] and head < limits[1] for layer, head in heads) else None
