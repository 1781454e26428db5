"""Options of the frontends. They are facts of a checkpoint, not a user's choice."""

from pydantic import Field

from oasr.interfaces.component import ComponentConfig


class LogMelConfig(ComponentConfig):
    """Log-mel spectrogram as Whisper computes it."""

    sample_rate: int = Field(16_000, ge=1)
    """Hertz."""
    mel_bins: int = Field(80, ge=1)
    fft_samples: int = Field(400, ge=2)
    hop_samples: int = Field(160, ge=1)
    window_seconds: float = Field(30.0, gt=0)
    """Every waveform is padded with silence to this length."""
