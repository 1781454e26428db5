"""Log-mel filter banks as Kaldi computes them (kaldi, feat/feature-window.cc and feature-fbank.cc), without dither.

Where a checkpoint asks for it, neighbouring frames are stacked (low frame rate, as FunASR does it) and normalised.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn.utils.rnn import pad_sequence
from torchaudio.compliance.kaldi import get_mel_banks

from oasr.features.config import KaldiFbankConfig
from oasr.interfaces.frontend import FeatureBatch, Frontend

_EPSILON = torch.finfo(torch.float32).eps  # least energy of a band, before the logarithm
_UNWARPED = (100.0, -500.0, 1.0)  # vocal tract lengths are not normalised; the first two have no effect then
_POVEY_POWER = 0.85
_BLOCK = 1 << 14  # frames computed at once: a spectrum takes eight times the memory of the samples it is made of


@dataclass(eq=False, slots=True)
class _Stream:
    """A waveform that comes piece by piece."""

    samples: torch.Tensor
    """Those that frames to come may need."""
    bands: torch.Tensor
    """(time, bin): frames that stacks to come may need."""
    dropped_samples: int = 0
    dropped_bands: int = 0
    windows: int = 0
    """Frames computed so far."""
    stacks: int = 0
    """Stacks of them given so far."""


class KaldiFbank(Frontend):
    """Frames of 25 ms every 10 ms, unless the checkpoint says otherwise; feature (mel_bins * lfr_stack,)."""

    taper: torch.Tensor
    filters: torch.Tensor
    shift: torch.Tensor
    scale: torch.Tensor

    def __init__(self, config: KaldiFbankConfig):
        super().__init__(config)
        self.config = config
        self.sample_rate = config.sample_rate
        self._length = int(config.sample_rate * config.frame_length_ms / 1000)
        self._hop = int(config.sample_rate * config.frame_shift_ms / 1000)
        self._fft = 1 << (self._length - 1).bit_length()
        # Without snipped edges a frame is centred on the middle of its hop.
        self._lead = 0 if config.snip_edges else self._length // 2 - self._hop // 2
        self._context = (config.lfr_stack - 1) // 2
        filters, _ = get_mel_banks(
            config.mel_bins, self._fft, float(self.sample_rate), config.low_freq, config.high_freq, *_UNWARPED
        )
        self.register_buffer("taper", _taper(config.window, self._length), persistent=False)
        self.register_buffer("filters", filters.T.contiguous(), persistent=False)
        self.register_buffer("shift", torch.tensor(config.cmvn_shift), persistent=False)
        self.register_buffer("scale", torch.tensor(config.cmvn_scale), persistent=False)

    def frames(self, samples: int) -> int:
        return -(-self._windows(samples) // self.config.lfr_stride)

    def extract(self, waveforms: torch.Tensor, lengths: torch.Tensor) -> FeatureBatch:
        over = self._length - self._hop if self.config.snip_edges else -(self._hop // 2)
        windows = ((lengths - over) // self._hop).clamp(min=0)
        zero = torch.zeros_like(lengths)
        bands = self._bands(waveforms, zero, lengths, zero, self._windows(waveforms.shape[1]))
        stride = self.config.lfr_stride
        stacked = self._stacked(bands, zero, windows, zero, -(-bands.shape[1] // stride))
        return FeatureBatch(stacked, (windows + stride - 1) // stride)

    def stream(self) -> _Stream:
        return _Stream(torch.empty(0), self.filters.new_empty(0, self.config.mel_bins))

    def advance(
        self, streams: Sequence[_Stream], samples: Sequence[torch.Tensor], last: Sequence[bool]
    ) -> list[torch.Tensor]:
        if not streams:
            return []
        self._hear(streams, samples, last)
        ready = [self._stacks_ready(stream, end) for stream, end in zip(streams, last, strict=True)]
        bands = pad_sequence([stream.bands for stream in streams], batch_first=True)
        dropped, totals = self._tensor([[stream.dropped_bands, _bands_seen(stream)] for stream in streams])
        (first,) = self._tensor([[stream.stacks] for stream in streams])
        stacked = self._stacked(bands, dropped, totals, first, max(ready))
        for stream, count in zip(streams, ready, strict=True):
            stream.stacks += count
            needed = max(0, stream.stacks * self.config.lfr_stride - self._context)
            kept = min(len(stream.bands), int(self.config.lfr_stack > 1))  # the last one may pad the end
            gone = min(needed - stream.dropped_bands, len(stream.bands) - kept)
            stream.bands = stream.bands[gone:].clone()
            stream.dropped_bands += gone
        return [row[:count] for row, count in zip(stacked, ready, strict=True)]

    def _hear(self, streams: Sequence[_Stream], samples: Sequence[torch.Tensor], last: Sequence[bool]) -> None:
        """Compute the frames that the new samples complete, of all streams as one batch."""
        for stream, new in zip(streams, samples, strict=True):
            stream.samples = torch.cat((stream.samples.to(new.device), new))
        ready = [self._windows_ready(stream, end) for stream, end in zip(streams, last, strict=True)]
        if any(ready):
            waveforms = pad_sequence([stream.samples for stream in streams], batch_first=True).to(self.filters.device)
            facts = [[stream.dropped_samples, _samples_seen(stream), stream.windows] for stream in streams]
            dropped, totals, first = self._tensor(facts)
            bands = self._bands(waveforms, dropped, totals, first, max(ready))
            for stream, count, row in zip(streams, ready, bands, strict=True):
                stream.bands = torch.cat((stream.bands, row[:count]))
        for stream, count in zip(streams, ready, strict=True):
            stream.windows += count
            gone = max(0, min(stream.windows * self._hop - self._lead - stream.dropped_samples, len(stream.samples)))
            stream.samples = stream.samples[gone:].clone()
            stream.dropped_samples += gone

    def _tensor(self, columns: Sequence[Sequence[int]]) -> torch.Tensor:
        return torch.tensor(columns, device=self.filters.device).T

    def _windows(self, samples: int) -> int:
        """Frames of a whole waveform."""
        if self.config.snip_edges:
            return max(0, (samples - self._length) // self._hop + 1)
        return (samples + self._hop // 2) // self._hop

    def _windows_ready(self, stream: _Stream, end: bool) -> int:
        """Frames not computed yet that no sample to come will change."""
        seen = _samples_seen(stream)
        whole = self._windows(seen) if end else (seen + self._lead - self._length) // self._hop + 1
        return max(0, whole - stream.windows)

    def _stacks_ready(self, stream: _Stream, end: bool) -> int:
        """Stacks not given yet that no frame to come will change."""
        stride, ahead = self.config.lfr_stride, self.config.lfr_stack - 1 - self._context
        whole = -(-stream.windows // stride) if end else (stream.windows - 1 - ahead) // stride + 1
        return max(0, whole - stream.stacks)

    def _bands(
        self, waveforms: torch.Tensor, dropped: torch.Tensor, totals: torch.Tensor, first: torch.Tensor, count: int
    ) -> torch.Tensor:
        """`count` frames of each row from its frame `first` on, (batch, count, bin).

        The rows of waveforms begin after `dropped` samples; `totals` samples are known. All (batch,).
        """
        block = max(1, _BLOCK // len(waveforms))
        parts = [
            self._block(waveforms, dropped, totals, first + begin, min(block, count - begin))
            for begin in range(0, count, block)
        ]
        return torch.cat(parts, dim=1) if parts else self.filters.new_zeros(len(waveforms), 0, self.config.mel_bins)

    def _block(
        self, waveforms: torch.Tensor, dropped: torch.Tensor, totals: torch.Tensor, first: torch.Tensor, count: int
    ) -> torch.Tensor:
        span = torch.arange((count - 1) * self._hop + self._length, device=waveforms.device)
        positions = (first * self._hop - self._lead)[:, None] + span
        local = _reflected(positions, totals[:, None]) - dropped[:, None]
        samples = waveforms.gather(1, local.clamp(0, waveforms.shape[1] - 1)) * self.config.waveform_scale
        windows = samples.unfold(1, self._length, self._hop)
        if self.config.remove_dc_offset:
            windows = windows - windows.mean(dim=-1, keepdim=True)
        before = torch.cat((windows[..., :1], windows[..., :-1]), dim=-1)
        windows = (windows - self.config.preemphasis * before) * self.taper
        power = torch.fft.rfft(windows, self._fft).abs().square()
        # The banks leave out the bin of the Nyquist frequency, where every triangle is zero.
        energies: torch.Tensor = power[..., :-1] @ self.filters
        return energies.clamp(min=_EPSILON).log()

    def _stacked(
        self, bands: torch.Tensor, dropped: torch.Tensor, totals: torch.Tensor, first: torch.Tensor, count: int
    ) -> torch.Tensor:
        """`count` features of each row from its feature `first` on, of frames as in `_bands`.

        Copies of the first and of the last frame stand in for frames outside.
        """
        stack, stride = self.config.lfr_stack, self.config.lfr_stride
        if count == 0:
            return bands.new_zeros(len(bands), 0, bands.shape[2] * stack)
        if stack * stride > 1:
            starts = (first[:, None] + torch.arange(count, device=bands.device)) * stride - self._context
            index = starts[:, :, None] + torch.arange(stack, device=bands.device)
            index = torch.minimum(index, totals[:, None, None] - 1).clamp(min=0) - dropped[:, None, None]
            index = index.clamp(0, bands.shape[1] - 1).flatten(1)[..., None].expand(-1, -1, bands.shape[2])
            bands = bands.gather(1, index).view(len(bands), count, -1)
        features = bands[:, :count]
        if self.config.cmvn_shift:
            features = (features + self.shift) * self.scale
        return features


def _samples_seen(stream: _Stream) -> int:
    return stream.dropped_samples + len(stream.samples)


def _bands_seen(stream: _Stream) -> int:
    return stream.dropped_bands + len(stream.bands)


def _reflected(positions: torch.Tensor, totals: torch.Tensor) -> torch.Tensor:
    """Positions in a waveform of so many samples, which goes on as its mirror image at both ends."""
    period = positions % (2 * totals.clamp(min=1))
    return torch.minimum(period, 2 * totals - 1 - period)


def _taper(window: str, length: int) -> torch.Tensor:
    match window:
        case "povey":  # a Hann window without its zeros, after Daniel Povey
            return torch.hann_window(length, periodic=False).pow(_POVEY_POWER)
        case "hanning":
            return torch.hann_window(length, periodic=False)
        case "hamming":
            return torch.hamming_window(length, periodic=False)
        case "blackman":
            return torch.blackman_window(length, periodic=False)
        case _:
            return torch.ones(length)
