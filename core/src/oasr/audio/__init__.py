"""Any audio input in, 32-bit float mono at the rate a model wants out."""

from oasr.audio.read import RawAudio, Source, detached, open_audio, read_audio
from oasr.audio.stream import AudioStream
from oasr.audio.waveform import MAX_SAMPLE_RATE, Audio

__all__ = ["MAX_SAMPLE_RATE", "Audio", "AudioStream", "RawAudio", "Source", "detached", "open_audio", "read_audio"]
