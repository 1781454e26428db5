"""Word errors and wall time on a CPU beside faster-whisper and openai-whisper, in one process, by turns.

python examples/compare.py AUDIO/manifest.tsv --model MODEL [MODEL ...]

A manifest is a table with tabs and a header, of which `path` (from the manifest's folder) and `transcript`, in English,
are read. A model is a CTranslate2 folder or a packaged model of this layout: faster-whisper takes it as it is, and
openai-whisper gets the same weights under its own names. Needs faster-whisper, openai-whisper and jiwer.
"""

import argparse
import csv
import re
import time
from collections.abc import Callable
from pathlib import Path

import faster_whisper
import jiwer
import torch
import whisper
from whisper.normalizers import EnglishTextNormalizer

from oasr.audio import Audio, read_audio
from oasr.checkpoint.hub import locate
from oasr.checkpoint.load import load
from oasr.checkpoint.sniff import open_checkpoint
from oasr.engine import ASREngine, DecodingOptions, EngineConfig
from oasr.registry import default_registry

Read = Callable[[list[Audio]], list[str]]
OPENAI_NAMES = {
    r"\bencoder\.norm\.": "encoder.ln_post.",
    r"\bdecoder\.norm\.": "decoder.ln.",
    r"_norm\.": "_ln.",
    r"\battention_": "attn_",
    r"\bcross_ln": "cross_attn_ln",
    r"attention\.": "attn.",
    r"\bfc([12])\.": lambda layer: f"mlp.{2 * int(layer[1]) - 2}.",
    r"\btokens\.": "token_embedding.",
    r"\bpositions$": "positional_embedding",
}
STACKED = {"qkv": ("query", "key", "value"), "key_value": ("key", "value")}


def oasr(model: str, dtype: str, beam: int) -> Read:
    engine = ASREngine(EngineConfig(model=model, device="cpu", dtype=dtype))
    searched = DecodingOptions(language="en", beam=beam)
    return lambda clips: [transcript.text for transcript in engine.transcribe(clips, searched)]


def faster(folder: Path, beam: int, threads: int) -> Read:
    model = faster_whisper.WhisperModel(str(folder), "cpu", compute_type="int8", cpu_threads=threads)
    settings = {"language": "en", "beam_size": beam, "best_of": 1, "condition_on_previous_text": False}
    return lambda clips: [
        "".join(segment.text for segment in model.transcribe(clip.samples.numpy(), **settings)[0]) for clip in clips
    ]


def openai_name(name: str) -> str:
    for pattern, replacement in OPENAI_NAMES.items():
        name = re.sub(pattern, replacement, name)
    return name


def openai(folder: Path, beam: int) -> Read:
    own = load(open_checkpoint(folder, default_registry()), default_registry(), torch.float32, "cpu")
    c = own.config
    audio = (c.n_mels, c.audio_context, c.width, c.encoder_heads, c.encoder_layers)
    text = (c.vocabulary_size, c.text_context, c.width, c.decoder_heads, c.decoder_layers)
    model = whisper.model.Whisper(whisper.model.ModelDimensions(*audio, *text))
    state = {}
    for name, tensor in own.state_dict().items():
        layer = name.split(".")[-2]
        parts = STACKED.get(layer, (layer,))
        for part, each in zip(parts, tensor.chunk(len(parts)), strict=True):
            state[openai_name(name).replace(f".{layer}.", f".{part}.")] = each
    model.load_state_dict({name: tensor for name, tensor in state.items() if not name.endswith("key.bias")})  # zeros
    settings = {"language": "en", "beam_size": beam if beam > 1 else None, "condition_on_previous_text": False}
    return lambda clips: [model.transcribe(clip.samples, fp16=False, **settings)["text"] for clip in clips]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("manifest", type=Path)
    parser.add_argument("--folders", nargs="*", help="read only what lies in these folders beside the manifest")
    parser.add_argument("--model", nargs="+", default=["tiny-en"])
    parser.add_argument("--beam", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3, help="over all clips; the shortest counts")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with options.manifest.open(encoding="utf-8", newline="") as lines:
        table = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    table = [row for row in table if not options.folders or Path(row["path"]).parts[0] in options.folders]
    clips = [read_audio(options.manifest.parent / row["path"], target_rate=16_000) for row in table]
    normalize = EnglishTextNormalizer()
    expected = [normalize(row["transcript"]) for row in table]
    for model in options.model:
        folder = locate(model, default_registry())
        engines = {
            "faster-whisper int8": faster(folder, options.beam, options.threads),
            "openai-whisper float32": openai(folder, options.beam),
            "OASR float32": oasr(model, "float32", options.beam),
            "OASR int8": oasr(model, "int8", options.beam),
        }
        print(f"{model}, {len(clips)} clips, beam {options.beam}, {options.threads} threads")
        print("| engine | WER | wall, s | processor, s |", "| --- | --- | --- | --- |", sep="\n", flush=True)
        texts, times = {}, {name: [] for name in engines}
        for run in range(options.runs + 1):
            for name, read in engines.items():
                wall, processor = time.perf_counter(), time.process_time()
                texts[name] = read(clips if run else clips[:4])  # first a few, to warm up
                times[name].append((time.perf_counter() - wall, time.process_time() - processor))
        for name, heard in texts.items():
            wall, processor = map(min, zip(*times[name][1:], strict=True))
            errors = jiwer.wer(expected, [normalize(text) for text in heard])
            print(f"| {name} | {errors:.2%} | {wall:.2f} | {processor:.2f} |", flush=True)


main()
