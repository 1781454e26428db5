"""Computes live streams: all that have a window due ride in one batch, whatever their ages."""

import time
from collections.abc import Sequence
from copy import copy

import torch

from oasr.cache.paged import BLOCK_TOKENS, Lease, PagedCache, blocks_for
from oasr.cache.slots import SlotCache
from oasr.engine.encoding import exact_convolutions
from oasr.engine.frames import FrameRunner, finite_rows
from oasr.engine.isolation import isolate
from oasr.engine.live import LiveStream
from oasr.engine.window import as_error
from oasr.errors import DeviceError, ModelError, NonFiniteError, OasrError
from oasr.interfaces.architecture import EncoderOutput
from oasr.interfaces.frontend import FeatureBatch
from oasr.interfaces.streaming import StreamingEncoder, StreamView
from oasr.types import DecodingOptions, LiveOptions

_PAGED_STREAMS = 2  # streams of the longest kind that the pool for growing keys and values holds


class StreamRunner:
    """The streams of one chunk size and left context.

    What fails in features or encoder is split until the stream at fault is alone; where a search or a rescorer fails,
    all streams it was reading fail.
    """

    def __init__(
        self,
        offline: FrameRunner,
        streaming: StreamingEncoder,
        streams: int,
    ):
        """Allocate the states of so many streams, with the model and the search of another runner."""
        model = offline.model
        layout = streaming.layout
        self.streams: list[LiveStream] = []
        self._encoder = offline.encoder
        self._streaming = streaming
        self._tokenizer = offline.tokenizer
        self._decoder = offline.decoder
        self._rescorer = offline.rescorer
        self._head = offline.head
        self._slots = SlotCache(layout.slots, streams, model.device, model.dtype)
        self._paged = PagedCache(layout.paged, _PAGED_STREAMS, model.device, model.dtype) if layout.paged else None

    def open(self, key: int, options: DecodingOptions, live: LiveOptions) -> LiveStream | None:
        """A new stream; None without room. Raises what the search raises."""
        search = self._decoder.start(self._head, options, self._tokenizer)
        frontend = self._encoder.frontend.stream()
        slot = self._slots.acquire()
        if slot is None:
            return None
        facts = self._encoder.model.facts
        stream = LiveStream(key, options, live, facts, self._streaming.shape, self._tokenizer, slot, frontend, search)
        self._forget(stream)
        self.streams.append(stream)
        return stream

    def close(self, stream: LiveStream) -> None:
        """Take a stream out; closing twice does nothing."""
        if stream in self.streams:
            self.streams.remove(stream)
            self._slots.release(stream.slot)
            if self._paged is not None:
                self._paged.release(stream.lease)

    @property
    def lag(self) -> float:
        """Seconds for which the stream that waits longest has been waiting to be read."""
        now = time.monotonic()
        return max((now - stream.due for stream in self.streams if stream.due is not None), default=0.0)

    @property
    def busy(self) -> bool:
        return any(stream.is_due for stream in self.streams)

    @torch.inference_mode()
    def advance(self) -> list[tuple[LiveStream, OasrError | None]]:
        """Read the next window of every stream that has one; returns the streams that ended, with the reason if any."""
        encoded: dict[LiveStream, torch.Tensor] = {}
        with self._encoder.on_device(), exact_convolutions():
            failed = dict(isolate([each for each in self.streams if each.wants_features], self._extract))
            due = [each for each in self.streams if each.has_window and each not in failed]
            failed.update(isolate(due, lambda streams: encoded.update(self._encode(streams))))
            self._search(encoded, failed)
            ended = [stream for stream in self.streams if stream.complete and stream not in failed]
            self._end_segments([stream for stream in ended if stream.age], failed)
        done = [(stream, failed.get(stream)) for stream in self.streams if stream in failed or stream in ended]
        for stream, _ in done:
            self.close(stream)
        return done

    def _extract(self, streams: Sequence[LiveStream]) -> None:
        states = [copy(stream.frontend) for stream in streams]  # what fails is done again, in halves
        samples = [stream.pushed() for stream in streams]
        last = [stream.ended for stream in streams]
        frames = self._encoder.frontend.advance(states, samples, last)
        for stream, state, each in zip(streams, states, frames, strict=True):
            stream.frontend = state
            stream.add_features(each)

    def _encode(self, streams: Sequence[LiveStream]) -> dict[LiveStream, torch.Tensor]:
        """Encoder frames (time, feature) of each stream's next window. Nothing has changed when it fails."""
        shape = self._streaming.shape
        windows = [stream.window() for stream in streams]
        frames = windows[0].new_full((len(windows), shape.window, windows[0].shape[1]), shape.padding)
        for row, window in zip(frames, windows, strict=True):
            row[: len(window)] = window
        lengths = torch.tensor([len(window) for window in windows], device=frames.device)
        view = self._view(streams)
        encoded = self._streaming.encode_chunk(FeatureBatch(frames, lengths), view)
        counts = encoded.lengths.tolist()  # waits for the device: what fails there fails before anything changes
        view.commit()
        for stream in streams:
            stream.leave_window()
        return {stream: row[:count] for stream, row, count in zip(streams, encoded.frames, counts, strict=True)}

    def _search(self, encoded: dict[LiveStream, torch.Tensor], failed: dict[LiveStream, OasrError]) -> None:
        """Let the search read what was encoded, and end the segments after which somebody paused."""
        if not encoded:
            return
        for stream, finite in zip(list(encoded), finite_rows(_batch(list(encoded.values()))), strict=True):
            if not finite:
                del encoded[stream]
                dtype = self._encoder.model.dtype
                failed[stream] = NonFiniteError(f"{stream.source}: the model computed NaN or infinity in {dtype}")
        if not encoded:
            return
        streams = list(encoded)
        try:
            self._decoder.advance(self._head, _batch(list(encoded.values())), [stream.search for stream in streams])
        except Exception as error:  # how far each search got is unknown
            failed.update((stream, as_error(error)) for stream in streams)
            return
        paused = []
        for stream in streams:
            try:
                spellings = self._decoder.spellings(stream.search)
                stream.hear(spellings, len(encoded[stream]))
                if stream.has_paused(spellings[0]):
                    paused.append(stream)
            except Exception as error:
                failed[stream] = as_error(error)
                continue
            if self._rescorer is not None:
                stream.kept.append(encoded[stream])
        self._end_segments(paused, failed)

    def _view(self, streams: Sequence[LiveStream]) -> "_SlotView":
        if self._paged is not None:
            for stream in streams:
                missing = blocks_for(stream.age + self._streaming.shape.frames) - len(stream.lease.blocks)
                if missing <= 0:
                    continue
                more = self._paged.reserve(missing * BLOCK_TOKENS)
                if more is None:
                    raise DeviceError("the caches have no room for more of this stream; limit its left context")
                stream.lease = Lease((*stream.lease.blocks, *more.blocks))
                # Places not filled yet are read with weight zero, and may hold what another stream left.
                self._paged.clear(torch.tensor(more.blocks, dtype=torch.int64, device=self._encoder.model.device))
        return _SlotView(self._slots, self._paged, streams, self._encoder.model.device)

    def _end_segments(self, streams: Sequence[LiveStream], failed: dict[LiveStream, OasrError]) -> None:
        """What was being spoken is over: settle its text, and begin anew with nothing in mind."""
        if not streams:
            return
        try:
            found = [self._decoder.spellings(stream.search) for stream in streams]
            if self._rescorer is not None:
                kept = _batch([torch.cat(stream.kept) for stream in streams])
                options = [stream.options for stream in streams]
                found = self._rescorer.rescore(self._head, kept, found, options)
            for stream, spellings in zip(streams, found, strict=True):
                stream.end_segment(spellings[0])
                stream.search = self._decoder.start(self._head, stream.options, self._tokenizer)
                self._forget(stream)
        except Exception as error:
            failed.update((stream, as_error(error)) for stream in streams)

    def _forget(self, stream: LiveStream) -> None:
        """The encoder has heard nothing yet."""
        for tensor in self._slots.tensors.values():
            tensor[stream.slot] = 0
        if self._paged is not None:
            self._paged.release(stream.lease)


