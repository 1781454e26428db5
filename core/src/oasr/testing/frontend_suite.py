"""Laws of frontends."""

import itertools
from collections.abc import Sequence
from typing import ClassVar

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.utils.rnn import pad_sequence

from oasr.interfaces.frontend import FeatureBatch, Frontend
from oasr.plugin import Kind
from oasr.testing.decoder_suite import DEVICES
from oasr.testing.suite import LAW, ComponentSuite

_CUTS = st.lists(st.floats(0, 1), max_size=6)


class FrontendSuite(ComponentSuite):
    """A row's features do not depend on the rows beside it, nor on padding, nor on how live audio is cut."""

    kind: ClassVar[Kind] = Kind.FRONTEND
    tolerance: ClassVar[float] = 1e-5
    seconds: ClassVar[tuple[float, ...]] = (0.02, 0.11, 0.5, 0.737, 1.0)
    """Lengths to try."""

    @pytest.fixture(params=DEVICES)
    def device(self, request: pytest.FixtureRequest) -> torch.device:
        """Where features are computed."""
        return torch.device(request.param)

    @pytest.fixture
    def frontend(self, created: Frontend, device: torch.device) -> Frontend:
        """The frontend, made from `options`."""
        return created.to(device)

    @pytest.fixture
    def waveforms(self, frontend: Frontend) -> list[torch.Tensor]:
        """Noise of several lengths."""
        generator = torch.Generator().manual_seed(0)
        return [0.3 * torch.randn(round(s * frontend.sample_rate), generator=generator) for s in self.seconds]

    def test_features_are_float32_and_finite(self, frontend: Frontend, waveforms: list[torch.Tensor]) -> None:
        batch = _extract(frontend, waveforms)
        assert batch.frames.dtype == torch.float32
        assert batch.frames.shape[0] == len(waveforms)
        assert batch.frames.isfinite().all()

    def test_lengths_are_int64_and_within_the_frames(self, frontend: Frontend, waveforms: list[torch.Tensor]) -> None:
        batch = _extract(frontend, waveforms)
        assert batch.lengths.dtype == torch.int64
        assert batch.lengths.device == batch.frames.device
        assert batch.lengths.min() >= 1
        assert batch.lengths.max() <= batch.frames.shape[1]

    def test_longer_audio_never_has_fewer_frames(self, frontend: Frontend, waveforms: list[torch.Tensor]) -> None:
        lengths = _extract(frontend, waveforms).lengths.tolist()
        assert lengths == sorted(lengths)

    def test_the_cost_told_to_the_scheduler_covers_the_frames(
        self, frontend: Frontend, waveforms: list[torch.Tensor]
    ) -> None:
        for waveform in waveforms:
            batch = _extract(frontend, [waveform])
            assert frontend.frames(len(waveform)) >= int(batch.lengths[0])

    def test_company_does_not_matter(self, frontend: Frontend, waveforms: list[torch.Tensor]) -> None:
        together = _extract(frontend, waveforms)
        for row, waveform in enumerate(waveforms):
            self._assert_same(_extract(frontend, [waveform]), 0, together, row)

    def test_order_does_not_matter(self, frontend: Frontend, waveforms: list[torch.Tensor]) -> None:
        forward, backward = _extract(frontend, waveforms), _extract(frontend, waveforms[::-1])
        for row in range(len(waveforms)):
            self._assert_same(forward, row, backward, -1 - row)

    def test_a_loud_neighbour_does_not_matter(self, frontend: Frontend, waveforms: list[torch.Tensor]) -> None:
        quiet = 0.01 * waveforms[-1]
        alone = _extract(frontend, [quiet])
        self._assert_same(alone, 0, _extract(frontend, [quiet, torch.ones_like(quiet)]), 0)

    def test_silence_and_full_scale_are_finite(self, frontend: Frontend) -> None:
        samples = frontend.sample_rate // 2
        square = torch.ones(samples)
        square[::2] = -1
        assert _extract(frontend, [torch.zeros(samples), square]).frames.isfinite().all()

    @pytest.mark.parametrize("samples", [0, 1, 8, 159, 160, 161, 399, 400, 401])
    def test_a_few_samples_are_enough(self, frontend: Frontend, samples: int) -> None:
        batch = _extract(frontend, [torch.full((samples,), 0.1)])
        assert batch.frames.isfinite().all()
        assert 0 <= int(batch.lengths[0]) <= batch.frames.shape[1]

    def test_it_leaves_the_waveforms_as_they_were(self, frontend: Frontend, waveforms: list[torch.Tensor]) -> None:
        padded, lengths = _padded(frontend, waveforms)
        before = padded.clone()
        frontend.extract(padded, lengths)
        assert torch.equal(padded, before)

    @LAW
    @given(data=st.data())
    def test_streams_give_the_frames_of_the_whole(
        self, frontend: Frontend, waveforms: list[torch.Tensor], data: st.DataObject
    ) -> None:
        self._require_streams(frontend)
        cuts = [data.draw(_CUTS) for _ in waveforms]
        whole = _extract(frontend, waveforms)
        streamed = _streamed(frontend, waveforms, cuts)
        for row, frames in enumerate(streamed):
            self._assert_same(FeatureBatch(frames[None], torch.tensor([len(frames)])), 0, whole, row)

    @pytest.mark.parametrize("samples", [0, 1, 8, 159, 160, 161, 399, 400, 401])
    def test_a_stream_of_a_few_samples_ends_as_it_should(self, frontend: Frontend, samples: int) -> None:
        self._require_streams(frontend)
        waveform = torch.linspace(-0.5, 0.5, samples)
        whole = _extract(frontend, [waveform])
        for cuts in ([], [1.0], [0.5], [0.0, 0.3, 0.3, 0.9]):
            [frames] = _streamed(frontend, [waveform], [cuts])
            self._assert_same(FeatureBatch(frames[None], torch.tensor([len(frames)])), 0, whole, 0)

    def test_a_stream_gives_frames_before_the_end(self, frontend: Frontend, waveforms: list[torch.Tensor]) -> None:
        self._require_streams(frontend)
        [frames] = frontend.advance([frontend.stream()], [waveforms[-1]], [False])
        assert len(frames) > 0

    def _require_streams(self, frontend: Frontend) -> None:
        try:
            frontend.stream()
        except NotImplementedError:
            pytest.skip("it does not take live audio")

    def _assert_same(self, one: FeatureBatch, row: int, other: FeatureBatch, other_row: int) -> None:
        length = int(one.lengths[row])
        assert length == int(other.lengths[other_row])
        torch.testing.assert_close(
            one.frames[row, :length], other.frames[other_row, :length], atol=self.tolerance, rtol=0
        )


