"""A .pt of openai/whisper is recognised, never runs code, and gets the tokenizer its package would use."""

import argparse
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer

from oasr.checkpoint.sniff import open_checkpoint
from oasr.errors import CheckpointError
from oasr.registry import default_registry
from oasr_whisper import openai_format, openai_tokenizer
from oasr_whisper.openai_format import OpenAIFormat
from oasr_whisper.openai_tokenizer import default_suppressions, merges_of, package_tokenizer

DIMS = {"n_audio_ctx": 1500, "n_vocab": 51865}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    path = tmp_path / "模型 dir" / "tiny.pt"
    path.parent.mkdir()
    torch.save({"dims": DIMS, "model_state_dict": {"w": torch.arange(5000.0)}}, path)
    return path


@pytest.mark.parametrize("as_zip", [True, False], ids=["zip", "legacy"])
def test_the_file_is_recognised_by_its_content(tmp_path: Path, as_zip: bool) -> None:
    path = tmp_path / "a.pt"
    torch.save({"dims": DIMS, "model_state_dict": {}}, path, _use_new_zipfile_serialization=as_zip)
    assert OpenAIFormat.match(path) is not None
    torch.save({"model": {}}, path, _use_new_zipfile_serialization=as_zip)
    assert OpenAIFormat.match(path) is None
    assert OpenAIFormat.match(tmp_path) is None


def test_tensors_and_dims_are_read(checkpoint: Path) -> None:
    opened = OpenAIFormat().open(checkpoint)
    assert opened.config == DIMS
    assert opened.shapes() == {"w": (5000,)}
    assert torch.equal(dict(opened.tensors())["w"], torch.arange(5000.0))


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_download_cut_short_is_called_truncated(checkpoint: Path, share: float) -> None:
    whole = checkpoint.read_bytes()
    checkpoint.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(CheckpointError, match=r"tiny\.pt is truncated"):
        open_checkpoint(checkpoint, default_registry())


def test_an_empty_file_is_called_empty(checkpoint: Path) -> None:
    checkpoint.write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"is empty \(0 bytes\)"):
        open_checkpoint(checkpoint, default_registry())


def test_a_class_in_the_file_is_refused_by_name(checkpoint: Path) -> None:
    content = {"dims": DIMS, "model_state_dict": {}, "hyperparameters": argparse.Namespace(lr=1)}
    torch.save(content, checkpoint)
    with pytest.raises(CheckpointError, match=r"contains argparse\.Namespace"):
        open_checkpoint(checkpoint, default_registry())


def test_the_folder_around_a_file_points_to_the_file(checkpoint: Path) -> None:
    with pytest.raises(CheckpointError, match=r"tiny\.pt is recognised \(openai-whisper\): name that instead"):
        open_checkpoint(checkpoint.parent, default_registry())


def test_a_tokenizer_beside_the_file_is_taken(checkpoint: Path) -> None:
    beside = checkpoint.with_name("tokenizer.json")
    beside.write_text("{}")
    assert OpenAIFormat().open(checkpoint).files == {"tokenizer": beside}


def test_without_the_package_both_ways_to_a_tokenizer_are_named(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_format, "package_tokenizer", lambda size: None)
    with pytest.raises(CheckpointError, match=r"tokenizer\.json of the same model beside.*pip install openai-whisper"):
        _ = OpenAIFormat().open(checkpoint).files


def test_a_vocabulary_of_no_release_needs_its_own_tokenizer(tmp_path: Path) -> None:
    pytest.importorskip("whisper", reason="the tokenizer's assets: pip install openai-whisper")
    torch.save({"dims": {"n_vocab": 777, "n_audio_ctx": 1}, "model_state_dict": {}}, tmp_path / "a.pt")
    with pytest.raises(CheckpointError, match="no Whisper release has a vocabulary of 777"):
        _ = OpenAIFormat().open(tmp_path / "a.pt").files


def test_merges_follow_from_the_order_of_the_tokens() -> None:
    tokens = [b"a", b"b", b"c", b"ab", b"bc", b"abc", b"cab"]
    ranks = {token: rank for rank, token in enumerate(tokens)}
    # "abc" is "ab" and "c", since "ab" was merged before "bc".
    assert merges_of(ranks) == [(b"a", b"b"), (b"b", b"c"), (b"ab", b"c"), (b"c", b"ab")]


SENTENCES = [
    "Hello world, it's me. DON'T they've 1234 5,678.90 €",
    "¿Qué tal? Straße naïve œuvre",
    "你好世界 日本語テスト 한국어",
    "Привет мир שלום עולם مرحبا بالعالم हिन्दी में ไทย",
    "  two  spaces\n\tand tabs \r\n trailing ",
    "🎉👩‍👩‍👧 e\u0301 \u200b <<>> [[ ]] ♪♪♪ ♩",
    "a" * 200,
    "",
]


@pytest.mark.oracle
@pytest.mark.parametrize(("size", "languages"), [(51864, 99), (51865, 99), (51866, 100)])
def test_the_rebuilt_tokenizer_is_openais(size: int, languages: int, tmp_path: Path) -> None:
    whisper = pytest.importorskip("whisper.tokenizer", reason="the oracle: pip install openai-whisper")
    oracle: Any = whisper.get_tokenizer(multilingual=size > 51864, num_languages=languages)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(package_tokenizer(size)), encoding="utf-8")
    rebuilt = Tokenizer.from_file(str(path))

    assert rebuilt.get_vocab_size() == oracle.encoding.n_vocab == size
    assert {name: rebuilt.token_to_id(name) for name in oracle.special_tokens} == oracle.special_tokens
    for sentence in SENTENCES:
        ids = oracle.encode(sentence)
        assert rebuilt.encode(sentence, add_special_tokens=False).ids == ids
        assert rebuilt.decode(ids) == oracle.decode(ids) == sentence

    control = {oracle.sot, oracle.translate, oracle.transcribe, oracle.sot_lm, oracle.sot_prev, oracle.no_speech}
    always, first = default_suppressions(path)
    assert set(always) == {*oracle.non_speech_tokens, *control}
    assert first == (*oracle.encode(" "), oracle.eot)


def test_the_package_is_found_without_importing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_tokenizer, "find_spec", lambda name: None)
    assert package_tokenizer(51865) is None
