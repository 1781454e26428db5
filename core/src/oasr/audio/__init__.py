"""Any audio input in, 32-bit float mono at the rate a model wants out."""

from oasr.audio.read import RawAudio, Source, read_audio
from oasr.audio.waveform import MAX_SAMPLE_RATE, Audio
from oasr.config import AudioConfig


def AudioLimits(max_seconds: float, max_bytes: int) -> AudioConfig:  # noqa: N802
    """The limits of a configuration."""
    return AudioConfig(max_seconds=max_seconds, max_bytes=max_bytes)


__all__ = ["MAX_SAMPLE_RATE", "Audio", "RawAudio", "Source", "read_audio"]
