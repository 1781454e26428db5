"""Samples that are already in memory."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from oasr.audio.pcm import downmix, scaled
from oasr.audio.stream import Blocks
from oasr.errors import EmptyAudioError, InvalidSamplesError

_MAX_CHANNELS = 32
_MIN_RATIO = 4
_BLOCK_FRAMES = 1 << 18


def read_array(source: str, samples: npt.NDArray[Any] | torch.Tensor, rate: int) -> Blocks:
    """Blocks of `samples`, which are (time,) or two-dimensional with channels on either axis.

    Floats are taken as they are, integers by their full scale. The array is neither changed nor kept.
    Raises `InvalidSamplesError` on a dtype or shape that has no one meaning, `EmptyAudioError` without samples.
    """
    array = _to_numpy(source, samples) if isinstance(samples, torch.Tensor) else np.asarray(samples)
    _check_dtype(source, array.dtype)
    if array.size == 0:
        raise EmptyAudioError(source, f"has shape {array.shape}, so no samples")
    frames = _frames(source, array)
    for start in range(0, len(frames), _BLOCK_FRAMES):
        yield downmix(scaled(frames[start : start + _BLOCK_FRAMES])), rate


def _to_numpy(source: str, tensor: torch.Tensor) -> npt.NDArray[Any]:
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_meta:
        raise InvalidSamplesError(source, "is a sparse, quantized or meta tensor; pass a dense one with data")
    tensor = tensor.detach()
    if tensor.dtype == torch.bfloat16:  # unknown to numpy
        tensor = tensor.float()
    try:
        array: npt.NDArray[Any] = tensor.cpu().numpy()
    except TypeError as error:
        raise InvalidSamplesError(source, f"has dtype {tensor.dtype}; pass floats or integers") from error
    return array


def _check_dtype(source: str, dtype: np.dtype[Any]) -> None:
    if dtype.kind == "f" or (dtype.kind in "iu" and dtype.itemsize <= 4):
        return
    if dtype.kind in "iu":
        # A list of 16-bit samples becomes int64 in numpy: dividing by 2**63 would turn it into silence.
        raise InvalidSamplesError(
            source, f"has dtype {dtype}, whose full scale is unknown; convert to int16 or float32"
        )
    raise InvalidSamplesError(source, f"has dtype {dtype}; pass floats or integers")


def _frames(source: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """`array` as (time, channel)."""
    if array.ndim == 1:
        return array[:, None]
    if array.ndim != 2:
        raise InvalidSamplesError(source, f"has shape {array.shape}; pass (time,), (time, channel) or (channel, time)")
    channels, time = sorted(array.shape)
    if channels > 1 and (channels > _MAX_CHANNELS or time <= _MAX_CHANNELS or time < _MIN_RATIO * channels):
        raise InvalidSamplesError(
            source, f"has shape {array.shape}, where either axis could be the channels; downmix it to (time,) first"
        )
    return array if array.shape[1] == channels else array.T
