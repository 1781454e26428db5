"""Settings of the tests of the kit."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(scope="package", autouse=True)
def _single_thread() -> Iterator[None]:
    """Toys are too small to share out; on a busy machine the threads would only wait for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
