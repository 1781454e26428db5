"""Options of the searches."""

from pathlib import Path

from pydantic import Field

from oasr.interfaces.component import ComponentConfig


class PrefixBeamConfig(ComponentConfig):
    """Prefix beam search."""

    beam: int = Field(10, ge=1)
    """Prefixes followed, and tokens looked at in each frame; a request's beam, where it is above 1, goes before it."""
    skip_blank: float | None = Field(None, gt=0, lt=1)
    """Pass over frames whose blank is more probable than this, such as 0.95: faster, and nearly the same text. Of a run
    of such frames the first is read, since it parts equal tokens. Unset: read all."""
    hotword_score: float = Field(2.0, gt=0)
    """Log-probability added for each token of a hotword; a hotword may bring its own, as in `ATLANTA :3.5`."""
    lm: Path | None = None
    """An n-gram model over the tokens of the checkpoint (pieces or characters, not words), in the ARPA format."""
    lm_weight: float = Field(0.3, gt=0)
    """What log-probabilities of the n-gram model are multiplied by."""
