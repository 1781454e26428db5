"""Log-mel spectrogram of a fixed window, as Whisper's feature extractor computes it (openai/whisper, audio.py)."""

import torch
import torch.nn.functional as F
from torchaudio.functional import melscale_fbanks

from oasr.features.config import LogMelConfig
from oasr.interfaces.frontend import Excerpts, FeatureBatch, Frontend

_POWER_FLOOR = 1e-10
_DYNAMIC_RANGE = 8.0  # decades below the loudest point; quieter is clamped


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

    @property
    def margin_samples(self) -> int:  # type: ignore[override]
        return self.config.fft_samples // 2

    def frames(self, samples: int) -> int:
        return self.window_samples // self.config.hop_samples

    def extract(self, waveforms: torch.Tensor, lengths: torch.Tensor) -> FeatureBatch:
        padded = F.pad(waveforms, (0, self.window_samples - waveforms.shape[1]))
        decades = self._decades(padded, center=True)
        frames = _scaled(decades, decades.amax(dim=(1, 2)))
        hop = self.config.hop_samples
        return FeatureBatch(frames.transpose(1, 2), (lengths + hop - 1) // hop)

    def extract_excerpts(self, excerpts: Excerpts) -> tuple[FeatureBatch, torch.Tensor]:
        """Features as of one spectrogram of the whole input, clamped below the loudest point heard so far.

        Frames behind the end are zero, which no sound gives: so openai/whisper fills a window (transcribe.py). There
        the loudest point is that of the whole input, which cannot be known before it has been read.
        """
        margin, hop = self.margin_samples, self.config.hop_samples
        x = F.pad(excerpts.waveforms, (0, self.window_samples + 2 * margin - excerpts.waveforms.shape[1]))
        mirrored = x[:, margin + 1 : 2 * margin + 1].flip(1)
        x[:, :margin] = torch.where(excerpts.first[:, None], mirrored, x[:, :margin])
        decades = self._decades(x, center=False)
        lengths = excerpts.lengths // hop
        behind = (torch.arange(decades.shape[2], device=x.device) >= lengths[:, None])[:, None]
        loudest = torch.maximum(excerpts.loudest, decades.masked_fill(behind, -torch.inf).amax(dim=(1, 2)))
        frames = _scaled(decades, loudest).masked_fill(behind, 0.0)
        return FeatureBatch(frames.transpose(1, 2), lengths), loudest

    def loudest(self, waveform: torch.Tensor) -> torch.Tensor:
        margin, hop = self.margin_samples, self.config.hop_samples
        x = F.pad(waveform, (margin, margin + hop))
        starts = range(0, len(waveform), self.window_samples)
        blocks = (x[None, start : start + self.window_samples + 2 * margin] for start in starts)
        return torch.stack([self._decades(block, center=False).amax() for block in blocks]).amax()

    def _decades(self, waveforms: torch.Tensor, *, center: bool) -> torch.Tensor:
        """log10 of the power in each band, (batch, bands, time)."""
        fft, hop = self.config.fft_samples, self.config.hop_samples
        spectrum = torch.stft(waveforms, fft, hop, window=self.window, center=center, return_complex=True)
        power = spectrum[..., :-1].abs().square()  # the frame centred on the end of the window is not used
        return (self.filters @ power).clamp(min=_POWER_FLOOR).log10()


def _scaled(decades: torch.Tensor, loudest: torch.Tensor) -> torch.Tensor:
    floor = (loudest - _DYNAMIC_RANGE)[:, None, None]
    return (torch.maximum(decades, floor) + 4.0) / 4.0
