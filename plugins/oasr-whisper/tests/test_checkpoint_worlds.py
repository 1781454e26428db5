"""One model gives the same tensors whichever toolkit's files it is loaded from."""

import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from safetensors.torch import load_file, save_file

from oasr.checkpoint.convert import convert
from oasr.checkpoint.load import load as load_model
from oasr.checkpoint.sniff import open_checkpoint
from oasr.errors import CheckpointError
from oasr.registry import Registry, default_registry
from oasr_whisper.config import WhisperConfig

State = dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def registry() -> Registry:
    return default_registry()


@dataclass(frozen=True)
class Source:
    """A model in Hugging Face's names, and its side files."""

    tensors: State
    folder: Path

    def copy_side_files(self, target: Path, *names: str) -> Path:
        target.mkdir(parents=True, exist_ok=True)
        for name in names or (file.name for file in self.folder.iterdir() if file.suffix != ".safetensors"):
            (target / name).write_bytes((self.folder / name).read_bytes())
        return target


@pytest.fixture(scope="module")
def source(shared: Any) -> Source:
    folder = shared("goldens/whisper-multilingual/checkpoint")
    return Source(load_file(folder / "model.safetensors"), folder)


def load(path: Path, registry: Registry, dtype: torch.dtype = torch.float32) -> tuple[State, WhisperConfig]:
    model = load_model(open_checkpoint(path, registry), registry, dtype, "cpu")
    return model.state_dict(), model.config


@pytest.fixture(scope="module")
def expected(source: Source, registry: Registry) -> tuple[State, WhisperConfig]:
    return load(source.folder, registry)


def assert_same(state: State, expected: State, tolerance: float = 0) -> None:
    assert state.keys() == expected.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(state[name], tensor, rtol=0, atol=tolerance, msg=lambda text, n=name: f"{n}: {text}")


# Each writer lays the model out in one world and returns the path to load.


def one_safetensors(source: Source, folder: Path) -> Path:
    source.copy_side_files(folder)
    save_file(source.tensors, folder / "model.safetensors")
    return folder


def without_the_prefix(source: Source, folder: Path) -> Path:
    source.copy_side_files(folder)
    save_file(
        {name.removeprefix("model."): tensor for name, tensor in source.tensors.items()}, folder / "model.safetensors"
    )
    return folder


def shards(
    source: Source, folder: Path, save: Callable = save_file, stem: str = "model", suffix: str = "safetensors"
) -> Path:
    source.copy_side_files(folder)
    names = sorted(source.tensors)
    files = [f"{stem}-{number:05}-of-00003.{suffix}" for number in (1, 2, 3)]
    for number, file in enumerate(files):
        save({name: source.tensors[name] for name in names[number::3]}, folder / file)
    places = {name: files[position % 3] for position, name in enumerate(names)}
    (folder / f"{stem}.{suffix}.index.json").write_text(json.dumps({"weight_map": places}))
    return folder


def one_pickle(source: Source, folder: Path) -> Path:
    source.copy_side_files(folder)
    tied = source.tensors["model.decoder.embed_tokens.weight"]
    torch.save({**source.tensors, "proj_out.weight": tied}, folder / "pytorch_model.bin")
    return folder


def pickled_shards(source: Source, folder: Path) -> Path:
    return shards(source, folder, torch.save, "pytorch_model", "bin")


