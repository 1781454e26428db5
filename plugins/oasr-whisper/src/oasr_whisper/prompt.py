"""What a request becomes: the control tokens the decoder starts from and the tokens it may not choose."""

from collections.abc import Sequence
from functools import lru_cache

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
        self._rule = lru_cache(maxsize=64)(Suppress)
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
            raise RequestError("This model only transcribes English; translation needs a multilingual checkpoint")
        named = [language for language in (options.language, *options.languages) if language is not None]
        foreign = [language for language in named if canonical(language) != "en"]
        if foreign:
            raise RequestError(f"This model only reads English, not {foreign[0]!r}; use a multilingual checkpoint")

    def prompt(
        self, options: DecodingOptions, language: str | None, context: Sequence[int], tokenizer: Tokenizer
    ) -> Prompt:
        """Previous text, then the control tokens."""
        tokens = self._tokens
        control = self.control(options, language)
        suppressed = self._config.suppress if options.suppress_tokens is None else options.suppress_tokens
        rules: tuple[LogitsRule, ...] = (self._rule(suppressed, self._config.suppress_first),)
        if options.timestamps is not False:
            rules = (*rules, self._timestamps)
        previous, notes = self._previous(options.prompt, context, tokenizer)
        room = self._config.text_context - len(previous) - len(control)
        return Prompt(
            tokens=(*previous, *control),
            end_token=tokens.end,
            max_new_tokens=min(room, options.max_new_tokens or room),
            rules=rules,
            notes=notes,
        )

    def control(self, options: DecodingOptions, language: str | None) -> list[int]:
        """Start, language and task, and "no timestamps" where none are wanted."""
        tokens = self._tokens
        control = [tokens.start]
        if self._config.multilingual:
            task = tokens.translate if options.task == "translate" else tokens.transcribe
            control += [tokens.languages[match(language or "en", tokens.languages)], task]
        return control if options.timestamps is not False else [*control, tokens.no_timestamps]

    def _previous(
        self, text: str | None, context: Sequence[int], tokenizer: Tokenizer
    ) -> tuple[list[int], tuple[str, ...]]:
        """The end of what was said before, as much as fits, as the model saw previous text in training."""
        ids = tokenizer.encode(" " + text.strip()) if text and text.strip() else []
        budget = self._config.text_context // 2 - 1
        notes = (f"prompt trimmed to its last {budget} of {len(ids)} tokens",) if len(ids) > budget else ()
        before = [*ids, *context][-budget:]
        return [self._tokens.previous, *before] if before else [], notes


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
