"""G.711 and other samples without a header: readable when declared, refused when not."""

import io
from pathlib import Path

import av
import numpy as np
import pytest

from oasr.audio import RawAudio, read_audio
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
    audio = read_audio(RawAudio(encode(LIBAV[law], law, 8000), law, 8000), target_rate=16000)
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
    audio = read_audio(RawAudio(bytes([code]), law, 8000), target_rate=8000)
    assert audio.samples.tolist() == [value / 32768]


@pytest.mark.parametrize("law", ["alaw", "mulaw"])
def test_every_g711_code_has_the_value_libav_gives_it(wav, law):
    codes = bytes(range(256)) * 4
    with av.open(io.BytesIO(wav(codes, tag=TAGS[law], bits=8, rate=8000))) as container:
        expected = np.concatenate([frame.to_ndarray()[0] for frame in container.decode(audio=0)])
    audio = read_audio(RawAudio(codes, law, 8000), target_rate=8000)
    assert np.array_equal(audio.samples * 32768, expected)


@pytest.mark.parametrize("rate", [8000, 16000, 44100, 48000])
def test_declared_samples_are_read_at_the_declared_rate(tone, snr, rate):
    raw = (tone(rate, 0.5)[:, 0] * 32767).astype("<i2").tobytes()
    audio = read_audio(RawAudio(raw, "s16le", rate), target_rate=16000)
    assert audio.duration == 0.5
    assert snr(audio.samples, 16000) > 30


@pytest.mark.parametrize("form", [str, Path, Path.read_bytes, lambda path: path.open("rb")])
def test_a_path_bytes_or_a_file_may_be_declared(tmp_path, form):
    path = tmp_path / "call.raw"
    path.write_bytes(bytes([0xD5]) * 8000)
    assert read_audio(RawAudio(form(path), "alaw", 8000), target_rate=8000).duration == 1.0


@pytest.mark.parametrize("law", ["alaw", "mulaw"])
def test_undeclared_headerless_samples_are_refused_with_the_way_out(encode, law):
    with pytest.raises(UnsupportedAudioError, match=r"need --encoding and --rate .*RawAudio"):
        read_audio(encode(LIBAV[law], law, 8000), target_rate=16000)


@pytest.mark.parametrize("rate", [8000, 44100])
def test_a_wav_declared_as_headerless_is_read_as_the_wav_it_is(wav, tone, rate):
    data = wav((tone(rate, 0.5) * 32767).astype("<i2").tobytes(), rate=rate)
    audio = read_audio(RawAudio(data, "s16le", 16000), target_rate=16000)
    assert audio.duration == 0.5
    assert "WAV header" in audio.notes[0]


def test_a_part_of_a_sample_at_the_end_is_dropped():
    audio = read_audio(RawAudio(bytes(7), "s16le", 8000), target_rate=8000)
    assert audio.samples.shape == (3,)
    assert "1 bytes" in audio.notes[0]


@pytest.mark.parametrize(("encoding", "rate", "words"), [("s17", 8000, "alaw, mulaw, s16le"), ("alaw", 0, "rate")])
def test_a_declaration_of_what_is_unknown_is_refused(encoding, rate, words):
    with pytest.raises(RequestError, match=words):
        RawAudio(bytes(8), encoding, rate)
