"""Options of the searches."""

from pydantic import Field

from oasr.interfaces.component import ComponentConfig


class RescoringConfig(ComponentConfig):
    """Rescoring of CTC hypotheses."""

    ctc_weight: float = Field(0.5, ge=0)
    """What the score of the CTC search is multiplied by."""
    reverse_weight: float | None = Field(None, ge=0, le=1)
    """Share of the right-to-left decoder. Unset: what the checkpoint was trained with."""
