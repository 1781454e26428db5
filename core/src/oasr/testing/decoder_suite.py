"""Laws of searches."""

from typing import Any, ClassVar

import pytest
import torch

from oasr.errors import RequestError
from oasr.interfaces.decoder import Decoder, LabelSynchronousDecoder
from oasr.plugin import ComponentSpec, Kind
from oasr.testing.frame_synchronous_laws import FrameSynchronousLaws
from oasr.testing.suite import ComponentSuite
from oasr.types import DecodingOptions

_VOCABULARY = 12
_SURE_CHI_SQUARE = 29.9  # of 10 degrees of freedom: passed by chance in one of a thousand fair samples
DEVICES = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)


class DecoderSuite(FrameSynchronousLaws, ComponentSuite):
    """A search. Whether it chooses tokens from logits or reads encoder frames, a row depends on itself alone."""

    kind: ClassVar[Kind] = Kind.DECODER

    @pytest.fixture(params=DEVICES)
    def device(self, request: pytest.FixtureRequest) -> torch.device:
        """Where the logits are."""
        return torch.device(request.param)

    @pytest.fixture
    def decoder(self, created: Decoder) -> LabelSynchronousDecoder:
        """The search, made from `options`."""
        if not isinstance(created, LabelSynchronousDecoder):
            pytest.skip("not a search that chooses tokens from logits")
        return created

    def test_it_needs_the_head_it_names(self, target: type[Decoder], spec: ComponentSpec) -> None:
        assert f"{target.head}-head" in spec.needs, (
            "say so in needs, or a wrong pair is found out in the middle of work"
        )

    def test_it_accepts_a_request_that_asks_for_nothing_special(self, decoder: LabelSynchronousDecoder) -> None:
        decoder.check(DecodingOptions())

    def test_tokens_are_one_int64_a_row(self, decoder: LabelSynchronousDecoder, device: torch.device) -> None:
        tokens = _advance(decoder, _logits(5, device))
        assert tokens.dtype == torch.int64
        assert tokens.shape == (5,)
        assert tokens.device.type == device.type

    def test_tokens_are_in_the_vocabulary(self, decoder: LabelSynchronousDecoder, device: torch.device) -> None:
        tokens = _advance(decoder, _logits(64, device))
        assert int(tokens.min()) >= 0
        assert int(tokens.max()) < _VOCABULARY

    def test_temperature_0_takes_the_likeliest_token_at_first(
        self, decoder: LabelSynchronousDecoder, device: torch.device
    ) -> None:
        logits = _logits(32, device)
        assert torch.equal(_advance(decoder, logits), logits.argmax(dim=-1))

    def test_temperature_0_takes_the_likeliest_token_that_was_not_said_before(
        self, decoder: LabelSynchronousDecoder, device: torch.device
    ) -> None:
        logits = _logits(4, device)
        logits[:, 6:] = -torch.inf
        generated = torch.arange(6, _VOCABULARY, device=device).repeat(4, 1)
        tokens = _advance(decoder, logits, generated, counts=torch.full((4,), 6, device=device))
        assert torch.equal(tokens, logits.argmax(dim=-1))

    def test_a_row_depends_on_itself_alone(self, decoder: LabelSynchronousDecoder, device: torch.device) -> None:
        logits, generated, counts = _logits(6, device), *_history(6, device)
        together = _advance(decoder, logits, generated, counts)
        for row in range(6):
            one = slice(row, row + 1)
            alone = _advance(decoder, logits[one], generated[one], counts[one])
            assert torch.equal(alone, together[one]), f"row {row} chose otherwise in company"

    def test_the_order_of_rows_does_not_matter(self, decoder: LabelSynchronousDecoder, device: torch.device) -> None:
        logits, generated, counts = _logits(6, device), *_history(6, device)
        order = torch.tensor([3, 0, 5, 1, 4, 2], device=device)
        shuffled = _advance(decoder, logits[order], generated[order], counts[order])
        assert torch.equal(shuffled, _advance(decoder, logits, generated, counts)[order])

    def test_what_lies_behind_the_counts_does_not_matter(
        self, decoder: LabelSynchronousDecoder, device: torch.device
    ) -> None:
        logits, generated, counts = _logits(6, device), *_history(6, device)
        behind = torch.arange(generated.shape[1], device=device) >= counts[:, None]
        other = generated.masked_fill(behind, _VOCABULARY - 1)
        assert torch.equal(_advance(decoder, logits, generated, counts), _advance(decoder, logits, other, counts))

    def test_it_leaves_logits_and_history_as_they_were(
        self, decoder: LabelSynchronousDecoder, device: torch.device
    ) -> None:
        given = (_logits(6, device), *_history(6, device))
        before = [tensor.clone() for tensor in given]
        _advance(decoder, *given)
        assert all(torch.equal(tensor, old) for tensor, old in zip(given, before, strict=True))

    def test_one_row_and_one_token_are_enough(self, decoder: LabelSynchronousDecoder, device: torch.device) -> None:
        tokens = _advance(decoder, torch.zeros(1, 1, device=device))
        assert tokens.tolist() == [0]

    def test_a_forbidden_token_is_never_chosen(self, decoder: LabelSynchronousDecoder, device: torch.device) -> None:
        logits = _logits(32, device)
        best = logits.argmax(dim=-1)
        logits[torch.arange(32, device=device), best] = -torch.inf
        assert not (_advance(decoder, logits) == best).any()

    def test_a_seed_fixes_the_draws(self, decoder: LabelSynchronousDecoder, device: torch.device) -> None:
        logits = _logits(1, device)
        assert self._draws(decoder, logits, seed=3) == self._draws(decoder, logits, seed=3)

    def test_seeds_differ(self, decoder: LabelSynchronousDecoder, device: torch.device) -> None:
        logits = torch.zeros(1, _VOCABULARY, device=device)
        assert self._draws(decoder, logits, seed=3) != self._draws(decoder, logits, seed=4)

    def test_draws_do_not_depend_on_the_rows_beside(
        self, decoder: LabelSynchronousDecoder, device: torch.device
    ) -> None:
        logits = _logits(3, device)
        expected = self._draws(decoder, logits[1:2], seed=3)
        sampled, greedy = _options(0.7, seed=9), DecodingOptions()
        states = [decoder.start(options, device) for options in (sampled, _options(1.0, seed=3), greedy)]
        counts = torch.zeros(3, dtype=torch.int64, device=device)
        drawn = [int(_advance(decoder, logits, counts=counts, states=states)[1]) for _ in expected]
        assert drawn == expected

    def test_draws_follow_the_softmax_at_the_temperature(
        self, decoder: LabelSynchronousDecoder, device: torch.device
    ) -> None:
        self._require_sampling(decoder)
        rows, temperature = 1000, 2.0
        logits = torch.linspace(-2, 2, 11, device=device).repeat(rows, 1)
        states = [decoder.start(_options(temperature, seed), device) for seed in range(rows)]
        tokens = _advance(decoder, logits, states=states)
        expected = rows * (logits[0] / temperature).softmax(dim=-1)
        seen = torch.bincount(tokens, minlength=11)
        chi_square = float(((seen - expected) ** 2 / expected).sum())
        assert chi_square < _SURE_CHI_SQUARE, f"{seen.tolist()} drawn where {expected.round().tolist()} are expected"

    def test_a_low_temperature_is_nearly_greedy(self, decoder: LabelSynchronousDecoder, device: torch.device) -> None:
        logits = _logits(1, device)
        assert set(self._draws(decoder, logits, seed=0, temperature=1e-3)) == {int(logits.argmax())}

    def test_beams_go_on_with_the_most_probable_continuations(
        self, decoder: LabelSynchronousDecoder, device: torch.device
    ) -> None:
        log_probs, scores, ends = self._beams(decoder, device)
        branches = decoder.branch(log_probs, scores, ends)
        totals = scores[:, :, None] + log_probs
        chosen = totals[torch.arange(len(ends))[:, None], branches.parents, branches.tokens]
        torch.testing.assert_close(branches.scores, chosen)
        for window, end in enumerate(ends.tolist()):
            going = totals[window].index_fill(1, ends[window], -torch.inf).flatten()
            best = going.sort(descending=True).values[: scores.shape[1]]
            torch.testing.assert_close(branches.scores[window], best)
            assert end not in branches.tokens[window]

    def test_a_beam_ends_where_its_end_is_worth_going_on_for(
        self, decoder: LabelSynchronousDecoder, device: torch.device
    ) -> None:
        log_probs, scores, ends = self._beams(decoder, device)
        branches = decoder.branch(log_probs, scores, ends)
        ending = scores + log_probs[torch.arange(len(ends)), :, ends]
        ended = branches.ended > -torch.inf
        assert 0 < int(ended.sum()) < ended.numel(), "the case tells nothing"
        torch.testing.assert_close(branches.ended[ended], ending[ended])
        assert torch.equal(ended, ending > branches.scores[:, -1:])

    def test_beams_of_a_window_depend_on_it_alone(self, decoder: LabelSynchronousDecoder, device: torch.device) -> None:
        given = self._beams(decoder, device)
        together = decoder.branch(*given)
        for window in range(len(given[0])):
            alone = decoder.branch(*(tensor[window : window + 1] for tensor in given))
            for name in ("tokens", "parents", "scores", "ended"):
                assert torch.equal(getattr(alone, name)[0], getattr(together, name)[window])

    def test_one_beam_is_greedy(self, decoder: LabelSynchronousDecoder, device: torch.device) -> None:
        self._beams(decoder, device)
        logits = _logits(8, device)
        greedy, scores = _advance(decoder, logits), torch.zeros(8, 1, device=device)
        ends = torch.full((8,), int(greedy[0]), device=device)  # the first of the windows ends
        branches = decoder.branch(logits.log_softmax(dim=-1)[:, None], scores, ends)
        ended = branches.ended[:, 0] > -torch.inf
        assert ended.any()
        assert torch.equal(torch.where(ended, ends, branches.tokens[:, 0]), greedy)

    def _beams(
        self, decoder: LabelSynchronousDecoder, device: torch.device
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Log-probabilities, scores and end tokens of four windows of three beams, one of which does not count."""
        if not decoder.breadth(DecodingOptions(beam=3)).finished:
            pytest.skip("it does not follow beams")
        log_probs = _logits(12, device).log_softmax(dim=-1).view(4, 3, -1)
        scores = torch.tensor([[-1.0, -1.5, -2.0]] * 3 + [[-1.0, -1.5, -torch.inf]], device=device)
        return log_probs, scores, log_probs[:, 0].argmax(dim=-1)

    def _draws(
        self, decoder: LabelSynchronousDecoder, logits: torch.Tensor, seed: int, temperature: float = 1.0
    ) -> list[int]:
        self._require_sampling(decoder)
        states = [decoder.start(_options(temperature, seed), logits.device)]
        return [int(_advance(decoder, logits, states=states)) for _ in range(20)]

    def _require_sampling(self, decoder: LabelSynchronousDecoder) -> None:
        try:
            decoder.check(_options(1.0, seed=0))
        except RequestError as refusal:
            pytest.skip(f"it does not sample: {refusal}")


def _options(temperature: float, seed: int) -> DecodingOptions:
    return DecodingOptions(temperature=temperature, seed=seed)


def _logits(rows: int, device: torch.device) -> torch.Tensor:
    """Logits whose likeliest token is never in doubt."""
    generator = torch.Generator().manual_seed(rows)
    order = torch.argsort(torch.rand(rows, _VOCABULARY, generator=generator), dim=-1)
    return (order.float() * 0.5).to(device)


def _history(rows: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens of rows that have generated 0, 1, 2, ... of them, with repetitions."""
    generator = torch.Generator().manual_seed(rows)
    generated = torch.randint(0, 3, (rows, 2 * rows), generator=generator).to(device)
    return generated, torch.arange(rows, device=device) * 2


def _advance(
    decoder: LabelSynchronousDecoder,
    logits: torch.Tensor,
    generated: torch.Tensor | None = None,
    counts: torch.Tensor | None = None,
    states: list[Any] | None = None,
) -> torch.Tensor:
    """One step of rows that take the likeliest token and have generated nothing, unless told otherwise."""
    rows, device = len(logits), logits.device
    if generated is None:
        generated = torch.zeros(rows, 8, dtype=torch.int64, device=device)
    if counts is None:
        counts = torch.zeros(rows, dtype=torch.int64, device=device)
    if states is None:
        states = [decoder.start(DecodingOptions(), device) for _ in range(rows)]
    return decoder.advance(logits, generated, counts, states)
