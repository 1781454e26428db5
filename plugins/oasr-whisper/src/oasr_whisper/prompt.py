"""What a request becomes: the control tokens the decoder starts from and the tokens it may not choose."""

from collections.abc import Sequence
from functools import lru_cache
from reprlib import repr as shortly

import torch

from oasr.errors import RequestError
from oasr.interfaces.heads import Prompt
from oasr.interfaces.logits_rule import LogitsRule
from oasr.interfaces.tokenizer import Tokenizer
from oasr.languages import canonical, match
from oasr.types import DecodingOptions
from oasr_whisper.config import WhisperConfig
from oasr_whisper.timestamps import TimestampRule


class PromptWriter:
    """Writes prompts for one checkpoint."""

    def __init__(self, config: WhisperConfig):
        self._config = config
        self._tokens = config.tokens
        # Rows with the same rule object are masked together, so equal lists must share one rule.
        self._suppress = lru_cache(maxsize=64)(Suppress)
        self._begin_with = lru_cache(maxsize=64)(BeginWith)
        self._timestamps = TimestampRule(
            begin=config.tokens.timestamp_begin,
            end=config.tokens.end,
            no_timestamps=config.tokens.no_timestamps,
            latest_first=config.max_initial_timestamp_index,
        )

    def check(self, options: DecodingOptions) -> None:
        """Raise `RequestError` for what this checkpoint cannot do."""
        if self._config.multilingual:
            options.in_codes_of(self._tokens.languages)
        else:
            self._check_english_only(options)
        self._check_suppressed(options.suppress_tokens or ())

    def _check_suppressed(self, suppressed: tuple[int, ...]) -> None:
        outside = [t for t in suppressed if not 0 <= t < self._config.vocabulary_size]
        if outside:
            raise RequestError(
                f"suppress_tokens {outside} are outside the vocabulary of {self._config.vocabulary_size} tokens"
            )
        if self._tokens.end in suppressed:
            raise RequestError(f"suppress_tokens holds {self._tokens.end}, with which the text ends")

    def _check_english_only(self, options: DecodingOptions) -> None:
        if options.task != "transcribe":
            raise RequestError("task 'translate' needs a multilingual checkpoint; this model only transcribes English")
        named = [language for language in (options.language, *options.languages) if language is not None]
        foreign = [language for language in named if canonical(language) != "en"]
        if foreign:
            raise RequestError(f"This model only reads English, not {foreign[0]!r}; use a multilingual checkpoint")

    def prompt(
        self, options: DecodingOptions, language: str | None, context: Sequence[int], tokenizer: Tokenizer
    ) -> Prompt:
        """Previous text, then the control tokens. Raises `RequestError` for a prefix that leaves no room for more."""
        control = self.control(options, language)
        previous, notes = self._previous(options, context, tokenizer)
        room = self._config.text_context - len(previous) - len(control)
        limit = min(room, options.max_new_tokens or room)
        return Prompt(
            tokens=(*previous, *control),
            end_token=self._tokens.end,
            max_new_tokens=limit,
            rules=self._rules(options, limit, tokenizer),
            notes=notes,
        )

    def _rules(self, options: DecodingOptions, limit: int, tokenizer: Tokenizer) -> tuple[LogitsRule, ...]:
        timed = options.timestamps is not False
        suppressed = self._config.suppress if options.suppress_tokens is None else options.suppress_tokens
        rules: tuple[LogitsRule, ...] = (self._suppress(suppressed, self._config.suppress_first),)
        if timed:
            rules = (*rules, self._timestamps)
        prefix = _encoded(options.prefix, tokenizer)
        if not prefix:
            return rules
        if len(prefix) + timed >= limit:
            raise RequestError(
                f"prefix has {len(prefix)} tokens, which leaves no room for more among the {limit} of a window"
            )
        if ruled_out := set(prefix).intersection(options.suppress_tokens or ()):
            raise RequestError(f"prefix holds the tokens {sorted(ruled_out)}, which suppress_tokens rules out")
        return (self._begin_with(tuple(prefix), int(timed), rules),)

    def control(self, options: DecodingOptions, language: str | None) -> list[int]:
        """Start, language and task, and "no timestamps" where none are wanted."""
        tokens = self._tokens
        control = [tokens.start]
        if self._config.multilingual:
            task = tokens.translate if options.task == "translate" else tokens.transcribe
            control += [tokens.languages[match(language or "en", tokens.languages)], task]
        return control if options.timestamps is not False else [*control, tokens.no_timestamps]

    def _previous(
        self, options: DecodingOptions, context: Sequence[int], tokenizer: Tokenizer
    ) -> tuple[list[int], tuple[str, ...]]:
        """What stands before the start: hotwords, then the end of what was said, as much as the model was trained on.

        Half of the context less one token, as in openai/whisper. Hotwords get at most half of that, the same in every
        window; a prompt that is carried along comes before the text read so far, which then gets what is left.
        """
        room = self._config.text_context // 2 - 1
        hotwords, notes = _leading(options.hotwords, room // 2, tokenizer)
        room -= len(hotwords)
        prompt: Sequence[int] = _encoded(options.prompt, tokenizer)
        if len(prompt) > room:
            notes = (*notes, f"prompt trimmed to its last {room} of {len(prompt)} tokens")
        if options.carry_prompt:
            prompt = _last(prompt, room)
            context = _last(context, room - len(prompt))
        before = [*hotwords, *_last([*prompt, *context], room)]
        return [self._tokens.previous, *before] if before else [], notes


def _encoded(text: str | None, tokenizer: Tokenizer) -> list[int]:
    """With a space in front, as texts of Whisper begin; nothing for a blank text."""
    return tokenizer.encode(" " + text.strip()) if text and text.strip() else []


def _last(tokens: Sequence[int], count: int) -> Sequence[int]:
    return tokens[max(0, len(tokens) - count) :]


def _leading(hotwords: Sequence[str], room: int, tokenizer: Tokenizer) -> tuple[list[int], tuple[str, ...]]:
    """As many hotwords, in order and whole, as there is room for; of a first one that is too long its beginning."""
    tokens: list[int] = []
    for index, hotword in enumerate(hotwords):
        added = tokenizer.encode(f"{',' * bool(tokens)} {hotword.strip()}")
        if len(tokens) + len(added) > room:
            kept = f"the first {index} of {len(hotwords)}" if index else f"the first {room} of {len(added)} tokens"
            note = f"hotwords trimmed to {kept}: {room} tokens is the most, and {shortly(hotword)} does not fit"
            return tokens or added[:room], (note,)
        tokens += added
    return tokens, ()


class BeginWith(LogitsRule):
    """A text begins with given tokens; the other rules hold before and behind them."""

    def __init__(self, prefix: tuple[int, ...], place: int, rules: tuple[LogitsRule, ...]):
        """`place`: how many tokens are chosen before the prefix."""
        self._prefix = torch.tensor(prefix, dtype=torch.int64)
        self._place = place
        self._rules = rules

    def apply(self, logits: torch.Tensor, generated: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        if self._prefix.device != logits.device:
            self._prefix = self._prefix.to(logits.device)
        index = counts - self._place
        given = (index >= 0) & (index < len(self._prefix))
        token = self._prefix[index.clamp(0, len(self._prefix) - 1)][:, None]
        # What a prefix holds may be what the other rules forbid.
        forced = torch.full_like(logits, -torch.inf).scatter_(1, token, logits.gather(1, token))
        for rule in self._rules:
            logits = rule.apply(logits, generated, counts)
        return torch.where(given[:, None], forced, logits)


class Suppress(LogitsRule):
    """Tokens never chosen, and tokens not chosen first (Whisper's suppress lists)."""

    def __init__(self, always: tuple[int, ...], first: tuple[int, ...]):
        self._always = torch.tensor(always, dtype=torch.int64)
        self._first = torch.tensor(first, dtype=torch.int64)

    def apply(self, logits: torch.Tensor, generated: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        if self._always.device != logits.device:
            self._always = self._always.to(logits.device)
            self._first = self._first.to(logits.device)
        logits.index_fill_(1, self._always, -torch.inf)
        first = logits[:, self._first].masked_fill((counts == 0)[:, None], -torch.inf)
        return logits.index_copy_(1, self._first, first)
