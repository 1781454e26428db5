"""Options of the frontends. They are facts of a checkpoint, not a user's choice."""

from typing import Literal, Self

from pydantic import Field, model_validator

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


class KaldiFbankConfig(ComponentConfig):
    """Log-mel filter banks as Kaldi computes them."""

    sample_rate: int = Field(16_000, ge=1)
    """Hertz."""
    mel_bins: int = Field(80, ge=4)
    frame_length_ms: float = Field(25.0, gt=0)
    frame_shift_ms: float = Field(10.0, gt=0)
    window: Literal["povey", "hamming", "hanning", "rectangular", "blackman"] = "povey"
    snip_edges: bool = True
    """Frames lie within the audio; otherwise one is centred on each hop, and audio is mirrored at its ends."""
    low_freq: float = Field(20.0, ge=0)
    """Hertz."""
    high_freq: float = 0.0
    """Hertz; 0 or less is counted from the Nyquist frequency."""
    preemphasis: float = Field(0.97, ge=0, le=1)
    remove_dc_offset: bool = True
    waveform_scale: float = Field(1.0, gt=0)
    """What samples are multiplied by: 32768 for models that were trained on 16-bit integers."""
    lfr_stack: int = Field(1, ge=1)
    """Frames stacked to one feature (low frame rate)."""
    lfr_stride: int = Field(1, ge=1)
    """Frames from one stack to the next."""
    cmvn_shift: tuple[float, ...] = ()
    """Added to each dimension of the stacked feature: the mean of the training data, negated."""
    cmvn_scale: tuple[float, ...] = ()
    """What each dimension is multiplied by then: one over the standard deviation."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        nyquist = self.sample_rate / 2
        top = self.high_freq if self.high_freq > 0 else nyquist + self.high_freq
        if not self.low_freq < top <= nyquist:
            raise ValueError(
                f"low_freq={self.low_freq} and high_freq={self.high_freq} leave no band below {nyquist} Hz"
            )
        if self.sample_rate * min(self.frame_length_ms, self.frame_shift_ms) < 2000:
            raise ValueError("frame_length_ms and frame_shift_ms must span at least two samples")
        size = self.mel_bins * self.lfr_stack
        if len(self.cmvn_shift) != len(self.cmvn_scale) or len(self.cmvn_shift) not in (0, size):
            raise ValueError(f"cmvn_shift and cmvn_scale need {size} numbers each, mel_bins * lfr_stack, or none")
        return self
