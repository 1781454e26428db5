"""Fixtures for the tests of every distribution."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

_ENVIRONMENT = "OASR_SHARED"


@pytest.fixture(scope="session")
def shared() -> Callable[[str], Path]:
    """Path of a folder of recordings, checkpoints or expected values that is too large to ship with the source.

    They lie in a folder `shared` beside the checkout, or where `OASR_SHARED` points.
    """
    root = Path(os.environ.get(_ENVIRONMENT) or Path(__file__).resolve().parent.parent / "shared")

    def find(relative: str) -> Path:
        path = root / relative
        if not path.exists():
            pytest.skip(f"{relative} is not in {root}; set {_ENVIRONMENT} to the folder that holds it")
        return path

    return find


@pytest.fixture(scope="session", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    """Each device there is: the same test runs on both."""
    if request.param == "cuda":
        import torch

        if not torch.cuda.is_available():
            pytest.skip("no CUDA device")
    return str(request.param)
