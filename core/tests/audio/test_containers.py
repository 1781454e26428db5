"""Compressed files, and files that only look like audio."""

import random
import subprocess
import sys

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oasr.audio import read_audio
from oasr.errors import AudioError, EmptyAudioError, NoAudioStreamError, UnsupportedAudioError

# Codec, container, rate, and the least SNR of a tone in dB.
FORMATS = {
    "mp3": ("libmp3lame", "mp3", 44100, 40),
    "m4a": ("aac", "ipod", 44100, 20),
    "aac": ("aac", "adts", 44100, 20),
    "flac": ("flac", "flac", 44100, 60),
    "alac": ("alac", "ipod", 44100, 60),
    "opus": ("libopus", "ogg", 48000, 30),
    "webm": ("libopus", "webm", 48000, 30),
    "oga": ("vorbis", "ogg", 44100, 15),
    "mka": ("aac", "matroska", 48000, 20),
    "aiff": ("pcm_s16be", "aiff", 44100, 60),
    "caf": ("pcm_s24le", "caf", 44100, 60),
    "amr": ("libopencore_amrnb", "amr", 8000, 15),
    "w64": ("pcm_s16le", "w64", 44100, 60),
    "ts": ("aac", "mpegts", 48000, 20),
}


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_is_read_whole(encode, snr, suffix):
    codec, container, rate, least = FORMATS[suffix]
    audio = read_audio(
        encode(codec, container, rate, layout="mono" if suffix == "amr" else "stereo"), target_rate=16000
    )
    assert audio.duration == pytest.approx(2.0, abs=0.06)
    assert snr(audio.samples[1600:-1600], 16000) > least
    assert (audio.truncated, audio.notes) == (False, ())


@pytest.mark.parametrize("wrong", ["wav", "mp3", "txt", ""])
@pytest.mark.parametrize("suffix", ["mp3", "m4a", "flac", "opus", "webm", "aiff"])
def test_the_name_of_a_file_does_not_matter(tmp_path, encode, suffix, wrong):
    codec, container, rate, _ = FORMATS[suffix]
    data = encode(codec, container, rate)
    path = tmp_path / f"clip.{wrong}"
    path.write_bytes(data)
    assert np.array_equal(read_audio(path, target_rate=16000).samples, read_audio(data, target_rate=16000).samples)


def test_a_wav_named_as_another_format_is_read(tmp_path, wav):
    path = tmp_path / "clip.mp3"
    path.write_bytes(wav(bytes(3200)))
    assert read_audio(path, target_rate=16000).duration == 0.1


@pytest.mark.parametrize(("codec", "container"), [("aac", "mp4"), ("libopus", "matroska"), ("libmp3lame", "avi")])
def test_the_sound_of_a_video_is_read(encode, snr, codec, container):
    audio = read_audio(encode(codec, container, 48000, video=True, layout="stereo"), target_rate=16000)
    assert audio.duration == pytest.approx(2.0, abs=0.06)
    assert snr(audio.samples[1600:-1600], 16000) > 20
    assert not audio.truncated


def test_a_video_without_sound_is_named(tmp_path):
    path = tmp_path / "silent film.mp4"
    with av.open(str(path), "w") as out:
        picture = out.add_stream("mpeg4", rate=10)
        picture.width, picture.height, picture.pix_fmt = 64, 64, "yuv420p"
        for _ in range(3):
            out.mux(picture.encode(av.VideoFrame(64, 64, "yuv420p")))
        out.mux(picture.encode(None))
    with pytest.raises(NoAudioStreamError, match=r"silent film\.mp4: no audio stream"):
        read_audio(path, target_rate=16000)


@pytest.mark.parametrize("layout", ["stereo", "5.1", "7.1", "hexadecagonal"])
@pytest.mark.parametrize(("codec", "container"), [("aac", "mp4"), ("pcm_f32le", "matroska"), ("wavpack", "wv")])
def test_any_number_of_channels_is_averaged(encode, codec, container, layout):
    audio = read_audio(encode(codec, container, 48000, layout=layout), target_rate=48000)
    assert audio.duration == pytest.approx(2.0, abs=0.06)
    assert 0.3 < audio.samples.abs().max() < 0.8


def test_channels_in_an_order_of_their_own_leave_the_process_alive(tmp_path, encode):
    """Decoded as PyAV 18.1 does by itself, this file ends in a double free."""
    path = tmp_path / "surround.caf"
    path.write_bytes(encode("pcm_f64le", "caf", 48000, layout="7.1"))
    script = (
        "import sys; from oasr.audio import read_audio\n"
        "for _ in range(5): print(read_audio(sys.argv[1], target_rate=16000).duration)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2.0"] * 5


def test_decoding_prints_nothing(capfd, encode):
    read_audio(encode("libmp3lame", "mp3", 44100)[:9000], target_rate=16000)
    assert capfd.readouterr() == ("", "")


def test_an_unfinished_mp4_says_what_it_lacks(encode):
    data = encode("aac", "mp4", 44100)  # its index stands at the end
    with pytest.raises(AudioError, match="moov"):
        read_audio(data[: len(data) * 7 // 10], target_rate=16000)


NOT_AUDIO = {
    "text": b"these are words about a recording\n" * 300,
    "html": b"<!doctype html><html><body>413</body></html>",
    "subtitles": b"1\n00:00:01,000 --> 00:00:02,000\nhello\n\n" * 9,
    "playlist": b"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nfile:///etc/hostname\n#EXT-X-ENDLIST\n",
    "concatenation": b"ffconcat version 1.0\nfile /etc/hostname\n",
    "session": b"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=audio 5004 RTP/AVP 0\n",
    "png": b"\x89PNG\r\n\x1a\n" + bytes(500),
    "pdf": b"%PDF-1.7\n" * 99,
    "zip": b"PK\3\4" + bytes(500),
    "zeros": bytes(50_000),
    "ones": b"\xff" * 50_000,
    "noise": random.Random(0).randbytes(1_000_000),
    "tag": b"ID3\4\0\0\0\0\0\n" + bytes(10) + random.Random(1).randbytes(100_000),
}


@pytest.mark.parametrize("kind", NOT_AUDIO)
def test_what_is_not_audio_is_refused(kind):
    with pytest.raises(UnsupportedAudioError, match="not audio in a known format"):
        read_audio(NOT_AUDIO[kind], target_rate=16000)


def test_no_bytes_are_empty():
    with pytest.raises(EmptyAudioError, match="0 bytes"):
        read_audio(b"", target_rate=16000)


@settings(max_examples=150, deadline=None)
@given(
    head=st.sampled_from(
        [
            b"",
            b"ID3\4\0\0\0\0\0\0",
            b"fLaC",
            b"OggS",
            b"RIFF\0\0\0\0WAVE",
            b"FORM\0\0\0\0AIFF",
            b"#!AMR\n",
            b"\x1aE\xdf\xa3",
            b"\0\0\0\x18ftypM4A ",
            b"\xff\xfb\x90\x00",
            b"\xff\xf1\x50\x80",
            b"caff\0\1",
        ]
    ),
    body=st.binary(max_size=2000),
)
def test_random_bytes_are_read_or_refused_by_type(head, body):
    try:
        audio = read_audio(head + body, target_rate=16000)
    except AudioError:
        return
    assert np.isfinite(audio.samples.numpy()).all()