# transformers, convert_openai_to_hf.py, the other way round.
_OPENAI_NAMES = {
    "model.": "",
    "layers.": "blocks.",
    "embed_positions.weight": "positional_embedding",
    "embed_tokens": "token_embedding",
    "self_attn_layer_norm": "attn_ln",
    "encoder_attn_layer_norm": "cross_attn_ln",
    "final_layer_norm": "mlp_ln",
    "encoder.layer_norm": "encoder.ln_post",
    "decoder.layer_norm": "decoder.ln",
    "self_attn.": "attn.",
    "encoder_attn.": "cross_attn.",
    "q_proj": "query",
    "k_proj": "key",
    "v_proj": "value",
    "out_proj": "out",
    "fc1": "mlp.0",
    "fc2": "mlp.2",
}
_DIMS = {
    "n_mels": 80,
    "n_vocab": 2028,
    "n_audio_ctx": 1500,
    "n_audio_state": 32,
    "n_audio_head": 4,
    "n_audio_layer": 2,
    "n_text_ctx": 448,
    "n_text_state": 32,
    "n_text_head": 4,
    "n_text_layer": 2,
}


def openai_name(name: str) -> str:
    for theirs, ours in _OPENAI_NAMES.items():
        name = name.replace(theirs, ours)
    return name


def openai_pt(source: Source, folder: Path) -> Path:
    source.copy_side_files(folder, "tokenizer.json")
    state = {openai_name(name): tensor for name, tensor in source.tensors.items()}
    torch.save({"dims": _DIMS, "model_state_dict": state}, folder / "tiny.pt")
    return folder / "tiny.pt"


def ctranslate2_variables(tensors: State) -> Iterator[tuple[str, torch.Tensor]]:
    """CTranslate2, converters/transformers.py."""
    get = {name.removeprefix("model."): tensor for name, tensor in tensors.items()}.__getitem__

    def norm(theirs: str, ours: str) -> Iterator[tuple[str, torch.Tensor]]:
        yield f"{ours}/gamma", get(f"{theirs}.weight")
        yield f"{ours}/beta", get(f"{theirs}.bias")

    def linear(ours: str, *theirs: str) -> Iterator[tuple[str, torch.Tensor]]:
        yield f"{ours}/weight", torch.cat([get(f"{name}.weight") for name in theirs])
        biases = [torch.zeros(32) if name.endswith("k_proj") else get(f"{name}.bias") for name in theirs]
        yield f"{ours}/bias", torch.cat(biases)

    for side in ("encoder", "decoder"):
        yield f"{side}/num_heads", torch.tensor(4, dtype=torch.int16)
        yield f"{side}/position_encodings/encodings", get(f"{side}.embed_positions.weight")
        yield from norm(f"{side}.layer_norm", f"{side}/layer_norm")
        for layer in range(2):
            theirs, ours = f"{side}.layers.{layer}", f"{side}/layer_{layer}"
            attention = f"{theirs}.self_attn"
            yield from norm(f"{theirs}.self_attn_layer_norm", f"{ours}/self_attention/layer_norm")
            projections = (f"{attention}.q_proj", f"{attention}.k_proj", f"{attention}.v_proj")
            yield from linear(f"{ours}/self_attention/linear_0", *projections)
            yield from linear(f"{ours}/self_attention/linear_1", f"{attention}.out_proj")
            yield from norm(f"{theirs}.final_layer_norm", f"{ours}/ffn/layer_norm")
            yield from linear(f"{ours}/ffn/linear_0", f"{theirs}.fc1")
            yield from linear(f"{ours}/ffn/linear_1", f"{theirs}.fc2")
            if side == "decoder":
                cross = f"{theirs}.encoder_attn"
                yield from norm(f"{theirs}.encoder_attn_layer_norm", f"{ours}/attention/layer_norm")
                yield from linear(f"{ours}/attention/linear_0", f"{cross}.q_proj")
                yield from linear(f"{ours}/attention/linear_1", f"{cross}.k_proj", f"{cross}.v_proj")
                yield from linear(f"{ours}/attention/linear_2", f"{cross}.out_proj")
    for convolution in ("conv1", "conv2"):
        for leaf in ("weight", "bias"):
            yield f"encoder/{convolution}/{leaf}", get(f"encoder.{convolution}.{leaf}")
    yield "decoder/embeddings/weight", get("decoder.embed_tokens.weight")
    yield "decoder/activation", torch.tensor(3, dtype=torch.int8)


