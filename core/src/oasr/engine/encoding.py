"""From waveforms to encoder frames, on the device of the model."""

from collections.abc import Sequence
from contextlib import AbstractContextManager

import torch

from oasr.interfaces.architecture import Architecture, EncoderOutput
from oasr.interfaces.frontend import Frontend


class AudioEncoder:
    """Frontend and encoder of one model."""

    def __init__(self, model: Architecture, frontend: Frontend):
        self.model = model
        self.frontend = frontend

    def encode(self, samples: Sequence[torch.Tensor]) -> EncoderOutput:
        """Features and encoder of waveforms (samples,) of any lengths up to the model's window."""
        device = self.model.device
        lengths = [len(each) for each in samples]
        # Each waveform goes straight to its row: padding on the host would copy the whole batch once more.
        waveforms = torch.zeros(len(samples), max(lengths), device=device)
        for row, waveform in zip(waveforms, samples, strict=True):
            row[: len(waveform)].copy_(waveform)
        with exact_convolutions():
            features = self.frontend.extract(waveforms, torch.tensor(lengths, device=device))
            return self.model.encode(features)

    def on_device(self) -> AbstractContextManager[None]:
        """Streams and graphs belong to the current CUDA device, which need not be the model's."""
        device = self.model.device
        return torch.cuda.device(device.index if device.type == "cuda" else -1)


def exact_convolutions() -> AbstractContextManager[None]:
    """float32 means float32: cuDNN would round the convolutions of an encoder to TF32."""
    return torch.backends.cudnn.flags(enabled=True, allow_tf32=False)
