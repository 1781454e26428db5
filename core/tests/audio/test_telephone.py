"""G.711 and other samples without a header: readable when declared, refused when not."""

import io

import av
import numpy as np
import pytest

from oasr.audio import read_audio
from oasr.errors import RequestError, UnsupportedAudioError

TAGS = {"alaw": 6, "mulaw": 7}
LIBAV = {"alaw": "pcm_alaw", "mulaw": "pcm_mulaw"}


@pytest.mark.parametrize("law", ["alaw", "mulaw"])
@pytest.mark.parametrize("bits", [0, 8, 16])
def test_g711_in_wav_keeps_its_quality(encode, wav, snr, law, bits):
    codes = encode(LIBAV[law], law, 8000)
    audio = read_audio(wav(codes, tag=TAGS[law], bits=bits, block_align=1, rate=8000), target_rate=8000)
    assert audio.duration == 2.0
    assert snr(audio.samples, 8000) > 35


@pytest.mark.parametrize("channels", [1, 2, 6])
@pytest.mark.parametrize("law", ["alaw", "mulaw"])
def test_g711_with_several_channels_is_averaged(encode, wav, snr, law, channels):
    codes = np.repeat(np.frombuffer(encode(LIBAV[law], law, 8000), "u1"), channels).tobytes()
    data = wav(codes, tag=TAGS[law], bits=8, channels=channels, rate=8000)
    assert snr(read_audio(data, target_rate=8000).samples, 8000) > 35


@pytest.mark.parametrize("law", ["alaw", "mulaw"])
def test_declared_headerless_g711_keeps_its_quality(encode, snr, law):
    audio = read_audio(encode(LIBAV[law], law, 8000), target_rate=16000, sample_rate=8000, encoding=law)
    assert audio.duration == 2.0
    assert snr(audio.samples, 16000) > 35


@pytest.mark.parametrize(
    ("law", "code", "value"),
    # ITU-T G.711, at 16 bits: largest, smallest and zero of either sign.
    [
        ("mulaw", 0x80, 32124),
        ("mulaw", 0x00, -32124),
        ("mulaw", 0xFF, 0),
        ("mulaw", 0x7F, 0),
        ("mulaw", 0xFE, 8),
        ("alaw", 0xAA, 32256),
        ("alaw", 0x2A, -32256),
        ("alaw", 0xD5, 8),
        ("alaw", 0x55, -8),
        ("alaw", 0x85, 4224),
    ],
)
def test_g711_codes_have_the_values_of_the_standard(law, code, value):
    audio = read_audio(bytes([code]), target_rate=8000, sample_rate=8000, encoding=law)
    assert audio.samples.tolist() == [value / 32768]


@pytest.mark.parametrize("law", ["alaw", "mulaw"])
def test_every_g711_code_has_the_value_libav_gives_it(wav, law):
    codes = bytes(range(256)) * 4
    with av.open(io.BytesIO(wav(codes, tag=TAGS[law], bits=8, rate=8000))) as container:
        expected = np.concatenate([frame.to_ndarray()[0] for frame in container.decode(audio=0)])
    audio = read_audio(codes, target_rate=8000, sample_rate=8000, encoding=law)
    assert np.array_equal(audio.samples * 32768, expected)


@pytest.mark.parametrize(
    "encoding", ["u8", "s8", "s16le", "s16be", "s32le", "s32be", "f32le", "f32be", "f64le", "f64be"]
)
@pytest.mark.parametrize("rate", [8000, 16000, 44100, 48000])
def test_declared_samples_are_read_at_the_declared_rate(tone, snr, encoding, rate):
    samples = tone(rate, 0.5)[:, 0]
    kind, bits, order = encoding[0], int(encoding[1:].rstrip("bel")), ">" if encoding.endswith("be") else "<"
    scale = {"f": 1.0, "s": 2.0 ** (bits - 1) - 1, "u": 127}[kind]
    dtype = f"{order}{'i' if kind == 's' else kind}{bits // 8}"
    raw = (samples * scale + (128 if kind == "u" else 0)).astype(dtype).tobytes()
    audio = read_audio(raw, target_rate=16000, sample_rate=rate, encoding=encoding)
    assert audio.duration == 0.5
    assert snr(audio.samples, 16000) > 30


@pytest.mark.parametrize("law", ["alaw", "mulaw"])
@pytest.mark.parametrize("sample_rate", [None, 8000])
def test_undeclared_headerless_samples_are_refused_with_the_way_out(encode, law, sample_rate):
    codes = encode(LIBAV[law], law, 8000)
    with pytest.raises(UnsupportedAudioError, match="declared with their encoding and rate"):
        read_audio(codes, target_rate=16000, sample_rate=sample_rate)


@pytest.mark.parametrize("rate", [8000, 44100])
def test_a_wav_declared_as_headerless_is_read_as_the_wav_it_is(wav, tone, rate):
    data = wav((tone(rate, 0.5) * 32767).astype("<i2").tobytes(), rate=rate)
    audio = read_audio(data, target_rate=16000, sample_rate=16000, encoding="s16le")
    assert audio.duration == 0.5
    assert "WAV header" in audio.notes[0]
    assert f"{rate} Hz" in audio.notes[1]


def test_a_declared_rate_that_contradicts_the_file_is_noted_and_not_used(wav):
    audio = read_audio(wav(bytes(16000), rate=8000), target_rate=8000, sample_rate=16000)
    assert audio.duration == 1.0
    assert "16000 Hz" in audio.notes[0]


def test_a_part_of_a_sample_at_the_end_is_dropped():
    audio = read_audio(bytes(7), target_rate=8000, sample_rate=8000, encoding="s16le")
    assert audio.samples.shape == (3,)
    assert "1 bytes" in audio.notes[0]


@pytest.mark.parametrize("declared", [{"encoding": "s16le"}, {"encoding": "s17", "sample_rate": 8000}])
def test_an_incomplete_declaration_is_refused(declared):
    with pytest.raises(RequestError, match=r"sample_rate|s16le"):
        read_audio(bytes(8), target_rate=8000, **declared)
