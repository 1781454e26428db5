"""WAV files as recorders, editors and telephones write them."""

import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oasr.audio import read_audio
from oasr.errors import AudioError, EmptyAudioError, InvalidSamplesError, UnsupportedAudioError

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
SAME_FIXTURE = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def pack(frames, width):
    """(time, channel) floats as the bytes of `width`."""
    flat = np.asarray(frames).reshape(-1)
    if width == "u8":
        return (np.round(flat * 127) + 128).astype("u1").tobytes()
    if width == "s24":
        return np.round(flat * (2**23 - 1)).astype("<i4").view("u1").reshape(-1, 4)[:, :3].tobytes()
    if width.startswith("s"):
        bits = int(width[1:])
        return np.round(flat * (2.0 ** (bits - 1) - 1)).astype(f"<i{bits // 8}").tobytes()
    return flat.astype(f"<f{int(width[1:]) // 8}").tobytes()


# Largest error for a signal within ±0.5: half a step, and the scale of 2**n - 1 against 2**n, and float32 itself.
MAX_ERROR = {"u8": 1 / 128, "s16": 2.0**-15, "s24": 2.0**-22, "s32": 2.0**-24, "f32": 0.0, "f64": 2.0**-25}


@pytest.mark.parametrize("rate", [8000, 44100, 48000, 96000])
@pytest.mark.parametrize("channels", [1, 2, 6])
@pytest.mark.parametrize("width", list(MAX_ERROR))
def test_every_width_channel_count_and_rate_is_read_within_its_resolution(wav, tone, width, channels, rate):
    expected = tone(rate, 0.1, channels=channels)
    bits = int(width[1:])
    data = wav(pack(expected, width), tag=FLOAT if width[0] == "f" else PCM, channels=channels, rate=rate, bits=bits)
    audio = read_audio(data, target_rate=rate)
    error = np.abs(audio.samples.numpy() - expected[:, 0].astype(np.float32)).max()
    assert error <= MAX_ERROR[width] + (2.0**-23 if channels > 1 else 0)
    assert (audio.truncated, audio.notes) == (False, ())


@pytest.mark.parametrize("rate", [8000, 11025, 22050, 44100, 48000, 96000, 192000])
def test_every_rate_is_resampled_to_the_rate_asked_for(wav, tone, snr, rate):
    audio = read_audio(wav(pack(tone(rate, 1.0), "s16"), rate=rate), target_rate=16000)
    assert audio.samples.shape == (16000,)
    assert audio.sample_rate == 16000
    assert audio.duration == 1.0
    assert snr(audio.samples, 16000) > 40


def test_channels_are_averaged(wav):
    frames = np.stack([np.full(50, 0.5), np.full(50, -0.25)], axis=1)
    audio = read_audio(wav(pack(frames, "f32"), tag=FLOAT, bits=32, channels=2), target_rate=16000)
    np.testing.assert_allclose(audio.samples, 0.125)


def test_more_channels_than_any_layout_has_are_averaged(wav, tone):
    frames = tone(16000, 0.1, channels=200)
    audio = read_audio(wav(pack(frames, "s16"), channels=200), target_rate=16000)
    np.testing.assert_allclose(audio.samples, frames[:, 0], atol=2.0**-14)


@pytest.mark.parametrize("fmt_size", [14, 16, 18, 20, 40, 41])
def test_every_size_of_format_chunk_is_accepted(wav, tone, fmt_size):
    data = pack(tone(16000, 0.1), "s16")
    audio = read_audio(wav(data, fmt_size=fmt_size), target_rate=16000)
    assert np.array_equal(audio.samples, read_audio(wav(data), target_rate=16000).samples)


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("size", [0, 1, 7, 28, 5001])
def test_unknown_chunks_before_the_format_are_skipped(wav, riff_chunk, tone, size, padded):
    data = pack(tone(16000, 0.1), "s16")
    before = riff_chunk(b"JUNK", b"x" * (size + size % 2)) + riff_chunk(b"LIST", b"y" * size, padded)
    audio = read_audio(wav(data, before=before), target_rate=16000)
    assert np.array_equal(audio.samples, read_audio(wav(data), target_rate=16000).samples)


