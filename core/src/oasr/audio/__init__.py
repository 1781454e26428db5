"""Any audio input in, 32-bit float mono at the rate a model wants out."""

from oasr.audio.read import RawAudio, Source, read_audio
from oasr.audio.waveform import MAX_SAMPLE_RATE, Audio

__all__ = ["MAX_SAMPLE_RATE", "Audio", "RawAudio", "Source", "read_audio"]
