"""Samples that are already in memory: numpy and torch."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from oasr.audio import read_audio
from oasr.errors import EmptyAudioError, InvalidSamplesError, RequestError

RATE = 16000


@pytest.mark.parametrize("shape", [(48000, 2), (2, 48000), (48000, 1), (1, 48000), (48000, 32), (32, 48000), (8, 33)])
def test_the_small_axis_is_the_channels(shape):
    samples = np.random.default_rng(0).uniform(-1, 1, shape)
    axis = int(np.argmin(shape))
    audio = read_audio((samples, RATE), target_rate=RATE)
    np.testing.assert_allclose(audio.samples, samples.mean(axis), atol=1e-6)


@pytest.mark.parametrize(
    "shape", [(2, 2), (2, 3), (6, 20), (20, 6), (32, 32), (48000, 48000 // 4), (33, 40), (40, 33), (32, 100)]
)
def test_a_shape_with_two_readings_is_refused(shape):
    with pytest.raises(InvalidSamplesError, match="either axis"):
        read_audio((np.broadcast_to(np.float32(0), shape), RATE), target_rate=RATE)


@pytest.mark.parametrize("shape", [(), (1, 1, 100), (2, 3, 4, 5)])
def test_other_ranks_are_refused(shape):
    with pytest.raises(InvalidSamplesError, match="shape"):
        read_audio((np.zeros(shape), RATE), target_rate=RATE)


@pytest.mark.parametrize("shape", [(0,), (0, 2), (2, 0)])
def test_no_samples_are_refused(shape):
    with pytest.raises(EmptyAudioError):
        read_audio((np.zeros(shape, np.float32), RATE), target_rate=RATE)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint8", "uint16", "uint32", ">i2", ">i4"])
def test_integers_are_scaled_by_their_full_range(dtype):
    limits = np.iinfo(dtype)
    middle = 2 ** (limits.bits - 1) if limits.min == 0 else 0
    samples = np.array([limits.min, middle, limits.max], dtype)
    audio = read_audio((samples, RATE), target_rate=RATE)
    np.testing.assert_allclose(audio.samples, [-1, 0, 1 - 2.0 ** (1 - limits.bits)], atol=1e-7)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble", ">f4", ">f8"])
def test_floats_are_taken_as_they_are(dtype):
    audio = read_audio((np.array([0.5, -0.25, 1.5], dtype), RATE), target_rate=RATE)
    assert audio.samples.tolist() == [0.5, -0.25, 1.5]
    assert audio.samples.dtype == torch.float32


@pytest.mark.parametrize("dtype", ["bool", "complex64", "object", "U3", "S3", "int64", "uint64", "datetime64[s]"])
def test_dtypes_without_one_full_scale_are_refused(dtype):
    with pytest.raises(InvalidSamplesError, match="dtype"):
        read_audio((np.zeros(100, dtype), RATE), target_rate=RATE)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_float_tensors_are_taken_as_they_are(dtype):
    audio = read_audio((torch.tensor([0.5, -0.25], dtype=dtype), RATE), target_rate=RATE)
    assert audio.samples.tolist() == [0.5, -0.25]


def test_tensors_are_detached():
    audio = read_audio((torch.zeros(100, requires_grad=True), 8000), target_rate=RATE)
    assert not audio.samples.requires_grad


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_tensors_on_a_gpu_are_read():
    audio = read_audio((torch.full((100,), 0.5, device="cuda"), RATE), target_rate=RATE)
    assert audio.samples.device.type == "cpu"
    assert audio.samples.tolist() == [0.5] * 100


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(99, dtype=torch.bool),
        torch.zeros(99, dtype=torch.complex64),
        torch.zeros(99, dtype=torch.int64),
        torch.zeros(99, dtype=torch.float8_e4m3fn),
        torch.zeros(99, device="meta"),
        torch.zeros(99).to_sparse(),
    ],
    ids=["bool", "complex", "int64", "float8", "meta", "sparse"],
)
def test_tensors_without_plain_samples_are_refused(tensor):
    with pytest.raises(InvalidSamplesError):
        read_audio((tensor, RATE), target_rate=RATE)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_samples_that_are_not_finite_in_float32_are_refused_with_their_place(bad):
    samples = np.zeros((32000, 2))
    samples[24000, 1] = bad
    with pytest.raises(InvalidSamplesError, match=r"1\.500 s"):
        read_audio((samples, RATE), target_rate=RATE)


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize("shape", [(1000,), (1000, 1), (1, 1000), (2, 1000)])
def test_the_callers_array_is_neither_changed_nor_shared(kind, shape):
    samples = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)
    before = samples.copy()
    audio = read_audio((kind(samples), RATE), target_rate=RATE)
    audio.samples.fill_(9.0)
    assert np.array_equal(samples, before)


def test_read_only_and_strided_arrays_are_read():
    samples = np.random.default_rng(0).uniform(-1, 1, 3000).astype(np.float32)
    samples.flags.writeable = False
    audio = read_audio((samples[::-3], RATE), target_rate=RATE)
    assert np.array_equal(audio.samples, samples[::-3])


def test_a_pair_of_samples_and_rate_is_read():
    assert read_audio((np.zeros(4000, np.float32), 8000), target_rate=RATE).duration == 0.5


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (np.zeros(9), r"pass \(array, sample_rate\)"),
        (torch.zeros(9), r"pass \(array, sample_rate\)"),
        ((8000, np.zeros(9)), "samples first"),
        ((np.zeros(9), 8000, 1), "samples first"),
        (([0.0, 0.1], 8000), "samples first"),
        ([0.0, 0.1], "list"),
        (None, "NoneType"),
    ],
)
def test_a_call_that_does_not_say_enough_is_refused(source, words):
    with pytest.raises(RequestError, match=words):
        read_audio(source, target_rate=RATE)


@pytest.mark.parametrize("rate", [0, -1, 16000.0, True, "16000", 768_001, 2**40])
@pytest.mark.parametrize("which", ["sample_rate", "target_rate"])
def test_a_rate_that_is_no_rate_is_refused(which, rate):
    rates = {"sample_rate": RATE, "target_rate": RATE, which: rate}
    with pytest.raises(RequestError, match=which):
        read_audio((np.zeros(9), rates["sample_rate"]), target_rate=rates["target_rate"])


def test_a_numpy_integer_is_a_rate():
    assert read_audio((np.zeros(160), np.int64(8000)), target_rate=np.int32(16000)).sample_rate == 16000


@settings(max_examples=50, deadline=None)
@given(frames=st.integers(33, 3000), channels=st.integers(1, 8), seed=st.integers(0, 9))
def test_either_orientation_gives_the_same_audio(frames, channels, seed):
    samples = np.random.default_rng(seed).uniform(-1, 1, (frames, channels))
    one = read_audio((samples, 8000), target_rate=RATE).samples
    other = read_audio((samples.T, 8000), target_rate=RATE).samples
    assert torch.equal(one, other)
