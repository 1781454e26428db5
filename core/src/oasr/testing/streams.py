"""The states of streams, held the simplest way: each stream's own tensors."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from oasr.interfaces.streaming import StreamLayout, StreamView


@dataclass(eq=False, slots=True)
class Stream:
    """One stream by hand."""

    slots: dict[str, torch.Tensor]
    age: int = 0
    keys: dict[int, torch.Tensor] = field(default_factory=dict)
    """(time, heads, size) of each layer."""
    values: dict[int, torch.Tensor] = field(default_factory=dict)


def new_stream(layout: StreamLayout, device: torch.device | str = "cpu") -> Stream:
    """A stream that has heard nothing."""
    return Stream({name: torch.zeros(shape, device=device) for name, shape in layout.slots.items()})


class StreamRows(StreamView):
    """Some streams as a batch. Add to `Stream.age` what a chunk gave before the next one."""

    def __init__(self, streams: Sequence[Stream], device: torch.device | str = "cpu"):
        self._streams = streams
        self.ages = torch.tensor([stream.age for stream in streams], device=device)

    def load(self, name: str) -> torch.Tensor:
        return torch.stack([stream.slots[name] for stream in self._streams])

    def store(self, name: str, values: torch.Tensor) -> None:
        for stream, value in zip(self._streams, values, strict=True):
            stream.slots[name] = value

    def append(
        self, layer: int, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        for stream, new_keys, new_values in zip(self._streams, keys, values, strict=True):
            for held, new in ((stream.keys, new_keys), (stream.values, new_values)):
                held[layer] = torch.cat((held[layer][: stream.age], new)) if layer in held else new
        total = [len(stream.keys[layer]) for stream in self._streams]
        pad = torch.nn.utils.rnn.pad_sequence
        mask = torch.arange(max(total), device=keys.device) < torch.tensor(total, device=keys.device)[:, None]
        return (
            pad([stream.keys[layer] for stream in self._streams], batch_first=True),
            pad([stream.values[layer] for stream in self._streams], batch_first=True),
            mask,
        )
