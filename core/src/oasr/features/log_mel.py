"""Log-mel spectrogram of a fixed window, as Whisper's feature extractor computes it (openai/whisper, audio.py)."""

import torch
import torch.nn.functional as F
from torchaudio.functional import melscale_fbanks

from oasr.features.config import LogMelConfig
from oasr.interfaces.frontend import FeatureBatch, Frontend

_POWER_FLOOR = 1e-10
_DYNAMIC_RANGE = 8.0  # decades below the loudest point of the window; quieter is clamped


class LogMel(Frontend):
    """Slaney mel bands of the power spectrum, log10, clamped to 8 decades, scaled to about [-1, 1]."""

    window: torch.Tensor
    filters: torch.Tensor

    def __init__(self, config: LogMelConfig):
        super().__init__(config)
        self.config = config
        self.sample_rate = config.sample_rate
        self.window_samples = round(config.window_seconds * config.sample_rate)
        filters = melscale_fbanks(
            n_freqs=config.fft_samples // 2 + 1,
            f_min=0.0,
            f_max=config.sample_rate / 2,
            n_mels=config.mel_bins,
            sample_rate=config.sample_rate,
            norm="slaney",
            mel_scale="slaney",
        )
        self.register_buffer("window", torch.hann_window(config.fft_samples), persistent=False)
        self.register_buffer("filters", filters.T.contiguous(), persistent=False)

    def frames(self, samples: int) -> int:
        return self.window_samples // self.config.hop_samples

    def extract(self, waveforms: torch.Tensor, lengths: torch.Tensor) -> FeatureBatch:
        padded = F.pad(waveforms, (0, self.window_samples - waveforms.shape[1]))
        hop = self.config.hop_samples
        spectrum = torch.stft(padded, self.config.fft_samples, hop, window=self.window, return_complex=True)
        power = spectrum[..., :-1].abs().square()  # the frame centred on the end of the window is not used
        decades = (self.filters @ power).clamp(min=_POWER_FLOOR).log10()
        floor = decades.amax(dim=(1, 2), keepdim=True) - _DYNAMIC_RANGE
        frames = (torch.maximum(decades, floor) + 4.0) / 4.0
        return FeatureBatch(frames.transpose(1, 2), (lengths + hop - 1) // hop)
