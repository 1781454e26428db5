"""Any audio input in, 32-bit float mono at the rate a model wants out."""

from oasr.audio.read import Source, read_audio
from oasr.audio.waveform import DEFAULT_LIMITS, MAX_SAMPLE_RATE, Audio, AudioLimits

__all__ = ["DEFAULT_LIMITS", "MAX_SAMPLE_RATE", "Audio", "AudioLimits", "Source", "read_audio"]
