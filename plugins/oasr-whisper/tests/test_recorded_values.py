"""A multilingual checkpoint with random weights reproduces what transformers 5.24 computed from it in float32."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from safetensors.torch import load_file

from oasr.audio import Audio, read_audio
from oasr.engine import ASREngine, DecodingOptions, EngineConfig
from oasr.interfaces.architecture import EncoderOutput
from oasr.interfaces.frontend import FeatureBatch

TOLERANCE = 1e-4
CLIPS = [0, 1, 2]


class Recorded(NamedTuple):
    engine: ASREngine
    clips: list[Audio]
    values: dict[str, Any]
    tensors: dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def recorded(shared: Any, device: str) -> Recorded:
    folder = shared("goldens/whisper-multilingual")
    values = json.loads((folder / "expected.json").read_text())
    clips = [read_audio(shared(name.removeprefix("shared/")), target_rate=16_000) for name in values["clips"]]
    engine = ASREngine(EngineConfig(model=folder / "checkpoint", device=device, dtype="float32"))
    return Recorded(engine, clips, values, load_file(folder / "expected.safetensors", device))


def extract(recorded: Recorded, clip: int) -> FeatureBatch:
    runner = recorded.engine._runner
    samples = recorded.clips[clip].samples.to(runner.model.device)
    return runner._encoder.frontend.extract(samples[None], torch.tensor([len(samples)], device=samples.device))


def encode(recorded: Recorded, clip: int) -> EncoderOutput:
    return recorded.engine._runner._encoder.encode([recorded.clips[clip].samples])


def read(recorded: Recorded, clips: list[int], **options: Any) -> list[Any]:
    """Transcripts of one greedy pass without timestamps, as recorded: 40 new tokens, whatever they are worth."""
    plain = {"timestamps": False, "fallback": (), "most_silence": 1.0}
    return recorded.engine.transcribe(
        [recorded.clips[clip] for clip in clips], DecodingOptions(max_new_tokens=40, **plain, **options)
    )


def tokens(recorded: Recorded, ids: list[int], prompt: int = 4) -> tuple[int, ...]:
    """Text tokens of recorded ids: without the prompt and the control tokens."""
    return tuple(token for token in ids[prompt:] if token < recorded.values["token_ids"]["<|endoftext|>"])


def test_features(recorded: Recorded) -> None:
    frames = extract(recorded, 0).frames[0]
    expected = recorded.tensors["features_first_frames.clip0"]
    torch.testing.assert_close(frames[: len(expected)], expected, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("clip", CLIPS)
def test_encoder_rows(recorded: Recorded, clip: int) -> None:
    frames = encode(recorded, clip).frames[0]
    expected = recorded.tensors[f"encoder_output_first_rows.clip{clip}"]
    torch.testing.assert_close(frames[: len(expected)], expected, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("prompt", ["sot", "sot_en_transcribe", "sot_en_transcribe_notimestamps"])
def test_first_logits(recorded: Recorded, first_logits: Callable[..., torch.Tensor], clip: int, prompt: str) -> None:
    ids = recorded.values["token_ids"]
    names = {"sot": "startoftranscript"}
    prompt_ids = [ids[f"<|{names.get(name, name)}|>"] for name in prompt.split("_")]
    logits = first_logits(recorded.engine._runner.model, encode(recorded, clip), prompt_ids)
    expected = recorded.tensors[f"raw_logits_after.{prompt}.clip{clip}"]
    torch.testing.assert_close(logits, expected, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("clip", CLIPS)
def test_detected_language(recorded: Recorded, clip: int) -> None:
    [result] = read(recorded, [clip])
    expected = recorded.values["per_clip"][clip]["detected_language"]["token"]
    assert f"<|{result.language}|>" == expected


@pytest.mark.parametrize("clip", CLIPS)
def test_probabilities_of_languages(recorded: Recorded, clip: int) -> None:
    [likeliest, *others] = recorded.values["per_clip"][clip]["language_probabilities_top3"]
    audio = recorded.clips[clip]
    code, probability = recorded.engine.detect_language(audio)
    assert (f"<|{code}|>", probability) == (likeliest[0], pytest.approx(likeliest[1], abs=TOLERANCE))
    rest = [token.strip("<|>") for token, _ in others]
    code, probability = recorded.engine.detect_language(audio, rest)
    assert code == rest[0]
    assert probability == pytest.approx(others[0][1] / sum(share for _, share in others), abs=TOLERANCE)


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize(
    ("recording", "options"),
    [
        ("greedy", {"language": "en"}),
        ("greedy_detect_language", {}),
        ("greedy_translate_french", {"language": "fr", "task": "translate"}),
    ],
)
def test_greedy_ids(recorded: Recorded, clip: int, recording: str, options: dict[str, str]) -> None:
    [result] = read(recorded, [clip], **options)
    assert result.segments[0].tokens == tokens(recorded, recorded.values["per_clip"][clip][recording]["ids"])


@pytest.mark.parametrize("clip", CLIPS)
def test_beams(recorded: Recorded, clip: int) -> None:
    [result] = read(recorded, [clip], language="en", beam=5)
    expected = recorded.values["per_clip"][clip]["beam5"]
    [segment] = result.segments
    assert segment.tokens == tokens(recorded, expected["ids"])
    assert segment.avg_logprob == pytest.approx(expected["scores"][0], abs=TOLERANCE)


@pytest.mark.parametrize("clip", CLIPS)
def test_greedy_ids_after_a_prompt(recorded: Recorded, clip: int) -> None:
    expected = recorded.values["per_clip"][clip]["greedy_with_prompt_hello_world"]
    text = recorded.engine._parts.tokenizer.decode(expected["prompt_ids"][1:])
    [result] = read(recorded, [clip], language="en", prompt=text)
    assert result.segments[0].tokens == tokens(recorded, expected["ids"], prompt=len(expected["prompt_ids"]) + 4)


def test_greedy_ids_of_a_batch(recorded: Recorded) -> None:
    results = read(recorded, CLIPS, language="en")
    expected = [tokens(recorded, ids) for ids in recorded.values["batch_of_3_greedy_ids"]]
    assert [result.segments[0].tokens for result in results] == expected
