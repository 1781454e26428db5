"""Which files of a model repository are needed, and which of them a folder lacks."""

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from oasr.checkpoint.weight_folder import FAMILIES, read_index

_OTHER_WEIGHTS = "model.bin"  # of CTranslate2, with the same side files
_SIDE_SUFFIXES = {".json", ".txt", ".model", ".yaml", ".yml", ".tiktoken", ".jinja"}
_WEIGHT_SUFFIXES = {".nemo", ".pt", ".pth", ".bin", ".safetensors"}
_UNUSED_SUFFIXES = {".msgpack", ".h5", ".ot", ".onnx", ".onnx_data", ".tflite", ".md", ".png", ".jpg", ".wav", ".flac"}

# What turns ids into text, any one of these lists.
_TOKENIZERS = (("tokenizer.json",), ("vocab.json", "merges.txt"), ("tokenizer.model",), ("vocab.txt",))


def wanted(names: Iterable[str]) -> list[str]:
    """The files to have: one set of weights, safetensors before pickles, and the side files of their folder.

    A repository of another layout is taken whole, without the files of other frameworks.
    """
    names = list(names)
    top = {name for name in names if "/" not in name}
    side = {name for name in top if PurePosixPath(name).suffix in _SIDE_SUFFIXES and ".index." not in name}
    for family in FAMILIES:
        if family.whole in top:
            return sorted({family.whole, *side})
        if family.index in top:
            return sorted({family.index, *filter(family.shards.fullmatch, top), *side})
    if _OTHER_WEIGHTS in top:
        return sorted({_OTHER_WEIGHTS, *side})
    return sorted(name for name in names if PurePosixPath(name).suffix not in _UNUSED_SUFFIXES)


def missing_files(folder: Path) -> list[str]:
    """What a folder lacks to be loaded, as far as its own files tell. A link without its file is missing.

    Raises `CheckpointError` when an index of shards is damaged.
    """
    entries = [path for path in folder.rglob("*") if not path.is_dir()]
    names = {path.relative_to(folder).as_posix() for path in entries}
    present = {path.relative_to(folder).as_posix() for path in entries if path.exists()}
    missing = set(wanted(names)) - present
    family = next((family for family in FAMILIES if {family.whole, family.index} & names), None)
    if family and family.whole not in names and family.index in present:
        missing |= set(read_index(folder / family.index).values()) - present
    has_weights = any(PurePosixPath(name).suffix in _WEIGHT_SUFFIXES for name in names)
    if not has_weights:
        missing.add(FAMILIES[0].whole)
    if family or not has_weights or _OTHER_WEIGHTS in names:
        missing |= {"config.json"} - present
        if not any(set(files) <= present for files in _TOKENIZERS):
            missing.add(_TOKENIZERS[0][0])
    return sorted(missing)
