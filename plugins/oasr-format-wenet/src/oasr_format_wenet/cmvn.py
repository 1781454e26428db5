"""Statistics of the features over the training data, which WeNet stores as sums and the network needs as factors.

JSON holds `mean_stat`, `var_stat` and `frame_num`; Kaldi's text one matrix of two rows: the sums and the number of
frames, the sums of squares and 0.
"""

import math
from pathlib import Path
from typing import Any, NamedTuple

from oasr.checkpoint.damage import require_sound
from oasr.checkpoint.json_file import read_object
from oasr.errors import CheckpointError

_LEAST_VARIANCE = 1e-20
_KALDI_BINARY = b"\0B"


class FeatureStatistics(NamedTuple):
    """Of each feature."""

    mean: tuple[float, ...]
    inverse_deviation: tuple[float, ...]


def read_statistics(path: Path) -> FeatureStatistics:
    """Read either layout, told apart by the content: what train.yaml says of it may be left over from another recipe.

    Raises `CheckpointError` when the file is missing, damaged or holds something else.
    """
    require_sound(path)
    with path.open("rb") as file:
        head = file.read(256).lstrip()
    if head.startswith(_KALDI_BINARY):
        raise CheckpointError(
            f"{path} is a binary matrix of Kaldi; write it as text with copy-matrix --binary=false, and use that."
        )
    sums, squares, frames = _from_json(path) if head.startswith(b"{") else _from_kaldi(path)
    if (
        not sums
        or len(sums) != len(squares)
        or not frames > 0
        or not all(map(math.isfinite, (*sums, *squares, frames)))
    ):
        raise CheckpointError(
            f"{path} is damaged: {len(sums)} sums and {len(squares)} sums of squares of {frames:g} frames."
        )
    mean = tuple(total / frames for total in sums)
    variance = (max(total / frames - centre**2, _LEAST_VARIANCE) for total, centre in zip(squares, mean, strict=True))
    return FeatureStatistics(mean, tuple(1 / math.sqrt(value) for value in variance))


def _from_json(path: Path) -> tuple[list[float], list[float], float]:
    content = read_object(path)
    [frames] = _numbers(path, [content.get("frame_num")])
    return _numbers(path, content.get("mean_stat")), _numbers(path, content.get("var_stat")), frames


def _from_kaldi(path: Path) -> tuple[list[float], list[float], float]:
    try:
        words = path.read_text(encoding="ascii").split()
    except ValueError as error:
        raise CheckpointError(f"{path} is neither JSON nor a matrix of Kaldi as text.") from error
    if len(words) < 6 or words[0] != "[" or words[-1] != "]" or len(words) % 2:
        raise CheckpointError(f"{path} is neither JSON nor a whole matrix of Kaldi as text.")
    numbers = _numbers(path, words[1:-1])
    half = len(numbers) // 2
    return numbers[: half - 1], numbers[half:-1], numbers[half - 1]


def _numbers(path: Path, values: Any) -> list[float]:
    try:
        return [float(value) for value in values]
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged: where numbers are expected it holds something else.") from error