class _SlotView(StreamView):
    """Some streams of the caches."""

    def __init__(self, slots: SlotCache, paged: PagedCache | None, streams: Sequence[LiveStream], device: torch.device):
        self.ages = torch.tensor([stream.age for stream in streams], device=device)
        self._index = torch.tensor([stream.slot for stream in streams], device=device)
        self._slots = slots
        self._paged = paged
        self._stored: dict[str, torch.Tensor] = {}
        if paged is not None:
            width = max(len(stream.lease.blocks) for stream in streams)
            tables = [[*stream.lease.blocks, *[0] * (width - len(stream.lease.blocks))] for stream in streams]
            self._tables = torch.tensor(tables, device=device)

    def load(self, name: str) -> torch.Tensor:
        return self._stored[name] if name in self._stored else self._slots.tensors[name][self._index]

    def store(self, name: str, values: torch.Tensor) -> None:
        self._stored[name] = values

    def commit(self) -> None:
        """Write what was stored: not before the whole chunk has been computed, which may fail and be done again."""
        for name, values in self._stored.items():
            tensor = self._slots.tensors[name]
            tensor[self._index] = values.to(tensor.dtype)

    def append(
        self, layer: int, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        if self._paged is None:
            raise ModelError("this encoder appends to a paged cache that it does not declare")
        new = keys.shape[1]
        positions = self.ages[:, None] + torch.arange(new, device=keys.device)
        block = self._tables.gather(1, positions // BLOCK_TOKENS)
        places = (block * BLOCK_TOKENS + positions % BLOCK_TOKENS).flatten()
        held = []
        for pool, added in ((self._paged.keys[layer], keys), (self._paged.values[layer], values)):
            pool.flatten(0, 1).index_copy_(0, places, added.flatten(0, 1).to(pool.dtype))
            held.append(pool[self._tables].flatten(1, 2))
        time_ = torch.arange(held[0].shape[1], device=keys.device)
        return held[0], held[1], time_ < self.ages[:, None] + new


def _batch(rows: Sequence[torch.Tensor]) -> EncoderOutput:
    """Encoder frames (time, feature) of some streams as a batch."""
    lengths = torch.tensor([len(row) for row in rows], device=rows[0].device)
    return EncoderOutput(torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True), lengths)
