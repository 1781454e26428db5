"""From waveforms to encoder frames, on the device of the model."""

from collections.abc import Sequence
from contextlib import AbstractContextManager

import torch

from oasr.engine.window import Excerpt, Window
from oasr.interfaces.architecture import Architecture, EncoderOutput
from oasr.interfaces.frontend import Excerpts, FeatureBatch, Frontend


class AudioEncoder:
    """Frontend and encoder of one model."""

    def __init__(self, model: Architecture, frontend: Frontend):
        self.model = model
        self.frontend = frontend

    def encode(self, samples: Sequence[torch.Tensor]) -> EncoderOutput:
        """Features and encoder of waveforms (samples,) of any lengths up to the model's window."""
        with exact_convolutions():
            return self.model.encode(self._extract(samples))

    def encode_windows(self, windows: Sequence[Window]) -> EncoderOutput:
        """As `encode`, but with what the windows that are excerpts depend on besides."""
        excerpts = [window for window in windows if window.excerpt is not None]
        inputs = [window for window in windows if window.excerpt is None]
        with exact_convolutions():
            if not excerpts:
                return self.model.encode(self._extract([window.samples for window in inputs]))
            parts = [self._extract_excerpts(excerpts)]
            if inputs:
                parts.append(self._extract([window.samples for window in inputs]))
            position = {id(window): row for row, window in enumerate([*excerpts, *inputs])}
            order = torch.tensor([position[id(window)] for window in windows], device=self.model.device)
            frames = torch.cat([part.frames for part in parts])[order]
            return self.model.encode(FeatureBatch(frames, torch.cat([part.lengths for part in parts])[order]))

    def _extract(self, samples: Sequence[torch.Tensor]) -> FeatureBatch:
        return self.frontend.extract(*self._on_rows([(0, [each]) for each in samples]))

    def _extract_excerpts(self, windows: Sequence[Window]) -> FeatureBatch:
        device, margin = self.model.device, self.frontend.margin_samples
        quietest = torch.tensor(-torch.inf, device=device)
        rows, known, lengths = [], [], []
        for window in windows:
            excerpt = window.excerpt
            assert excerpt is not None
            known.append(self._loudest_before(excerpt, quietest))
            lengths.append(excerpt.known_samples)
            parts = (excerpt.before, window.samples, excerpt.after)
            rows.append((margin - excerpt.before.shape[0], [part for part in parts if part.shape[0]]))
        waveforms, _ = self._on_rows(rows)
        excerpts = Excerpts(
            waveforms=waveforms,
            lengths=torch.tensor(lengths, device=device),
            first=torch.tensor([window.start_samples == 0 for window in windows], device=device),
            loudest=torch.stack(known),
        )
        features, loudest = self.frontend.extract_excerpts(excerpts)
        for window, each in zip(windows, loudest, strict=True):
            assert window.excerpt is not None
            window.excerpt.loudest = each
        return features

    def _loudest_before(self, excerpt: Excerpt, quietest: torch.Tensor) -> torch.Tensor:
        if excerpt.opening is not None:
            excerpt.loudest, excerpt.opening = self.frontend.loudest(excerpt.opening.to(self.model.device)), None
        return quietest if excerpt.loudest is None else excerpt.loudest

    def _on_rows(self, rows: Sequence[tuple[int, Sequence[torch.Tensor]]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Parts (samples,) of each row behind so many zeros, right-padded (rows, samples); their lengths (rows,)."""
        device = self.model.device
        lengths = [zeros + sum(part.shape[0] for part in parts) for zeros, parts in rows]
        # Each part goes straight to its row: padding on the host would copy the whole batch once more.
        waveforms = torch.zeros(len(rows), max(lengths), device=device)
        for row, (zeros, parts) in zip(waveforms, rows, strict=True):
            start = zeros
            for part in parts:
                end = start + part.shape[0]
                row[start:end].copy_(part)
                start = end
        return waveforms, torch.tensor(lengths, device=device)

    def on_device(self) -> AbstractContextManager[None]:
        """Streams and graphs belong to the current CUDA device, which need not be the model's."""
        device = self.model.device
        return torch.cuda.device(device.index if device.type == "cuda" else -1)


def exact_convolutions() -> AbstractContextManager[None]:
    """float32 means float32: cuDNN would round the convolutions of an encoder to TF32."""
    return torch.backends.cudnn.flags(enabled=True, allow_tf32=False)