def quantized(variables: dict[str, numpy.ndarray]) -> dict[str, numpy.ndarray]:
    """Linear layers and the embedding as int8 with one scale a row."""
    result = {}
    for name, value in variables.items():
        if name.endswith("/weight") and value.ndim == 2:
            scale = (127 / numpy.abs(value).max(axis=1)).astype(numpy.float32)
            result |= {name: numpy.rint(value * scale[:, None]).astype(numpy.int8), f"{name}_scale": scale}
        else:
            result[name] = value
    return result


def ctranslate2(source: Source, folder: Path, change: Callable = lambda variables: variables) -> Path:
    source.copy_side_files(folder, "tokenizer.json")
    generation = json.loads((source.folder / "generation_config.json").read_text())
    config = {
        "suppress_ids": generation["suppress_tokens"],
        "suppress_ids_begin": generation["begin_suppress_tokens"],
        "alignment_heads": generation["alignment_heads"],
        "lang_ids": sorted(generation["lang_to_id"].values()),
    }
    (folder / "config.json").write_text(json.dumps(config))
    variables = change({name: tensor.numpy() for name, tensor in ctranslate2_variables(source.tensors)})
    types = ["float32", "int8", "int16", "int32", "float16"]

    def text(value: str) -> bytes:
        return struct.pack("<H", len(value) + 1) + value.encode() + b"\0"

    content = struct.pack("<I", 6) + text("WhisperSpec") + struct.pack("<II", 3, len(variables))
    for name, value in sorted(variables.items()):
        content += text(name) + struct.pack(f"<B{value.ndim}I", value.ndim, *value.shape)
        content += struct.pack("<BI", types.index(value.dtype.name), value.nbytes) + value.tobytes()
    content += struct.pack("<I", 1) + text("decoder/projection/weight") + text("decoder/embeddings/weight")
    (folder / "model.bin").write_bytes(content)
    return folder


WORLDS = [one_safetensors, without_the_prefix, shards, one_pickle, pickled_shards, openai_pt, ctranslate2]


@pytest.mark.parametrize("write", WORLDS, ids=lambda write: write.__name__)
@pytest.mark.parametrize("name", ["plain", "模型 dir/ü (1)", "תיקייה/Модель 2"])
def test_every_world_gives_the_same_tensors(
    write: Callable,
    name: str,
    source: Source,
    registry: Registry,
    expected: tuple[State, WhisperConfig],
    tmp_path: Path,
) -> None:
    state, config = load(write(source, tmp_path / name), registry)
    assert_same(state, expected[0])
    # A .pt tells neither its alignment heads nor, for a vocabulary of no release, the same suppressions.
    silent = {"alignment_heads", "suppress", "suppress_first"} if write is openai_pt else set()
    silent.add("pads_with_silence")  # which is what the toolkits differ in
    assert config.model_dump(exclude=silent) == expected[1].model_dump(exclude=silent)


@pytest.mark.parametrize("write", WORLDS, ids=lambda write: write.__name__)
def test_every_world_converts_to_the_same_bits(
    write: Callable, source: Source, registry: Registry, tmp_path: Path
) -> None:
    path = write(source, tmp_path / "source")
    converted = convert(open_checkpoint(path, registry), registry, tmp_path / "converted")
    for dtype in (torch.float32, torch.float16):
        state, config = load(path, registry, dtype)
        again, same_config = load(converted, registry, dtype)
        assert_same(again, state)
        assert same_config == config


def test_int8_gives_nearly_the_same_tensors(
    source: Source, registry: Registry, expected: tuple[State, WhisperConfig], tmp_path: Path
) -> None:
    path = ctranslate2(source, tmp_path / "int8", quantized)
    state, _ = load(path, registry)
    assert state.keys() == expected[0].keys()
    for name, tensor in expected[0].items():
        step = tensor.abs().reshape(len(tensor), -1).amax(1).clamp(min=1e-9) / 127
        assert ((state[name] - tensor).reshape(len(tensor), -1).abs() <= step[:, None] * 0.51).all(), name
    converted = convert(open_checkpoint(path, registry), registry, tmp_path / "converted")
    assert_same(load(converted, registry)[0], state)


