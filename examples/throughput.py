"""How many seconds of audio one device reads in a second: python examples/throughput.py AUDIO... --rows 1 16 64"""

import argparse
import time

import torch

from oasr.audio import read_audio
from oasr.engine import ASREngine, DecodingOptions, EngineConfig

parser = argparse.ArgumentParser()
parser.add_argument("audio", nargs="+", help="files or folders' files, read over and over until each row has --repeat")
parser.add_argument("--model", default=None, help="as in oasr transcribe; the packaged model unless given")
parser.add_argument("--device", default="auto")
parser.add_argument("--dtype", default="auto")
parser.add_argument("--rows", type=int, nargs="+", default=[1, 16, 64], help="windows decoded at once")
parser.add_argument("--repeat", type=int, default=4, help="clips for each row")
parser.add_argument("--no-timestamps", dest="timestamps", action="store_false", help="read text alone")
options = parser.parse_args()
decoding = DecodingOptions(timestamps=options.timestamps)

for rows in options.rows:
    config = EngineConfig(model=options.model, device=options.device, dtype=options.dtype, batching={"max_rows": rows})
    with ASREngine(config) as engine:
        clips = [read_audio(path, target_rate=engine.facts.sample_rate) for path in options.audio]
        batch = [clips[i % len(clips)] for i in range(max(len(clips), rows * options.repeat))]
        for _ in range(2):  # warm: kernels are chosen for each size of batch, and graphs captured
            engine.transcribe(batch, decoding)
        start = time.perf_counter()
        transcripts = engine.transcribe(batch, decoding)
        if engine.info.device.startswith("cuda"):
            torch.cuda.synchronize()
        wall = time.perf_counter() - start
    seconds = sum(transcript.duration for transcript in transcripts)
    print(
        f"{engine.info.device} {engine.info.dtype} rows={rows} clips={len(batch)} "
        f"audio={seconds:.1f}s wall={wall:.2f}s RTFx={seconds / wall:.1f}"
    )
