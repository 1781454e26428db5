"""How many live streams one device keeps up with: python examples/live_capacity.py --model MODEL --streams 64 256 1024

Every round each stream is fed one chunk of noise, and the engine steps until all are read. What can be kept up with is
the streams of a round times the seconds of a chunk over the seconds of a round.
"""

import argparse
import math
import time

import torch

from oasr.engine import ASREngine, EngineConfig
from oasr.types import LiveOptions

parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True, help="as in oasr stream")
parser.add_argument("--device", default="auto")
parser.add_argument("--dtype", default="auto")
parser.add_argument("--streams", type=int, nargs="+", default=[1, 16, 64])
parser.add_argument("--rounds", type=int, default=20)
options = parser.parse_args()

for streams in options.streams:
    config = EngineConfig(
        model=options.model, device=options.device, dtype=options.dtype, streaming={"max_streams": streams}
    )
    with ASREngine(config) as engine:
        streaming = engine.facts.streaming
        if streaming is None:
            parser.error(f"{options.model} cannot read live audio")
        seconds = streaming.default_chunk * engine.facts.frame_shift
        noise = torch.rand(round(seconds * engine.facts.sample_rate)) * 0.1
        live = LiveOptions(endpoint_silence=math.inf, longest_segment=math.inf)
        keys = [engine.add_streaming_request(live=live) for _ in range(streams)]
        walls = []
        for _ in range(options.rounds):
            start = time.perf_counter()
            for key in keys:
                engine.feed_chunk(key, noise)
            while engine.busy:
                engine.step()
            walls.append(time.perf_counter() - start)
    wall = sorted(walls[options.rounds // 2 :])[options.rounds // 4]  # the median of the second half
    print(
        f"{engine.info.architecture} {engine.info.device} {engine.info.dtype} chunk={seconds:.2f}s streams={streams} "
        f"round={1000 * wall:.1f}ms keeps up with {streams * seconds / wall:.0f} streams"
    )