@pytest.mark.parametrize("write", WORLDS, ids=lambda write: write.__name__)
def test_an_absent_tensor_is_missing_in_every_world(
    write: Callable, source: Source, registry: Registry, tmp_path: Path
) -> None:
    less = Source({k: v for k, v in source.tensors.items() if "decoder.layers.1.fc2" not in k}, source.folder)
    if write is ctranslate2:
        path = ctranslate2(
            source, tmp_path, lambda all_: {k: v for k, v in all_.items() if "decoder/layer_1/ffn/linear_1" not in k}
        )
    else:
        path = write(less, tmp_path)
    with pytest.raises(
        CheckpointError, match=r"2 missing: decoder\.blocks\.1\.fc2\.weight, decoder\.blocks\.1\.fc2\.bias"
    ):
        load(path, registry)


@pytest.mark.oracle
@pytest.mark.parametrize("quantization", [None, "float16", "int16", "int8"])
def test_what_ctranslate2s_own_converter_writes(
    quantization: str | None,
    source: Source,
    registry: Registry,
    expected: tuple[State, WhisperConfig],
    tmp_path: Path,
) -> None:
    pytest.importorskip("transformers", reason="the oracle: pip install transformers")
    converters = pytest.importorskip("ctranslate2.converters", reason="the oracle: pip install ctranslate2")
    folder = one_safetensors(source, tmp_path / "source")
    converter = converters.TransformersConverter(str(folder), copy_files=["tokenizer.json", "preprocessor_config.json"])
    converter.convert(str(tmp_path / "ct2"), quantization=quantization)
    state, config = load(tmp_path / "ct2", registry)
    scale = max(float(tensor.abs().max()) for tensor in expected[0].values())
    assert_same(state, expected[0], {None: 0, "float16": 2**-11, "int16": 2**-10, "int8": 2**-7}[quantization] * scale)
    assert config.tokens == expected[1].tokens
    assert config.suppress == expected[1].suppress


@pytest.mark.oracle
def test_what_openai_whisper_itself_loads_and_saves(source: Source, registry: Registry, tmp_path: Path) -> None:
    whisper = pytest.importorskip("whisper", reason="the oracle: pip install openai-whisper")
    dims = whisper.model.ModelDimensions(**{**_DIMS, "n_vocab": 51865})
    torch.manual_seed(1)
    model = whisper.model.Whisper(dims)
    torch.save({"dims": vars(dims), "model_state_dict": model.state_dict()}, tmp_path / "tiny.pt")
    state, config = load(tmp_path / "tiny.pt", registry)
    assert torch.equal(state["decoder.tokens.weight"], model.decoder.token_embedding.weight)
    fused = torch.cat([getattr(model.encoder.blocks[1].attn, part).weight for part in ("query", "key", "value")])
    assert torch.equal(state["encoder.blocks.1.attention.qkv.weight"], fused)
    assert (config.tokens.start, config.tokens.languages["en"], len(config.tokens.languages)) == (50258, 50259, 99)


@pytest.mark.parametrize(
    ("key", "value"),
    [("suppress_ids", "x"), ("suppress_ids", 5), ("suppress_ids_begin", [None]), ("alignment_heads", 5)],
)
def test_a_setting_of_another_shape_is_named_in_the_world_of_ctranslate2(
    source: Source, registry: Registry, tmp_path: Path, key: str, value: Any
) -> None:
    settings = ctranslate2(source, tmp_path) / "config.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), key: value}))
    with pytest.raises(CheckpointError, match=f"config.json has {key} "):
        load(tmp_path, registry)
