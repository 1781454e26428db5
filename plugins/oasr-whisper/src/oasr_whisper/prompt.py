"""What a request becomes: the control tokens the decoder starts from and the tokens it may not choose."""

from functools import lru_cache

import torch

from oasr.errors import RequestError
from oasr.interfaces.heads import Prompt
from oasr.interfaces.logits_rule import LogitsRule
from oasr.interfaces.tokenizer import Tokenizer
from oasr.types import DecodingOptions
from oasr_whisper.config import WhisperConfig


class PromptWriter:
    """Writes prompts for one checkpoint."""

    def __init__(self, config: WhisperConfig):
        self._config = config
        self._tokens = config.tokens
        # Rows with the same rule object are masked together, so equal lists must share one rule.
        self._rule = lru_cache(maxsize=64)(Suppress)

    def check(self, options: DecodingOptions) -> None:
        """Raise `RequestError` for what this checkpoint cannot do."""
        if not self._config.multilingual:
            self._check_english_only(options)
        for language in (options.language, *options.languages):
            if self._config.multilingual and language is not None and language not in self._tokens.languages:
                known = ", ".join(sorted(self._tokens.languages))
                raise RequestError(f"This model does not know the language {language!r}; it knows {known}")
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
        foreign = [code for code in (options.language, *options.languages) if code not in (None, "en")]
        if foreign:
            raise RequestError(f"This model only reads English, not {foreign[0]!r}; use a multilingual checkpoint")

    def prompt(self, options: DecodingOptions, language: str | None, tokenizer: Tokenizer) -> Prompt:
        """Previous text, then start, language and task, then "no timestamps"."""
        tokens = self._tokens
        control = [tokens.start]
        if self._config.multilingual:
            task = tokens.translate if options.task == "translate" else tokens.transcribe
            control += [tokens.languages[language or "en"], task]
        control.append(tokens.no_timestamps)
        suppressed = self._config.suppress if options.suppress_tokens is None else options.suppress_tokens
        previous, notes = self._previous(options.prompt, tokenizer)
        room = self._config.text_context - len(previous) - len(control)
        return Prompt(
            tokens=(*previous, *control),
            end_token=tokens.end,
            max_new_tokens=min(room, options.max_new_tokens or room),
            rules=(self._rule(suppressed, self._config.suppress_first),),
            notes=notes,
        )

    def _previous(self, text: str | None, tokenizer: Tokenizer) -> tuple[list[int], tuple[str, ...]]:
        """The end of the prompt text that fits, as the model saw previous text in training."""
        if text is None or not text.strip():
            return [], ()
        ids = tokenizer.encode(" " + text.strip())
        budget = self._config.text_context // 2 - 1
        notes = (f"prompt trimmed to its last {budget} of {len(ids)} tokens",) if len(ids) > budget else ()
        return [self._tokens.previous, *ids[-budget:]], notes


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