def test_chunks_after_the_samples_are_not_heard(wav, riff_chunk):
    quiet = bytes(2001)
    audio = read_audio(wav(quiet, bits=8, after=riff_chunk(b"LIST", b"loud" * 99)), target_rate=16000)
    assert audio.samples.shape == (2001,)


@pytest.mark.parametrize("excess", [1, 2, 1000, 10**9])
def test_samples_that_are_declared_but_absent_mark_the_audio_truncated(wav, tone, excess):
    data = pack(tone(16000, 0.1), "s16")
    audio = read_audio(wav(data, declared=len(data) + excess), target_rate=16000)
    assert audio.samples.shape == (1600,)
    assert audio.truncated
    assert str(len(data)) in audio.notes[0]
    assert str(len(data) + excess) in audio.notes[0]


@pytest.mark.parametrize("riff_size", [0, 36, 0xFFFFFFFF])
@pytest.mark.parametrize("declared", [0, 0xFFFFFFFF, 0xFFFFFFDB, 0x7FFFF000, 0x7FFFFFFF, 0x80000000])
def test_a_live_recording_without_sizes_is_read_to_its_end(wav, tone, declared, riff_size):
    data = pack(tone(16000, 0.1), "s16")
    audio = read_audio(wav(data, declared=declared, riff_size=riff_size), target_rate=16000)
    assert audio.samples.shape == (1600,)
    assert not audio.truncated
    assert "no length" in audio.notes[0]


@pytest.mark.parametrize("declared", [1, 1000])
def test_samples_beyond_a_size_that_is_far_too_small_are_read(wav, tone, declared):
    audio = read_audio(wav(pack(0.001 * tone(16000, 0.5), "s16"), declared=declared), target_rate=16000)
    assert audio.samples.shape == (8000,)
    assert "16000 are present" in audio.notes[0]


def test_a_part_of_a_frame_at_the_end_is_dropped(wav):
    audio = read_audio(wav(bytes(4 * 10 + 3), channels=2), target_rate=16000)
    assert audio.samples.shape == (10,)
    assert "3 bytes" in audio.notes[0]


@pytest.mark.parametrize("extension_size", [22, 24])
@pytest.mark.parametrize(("tag", "width"), [(PCM, "s16"), (PCM, "s24"), (PCM, "s32"), (FLOAT, "f32"), (FLOAT, "f64")])
def test_extensible_files_are_read_by_their_sub_format(wav, tone, tag, width, extension_size):
    guid = struct.pack("<H", tag) + bytes.fromhex("000000001000800000AA00389B71")
    bits = int(width[1:])
    extension = struct.pack("<HHI", extension_size, bits, 0x3F) + guid + bytes(extension_size - 22)
    expected = tone(48000, 0.05, channels=6)
    data = wav(
        pack(expected, width),
        tag=EXTENSIBLE,
        bits=bits,
        channels=6,
        rate=48000,
        extension=extension,
        fmt_size=18 + extension_size,
    )
    audio = read_audio(data, target_rate=48000)
    np.testing.assert_allclose(audio.samples, expected[:, 0], atol=MAX_ERROR[width] + 2.0**-22)


def test_twenty_four_bits_in_four_bytes_are_read_left_justified(wav, tone):
    expected = tone(16000, 0.1)
    audio = read_audio(wav(pack(expected, "s32"), bits=24, block_align=4), target_rate=16000)
    np.testing.assert_allclose(audio.samples, expected[:, 0], atol=2.0**-22)


