"""Options of the batching policies."""

from pydantic import Field

from oasr.interfaces.component import ComponentConfig


class BucketedConfig(ComponentConfig):
    """Windows of like length are encoded together."""

    max_rows: int | None = Field(None, ge=1, examples=[8])
    """Most windows decoded at once; unset, what the device's memory holds, at most 8 on a CPU and 128 on a GPU."""
    max_frames: int = Field(192_000, ge=1)
    """Most feature frames encoded in one batch, padding included; a longer window goes alone."""
    max_wait_seconds: float = Field(0.01, ge=0)
    """How long a window may wait for others to fill a batch while earlier ones are being decoded."""
