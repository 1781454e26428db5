"""Laws of architectures."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from oasr.checkpoint.load import OWN_NAMING, Plan, load, outline
from oasr.checkpoint.renaming import place, zero_part
from oasr.checkpoint.sniff import open_checkpoint
from oasr.errors import CheckpointError, OasrError
from oasr.interfaces.architecture import Architecture, EncoderOutput, ModelFacts
from oasr.interfaces.format import Checkpoint
from oasr.interfaces.frontend import Frontend
from oasr.interfaces.tokenizer import Tokenizer
from oasr.plugin import ComponentSpec, Kind
from oasr.registry import Registry
from oasr.testing.autoregressive_laws import AutoregressiveLaws, Encode
from oasr.testing.suite import ComponentSuite

_MOST_TENSORS = 24  # taken away one at a time


class ArchitectureSuite(AutoregressiveLaws, ComponentSuite):
    """Padding, batch order and batch size never change a row's result, and weights are loaded strictly."""

    kind: ClassVar[Kind] = Kind.ARCHITECTURE
    shares: ClassVar[tuple[float, ...]] = (1.0, 0.21, 0.6, 0.04)
    """Lengths to try, in shares of the longest input, which is taken as at most 4 s."""

    @pytest.fixture
    def checkpoint(self) -> Path:
        """A small checkpoint, of random weights or trained: override this."""
        pytest.skip("needs a checkpoint: override the fixture `checkpoint`, or oasr check --checkpoint PATH")

    @pytest.fixture
    def opened(self, checkpoint: Path, registry: Registry, spec: ComponentSpec) -> Checkpoint:
        """The checkpoint, opened."""
        found = open_checkpoint(checkpoint, registry)
        assert registry.spec(Kind.ARCHITECTURE, found.architecture) == spec, "the checkpoint is of another architecture"
        return found

    @pytest.fixture
    def model(self, opened: Checkpoint, registry: Registry) -> Architecture:
        """The network in float32 on the CPU."""
        return _loaded(opened.path, registry)

    @pytest.fixture
    def facts(self, model: Architecture) -> ModelFacts:
        """What the checkpoint dictates."""
        return model.facts

    @pytest.fixture
    def tokenizer(self, opened: Checkpoint, facts: ModelFacts, registry: Registry) -> Tokenizer:
        """The checkpoint's tokenizer."""
        tokenizer: Tokenizer = registry.load(Kind.TOKENIZER, facts.tokenizer)(opened.files)
        return tokenizer

    @pytest.fixture
    def waveforms(self, facts: ModelFacts) -> list[torch.Tensor]:
        """Noise of several lengths."""
        generator = torch.Generator().manual_seed(0)
        longest = min(facts.max_input_seconds, 4.0)
        return [
            0.2 * torch.randn(round(share * longest * facts.sample_rate), generator=generator) for share in self.shares
        ]

    @pytest.fixture
    def encode(self, model: Architecture, registry: Registry) -> Encode:
        """Encodes waveforms as the engine does."""
        frontend: Frontend = registry.create(Kind.FRONTEND, model.facts.frontend, model.facts.frontend_options)

        @torch.inference_mode()
        def encode(waveforms: Sequence[torch.Tensor]) -> EncoderOutput:
            lengths = torch.tensor([len(waveform) for waveform in waveforms])
            return model.encode(frontend.extract(pad_sequence(list(waveforms), batch_first=True), lengths))

        return encode

    def test_each_head_of_the_facts_exists_and_is_declared(self, model: Architecture, spec: ComponentSpec) -> None:
        assert {f"{head}-head" for head in model.facts.heads} <= spec.capabilities
        for head in model.facts.heads:
            model.head(head)

    def test_an_unknown_head_is_an_oasr_error(self, model: Architecture) -> None:
        with pytest.raises(OasrError):
            model.head("of-nobody")

    def test_declared_capabilities_agree_with_the_facts(self, facts: ModelFacts, spec: ComponentSpec) -> None:
        if "translate" in facts.tasks:
            assert "translation" in spec.capabilities
        if len(facts.languages) > 1:
            assert "language-detection" in spec.capabilities

    def test_facts_name_components_that_exist(self, facts: ModelFacts, registry: Registry) -> None:
        registry.spec(Kind.FRONTEND, facts.frontend)
        registry.spec(Kind.TOKENIZER, facts.tokenizer)
        registry.spec(Kind.DECODER, facts.default_decoder)

    def test_facts_are_positive(self, facts: ModelFacts) -> None:
        assert facts.sample_rate > 0
        assert facts.text_tokens > 0
        assert facts.frame_shift > 0
        assert facts.max_input_seconds > 0

    def test_encoder_lengths_fit_the_frames(self, encode: Encode, waveforms: list[torch.Tensor]) -> None:
        encoded = encode(waveforms)
        assert encoded.lengths.dtype == torch.int64
        assert len(encoded.frames) == len(encoded.lengths) == len(waveforms)
        assert encoded.lengths.max() <= encoded.frames.shape[1]
        assert encoded.frames.isfinite().all()

    def test_company_and_padding_do_not_change_a_row(self, encode: Encode, waveforms: list[torch.Tensor]) -> None:
        together = encode(waveforms)
        for row, waveform in enumerate(waveforms):
            self._assert_same(encode([waveform]), 0, together, row)

    def test_order_does_not_change_a_row(self, encode: Encode, waveforms: list[torch.Tensor]) -> None:
        forward, backward = encode(waveforms), encode(waveforms[::-1])
        for row in range(len(waveforms)):
            self._assert_same(forward, row, backward, -1 - row)

    def test_it_is_deterministic(self, encode: Encode, waveforms: list[torch.Tensor]) -> None:
        assert torch.equal(encode(waveforms).frames, encode(waveforms).frames)

    def test_a_missing_tensor_is_refused_by_name(self, opened: Checkpoint, registry: Registry) -> None:
        module = outline(opened, registry)
        needed = _needed(opened, module)
        assert needed, "the rules place no tensor"
        for name, target in list(needed.items())[:: -(-len(needed) // _MOST_TENSORS)]:
            with pytest.raises(CheckpointError, match=f"missing.*{re.escape(target)}"):
                Plan(Doctored(opened, drop=name), module)

    def test_an_unexpected_tensor_is_refused_by_name(self, opened: Checkpoint, registry: Registry) -> None:
        with pytest.raises(CheckpointError, match=r"unexpected.*of_nobody\.weight"):
            Plan(Doctored(opened, add="of_nobody.weight"), outline(opened, registry))

    def test_an_unknown_naming_is_a_checkpoint_error(self, target: type[Architecture]) -> None:
        with pytest.raises(CheckpointError):
            target.rename("of-nobody")

    def _assert_same(self, one: EncoderOutput, row: int, other: EncoderOutput, other_row: int) -> None:
        length = int(one.lengths[row])
        assert length == int(other.lengths[other_row])
        self._assert_close(one.frames[row, :length], other.frames[other_row, :length])


class Doctored(Checkpoint):
    """A checkpoint with a tensor too few or too many."""

    def __init__(self, original: Checkpoint, drop: str = "", add: str = ""):
        self.path = original.path
        self.architecture = original.architecture
        self.naming = original.naming
        self.config = original.config
        self.generation = original.generation
        self.files = original.files
        self._original = original
        self._drop = drop
        self._add = add

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        kept = {name: shape for name, shape in self._original.shapes().items() if name != self._drop}
        return kept | ({self._add: (1,)} if self._add else {})

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        raise NotImplementedError("plans are made from shapes")


@lru_cache(maxsize=2)
def _loaded(path: Path, registry: Registry) -> Architecture:
    return load(open_checkpoint(path, registry), registry, torch.float32, "cpu")


def _needed(opened: Checkpoint, module: Architecture) -> dict[str, str]:
    """The stored tensors that nothing may go without, each with the own tensor it fills at least a part of."""
    if opened.naming == OWN_NAMING:
        return {name: name for name in opened.shapes()}
    rules = type(module).rename(opened.naming)
    own = {*dict(module.named_parameters()), *dict(module.named_buffers())}
    needed = {}
    for name in opened.shapes():
        placed = place(rules, name)
        if placed and placed.target in own and zero_part(rules, placed.target) != (placed.part, placed.parts):
            needed[name] = placed.target
    return needed