def _padded(frontend: Frontend, waveforms: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    device = next((tensor.device for tensor in frontend.buffers()), torch.device("cpu"))
    lengths = torch.tensor([len(waveform) for waveform in waveforms])
    return pad_sequence(waveforms, batch_first=True).to(device), lengths.to(device)


def _extract(frontend: Frontend, waveforms: list[torch.Tensor]) -> FeatureBatch:
    return frontend.extract(*_padded(frontend, waveforms))


def _streamed(
    frontend: Frontend, waveforms: Sequence[torch.Tensor], cuts: Sequence[Sequence[float]]
) -> list[torch.Tensor]:
    """The frames of waveforms that come in pieces, cut at these shares of their lengths; all streams ride together."""
    pieces = []
    for waveform, shares in zip(waveforms, cuts, strict=True):
        edges = [0, *sorted(round(share * len(waveform)) for share in shares), len(waveform)]
        pieces.append([waveform[start:end] for start, end in itertools.pairwise(edges)])
    streams = [frontend.stream() for _ in waveforms]
    found: list[list[torch.Tensor]] = [[] for _ in waveforms]
    for turn in range(max(map(len, pieces))):
        riding = [row for row, parts in enumerate(pieces) if turn < len(parts)]
        last = [turn + 1 == len(pieces[row]) for row in riding]
        given = frontend.advance([streams[row] for row in riding], [pieces[row][turn] for row in riding], last)
        for row, frames in zip(riding, given, strict=True):
            found[row].append(frames)
    return [torch.cat(frames) for frames in found]
