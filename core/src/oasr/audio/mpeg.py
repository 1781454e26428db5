"""Telling MPEG audio (MP3, ADTS AAC) from bytes that only resemble it.

An MPEG frame starts with eleven set bits, so noise and headerless samples contain "frames" by chance, and libav
will find them. Real streams chain: each header's length leads to the next header.
"""

import os

import numpy as np

from oasr.audio.bytestream import ByteStream

TAGS = (b"ID3", b"TAG", b"APE", b"LYR")
"""What ID3v2, ID3v1, APE and Lyrics3 tags start with, wherever in the file they stand."""

_CHAIN = 3
_SEARCHED = 1 << 20
_MAX_TAGS = 64
_V1 = (
    (),
    (0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
)
_V2_LAYER1 = (0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256)
_V2_OTHER = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_V1_RATES = (44100, 48000, 32000)


def is_mpeg_audio(stream: ByteStream) -> bool:
    """Whether three chained frames begin in the first MiB, or fewer that end exactly where it ends."""
    data = _after_tags(stream, _SEARCHED)
    packed = np.frombuffer(data, np.uint8)
    candidates = np.flatnonzero((packed[:-1] == 0xFF) & (packed[1:] >= 0xE0))
    return any(_chains(data, int(start)) for start in candidates)


def states_length(stream: ByteStream) -> bool:
    """Whether the first frame of an MP3 holds a frame count (LAME, Xing or Fraunhofer header)."""
    head = _after_tags(stream, 4096)
    return any(name in head for name in (b"Xing", b"Info", b"VBRI"))


def trailing_tags(stream: ByteStream) -> int:
    """How many bytes at the end are ID3v1 and APE tags: cover art in them can pass for frames."""
    before = stream.tell()
    tags = 128 if _at_end(stream, 128).startswith(b"TAG") else 0
    footer = _at_end(stream, tags + 32)
    if footer.startswith(b"APETAGEX"):
        size = int.from_bytes(footer[12:16], "little")  # of the items and this footer
        header = 32 if footer[23] & 0x80 else 0
        tags = min(tags + size + header, stream.size)
    stream.seek(before)
    return tags


def _at_end(stream: ByteStream, distance: int) -> bytes:
    if distance > stream.size:
        return b""
    stream.seek(-distance, os.SEEK_END)
    return stream.read(32)


def _after_tags(stream: ByteStream, count: int) -> bytes:
    """`count` bytes after ID3v2 tags, whose size is four times seven bits. Leaves the stream where libav has it."""
    before = stream.tell()
    position = 0
    stream.seek(0)
    for _ in range(_MAX_TAGS):
        tag = stream.read(10)
        if tag[:3] != b"ID3" or len(tag) < 10:
            break
        position += 10 + (tag[6] << 21 | tag[7] << 14 | tag[8] << 7 | tag[9])
        stream.seek(position)
    stream.seek(position)
    data = stream.read(count)
    stream.seek(before)
    return data


def _chains(data: bytes, start: int) -> bool:
    first = start
    for _ in range(_CHAIN):
        length = _frame_length(data[start : start + 6])
        if not length or not _same_stream(data, first, start):
            return False
        start += length
        if start == len(data):
            return True
    return True


def _same_stream(data: bytes, first: int, start: int) -> bool:
    """Version, layer and sampling rate do not change within a stream."""
    return data[first + 1] | 1 == data[start + 1] | 1 and data[first + 2] & 0x0C == data[start + 2] & 0x0C


def _frame_length(header: bytes) -> int:
    """Bytes in the frame that `header` (6 bytes) opens, 0 when it opens none. ISO 11172-3, 13818-3 and 13818-7."""
    if len(header) < 6 or header[0] != 0xFF or header[1] < 0xE0:
        return 0
    version, layer = header[1] >> 3 & 3, 4 - (header[1] >> 1 & 3)
    if layer == 4:
        return _adts_length(header)
    bitrate, rate, padding = header[2] >> 4, header[2] >> 2 & 3, header[2] >> 1 & 1
    if version == 1 or bitrate in (0, 15) or rate == 3:
        return 0
    if version == 3:
        kbps, hertz = _V1[layer][bitrate], _V1_RATES[rate]
    else:
        kbps = (_V2_LAYER1 if layer == 1 else _V2_OTHER)[bitrate]
        hertz = _V1_RATES[rate] // (2 if version == 2 else 4)
    if layer == 1:
        return (12_000 * kbps // hertz + padding) * 4
    samples_over_8 = 72_000 if layer == 3 and version != 3 else 144_000
    return samples_over_8 * kbps // hertz + padding


def _adts_length(header: bytes) -> int:
    if header[1] < 0xF0 or header[2] >> 2 & 15 > 12:
        return 0
    length = (header[3] & 3) << 11 | header[4] << 3 | header[5] >> 5
    return length if length > 7 else 0
