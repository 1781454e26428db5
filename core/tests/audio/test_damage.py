"""Damaged files give what can be saved, and say that something is missing."""

import random

import pytest

from oasr.audio import read_audio
from oasr.errors import AudioError

SECONDS = 8.0
FAST = {"movflags": "faststart"}
STREAMS = {
    "m4a": ("aac", "ipod", 44100, FAST),
    "mp4": ("aac", "mp4", 44100, FAST),
    "alac": ("alac", "ipod", 44100, FAST),
    "aac": ("aac", "adts", 44100, {}),
    "mp3": ("libmp3lame", "mp3", 44100, {}),
    "flac": ("flac", "flac", 44100, {}),
    "opus": ("libopus", "ogg", 48000, {}),
    "amr": ("libopencore_amrnb", "amr", 8000, {}),
    "ts": ("aac", "mpegts", 48000, {}),
}


@pytest.fixture
def recording(encode):
    def make(name):
        codec, container, rate, options = STREAMS[name]
        return encode(codec, container, rate, seconds=SECONDS, options=options)

    return make


@pytest.mark.parametrize("name", [*STREAMS, "webm"])
def test_a_file_cut_at_seventy_percent_gives_what_came_before(monkeypatch, recording, name):
    monkeypatch.setitem(STREAMS, "webm", ("libopus", "webm", 48000, {}))
    data = recording(name)
    audio = read_audio(data[: len(data) * 7 // 10], target_rate=16000)
    assert 0.6 * SECONDS < audio.duration < 0.75 * SECONDS
    assert len(audio.notes) <= 1
    if name not in ("opus", "ts"):  # a cut between two pages or packets of these leaves a valid stream
        assert audio.truncated


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", STREAMS)
def test_flipped_bytes_cost_less_than_half(recording, name, seed):
    data = bytearray(recording(name))
    damage = random.Random(seed)
    for _ in range(40):
        data[damage.randrange(len(data) * 45 // 100, len(data) * 55 // 100)] ^= damage.randrange(1, 256)
    audio = read_audio(bytes(data), target_rate=16000)
    assert 0.6 * SECONDS < audio.duration < 1.05 * SECONDS
    assert len(audio.notes) <= 1


@pytest.mark.parametrize("name", ["mp3", "aac", "flac", "opus", "amr", "ts"])
def test_junk_between_frames_is_stepped_over(recording, name):
    data = recording(name)
    middle = len(data) // 2
    audio = read_audio(data[:middle] + random.Random(3).randbytes(700) + data[middle:], target_rate=16000)
    assert 0.85 * SECONDS < audio.duration < 1.1 * SECONDS


def tagged(body):
    """ID3v2.3 with one frame."""
    frame = b"APIC" + len(body).to_bytes(4, "big") + b"\0\0" + body
    size = len(frame)
    return b"ID3\3\0\0" + bytes([size >> 21 & 127, size >> 14 & 127, size >> 7 & 127, size & 127]) + frame


def ape(items):
    size, footer = (len(items) + 32).to_bytes(4, "little"), (1).to_bytes(4, "little")
    mark = b"APETAGEX" + (2000).to_bytes(4, "little") + size + footer
    return (
        mark
        + (0xA0000000).to_bytes(4, "little")
        + bytes(8)
        + items
        + mark
        + (0x80000000).to_bytes(4, "little")
        + bytes(8)
    )


PICTURE = b"\0image/jpeg\0\3\0\xff\xd8" + random.Random(4).randbytes(128 * 1024)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (tagged(PICTURE), b""),
        (tagged(PICTURE) + tagged(PICTURE), b""),
        (bytes(100_000), b""),
        (random.Random(5).randbytes(5000), b""),
        (b"", b"TAG" + bytes(125)),
        (b"", ape(b"\xff\xfb\x90\x64" * 500) + b"TAG" + bytes(125)),
    ],
    ids=["picture", "two pictures", "zeros", "noise", "id3v1", "ape"],
)
def test_tags_and_padding_around_an_mp3_are_not_heard(recording, before, after):
    plain = recording("mp3")
    frames = plain[plain.index(b"\xff\xfb") :]
    audio = read_audio(before + frames + after, target_rate=16000)
    assert audio.duration == pytest.approx(SECONDS, abs=0.1)
    assert not audio.truncated


def test_mp3_files_joined_end_to_end_are_read_as_one(recording):
    data = recording("mp3")
    audio = read_audio(data + data, target_rate=16000)
    assert audio.duration == pytest.approx(2 * SECONDS, abs=0.1)
    assert not audio.truncated


def test_a_change_of_rate_and_channels_in_midstream_is_followed(encode, snr):
    first = encode("libmp3lame", "mp3", 44100, seconds=4.0, layout="stereo")
    second = encode("libmp3lame", "mp3", 24000, seconds=4.0)
    audio = read_audio(first + second, target_rate=16000)
    assert audio.duration == pytest.approx(8.0, abs=0.2)
    assert snr(audio.samples[:56_000], 16000) > 40
    assert snr(audio.samples[-56_000:], 16000) > 40


@pytest.mark.parametrize("name", [*STREAMS])
def test_any_damage_is_read_or_refused_by_type(recording, name):
    data = recording(name)
    damage = random.Random(6)
    for _ in range(25):
        broken = bytearray(data[: damage.randrange(1, min(len(data), 30_000))])
        for _ in range(damage.choice([1, 5, 50])):
            broken[damage.randrange(min(len(broken), damage.choice([100, 1000, 10**6])))] = damage.randrange(256)
        try:
            read_audio(bytes(broken), target_rate=16000)
        except AudioError:
            continue
