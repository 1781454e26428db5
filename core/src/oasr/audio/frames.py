"""Samples out of PyAV's frames, around two faults of PyAV that end the process.

Both were found in PyAV 18.1; neither needs more than an odd file, so neither may be met.
"""

import ctypes
from typing import Any

import av
import numpy as np

from oasr.audio.pcm import Float32Array, scaled

# `frame.planes` looks for a null pointer behind the last plane. libav puts one there up to seven planes; past that
# PyAV reads memory that is not the frame's.
_SAFE_PLANES = 7
# Channel layouts in an order of their own, as CAF can declare, hold an allocated map. PyAV copies its pointer with the
# layout and frees it with every copy.


def plain_layout(context: Any) -> None:
    """Make an unopened decoder use libav's own order of the channels, or none, but no allocated one."""
    layout = context.layout
    if layout.nb_channels:
        context.layout = f"{layout.nb_channels} channels" if _own_order(layout.name) else layout.name


def frame_samples(frame: Any) -> Float32Array:
    """`frame` as (time, channel). Raises `ValueError` or a libav error when its format is none that numpy knows."""
    layout = frame.layout
    if _own_order(layout.name):  # the codec itself can declare one
        # A copy that nobody frees leaves the map to libav. It costs about 100 bytes a frame.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(layout))
    channels: int = layout.nb_channels
    if frame.format.is_planar and channels > _SAFE_PLANES:
        frame = av.AudioResampler(format="flt").resample(frame)[0]
    samples: np.ndarray[Any, Any] = frame.to_ndarray()  # (channel, time) when planar, else (1, time * channel)
    return scaled(samples.T if frame.format.is_planar else samples.reshape(-1, channels))


def _own_order(layout_name: str) -> bool:
    """libav describes these as "8 channels (FL+FR+...)", its own as "7.1" or "8 channels"."""
    return " channels (" in layout_name