def test_rf64_sizes_are_taken_from_its_own_chunk(wav, riff_chunk, tone):
    data = pack(tone(16000, 0.1), "s16")
    sizes = riff_chunk(b"ds64", struct.pack("<QQQI", 0, len(data), 1600, 0))
    after = riff_chunk(b"LIST", b"not a sample")
    wide = wav(data, riff=b"RF64", riff_size=0xFFFFFFFF, declared=0xFFFFFFFF, before=sizes, after=after)
    audio = read_audio(wide, target_rate=16000)
    assert audio.samples.shape == (1600,)
    assert audio.notes == ()


def test_a_compressed_wav_is_decoded(encode, snr):
    audio = read_audio(encode("adpcm_ima_wav", "wav", 16000), target_rate=16000)
    assert snr(audio.samples, 16000) > 30


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"channels": 0, "block_align": 2}, "'channels' is 0"),
        ({"rate": 0}, "'sample rate' is 0"),
        ({"rate": 4_000_000_000}, "'sample rate' is 4000000000"),
        ({"bits": 40}, "'bits per sample' is 40"),
        ({"bits": 0}, "'bits per sample' is 0"),
        ({"tag": FLOAT, "bits": 16}, "'bits per sample' is 16"),
        ({"tag": EXTENSIBLE}, "'sub-format'"),
        ({"tag": 0x4242}, "'format tag' is 0x4242"),
        ({"fmt_size": 12}, "12 bytes"),
    ],
)
def test_a_refusal_names_the_field_and_its_value(wav, fields, named):
    with pytest.raises(UnsupportedAudioError, match=named):
        read_audio(wav(bytes(3200), **{"block_align": 0, **fields}), target_rate=16000)


@pytest.mark.parametrize("missing", ["fmt ", "data"])
def test_a_missing_chunk_is_named(wav, missing):
    data = wav(bytes(100)).replace(missing.encode(), b"JUNK")
    with pytest.raises(UnsupportedAudioError, match=f"'{missing}'"):
        read_audio(data, target_rate=16000)


def test_a_wav_of_endless_chunks_is_refused(wav, riff_chunk):
    with pytest.raises(UnsupportedAudioError, match="chunks"):
        read_audio(wav(bytes(100), before=riff_chunk(b"JUNK", b"") * 20_000), target_rate=16000)


def test_a_wav_without_samples_is_empty(wav, riff_chunk):
    with pytest.raises(EmptyAudioError):
        read_audio(wav(b"", after=riff_chunk(b"LIST", b"abcd")), target_rate=16000)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("width", ["f32", "f64"])
def test_samples_that_are_not_finite_are_refused_with_their_place(wav, width, bad):
    samples = np.zeros(16000)
    samples[8000] = bad
    with pytest.raises(InvalidSamplesError, match=r"0\.500 s"):
        read_audio(wav(pack(samples, width), tag=FLOAT, bits=int(width[1:])), target_rate=16000)


@SAME_FIXTURE
@given(data=st.data())
def test_any_truncation_is_read_or_refused_by_type(wav, tone, data):
    whole = wav(pack(tone(8000, 0.05, channels=2), "s24"), bits=24, channels=2, rate=8000, before=b"JUNK\3\0\0\0abc\0")
    cut = data.draw(st.integers(0, len(whole)))
    try:
        audio = read_audio(whole[:cut], target_rate=8000)
    except AudioError:
        return
    assert audio.samples.numel() <= 400
    assert audio.truncated or cut == len(whole)


@SAME_FIXTURE
@given(data=st.data())
def test_any_damaged_header_is_read_or_refused_by_type(wav, data):
    whole = bytearray(wav(bytes(range(256)) * 4, fmt_size=18))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, 50))] = data.draw(st.sampled_from([0, 1, 2, 3, 0x7F, 0x80, 0xFE, 0xFF]))
    try:
        audio = read_audio(bytes(whole), target_rate=16000)
    except AudioError:
        return
    assert np.isfinite(audio.samples.numpy()).all()
