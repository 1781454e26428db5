"""RIFF/WAVE, read with the sizes that are present rather than the sizes that are claimed.

Recorders write 14, 16, 18 and 40-byte `fmt ` chunks, put any chunk anywhere, forget padding and leave sizes unset
when they stream or crash. Layout: Microsoft, "Multiple Channel Audio Data and WAVE Files"; RF64: EBU Tech 3306.
"""

import struct
from dataclasses import dataclass

from oasr.audio.bytestream import ByteStream
from oasr.audio.pcm import ENCODINGS, downmix
from oasr.audio.stream import Blocks, Findings
from oasr.audio.waveform import MAX_SAMPLE_RATE
from oasr.errors import UnsupportedAudioError

_PCM, _FLOAT, _ALAW, _MULAW, _EXTENSIBLE = 1, 3, 6, 7, 0xFFFE
_TAGS = {
    _PCM: {8: "u8", 16: "s16le", 24: "s24le", 32: "s32le", 64: "s64le"},
    _FLOAT: {32: "f32le", 64: "f64le"},
    _ALAW: {8: "alaw"},
    _MULAW: {8: "mulaw"},
}
_BLOCK_SAMPLES = 1 << 18
_MAX_FORMAT_BYTES = 1 << 16
_MAX_CHUNKS = 10_000


class OtherCodecError(Exception):
    """The WAV holds a codec of its own (ADPCM, MP3, ...): libav's matter, not a failure."""


@dataclass(frozen=True)
class _Format:
    encoding: str
    channels: int
    rate: int


def is_wav(head: bytes) -> bool:
    """Whether the first 12 bytes open a file for `read_wav`. Big-endian RIFX is left to libav."""
    return head[:4] in (b"RIFF", b"RF64", b"BW64") and head[8:12] == b"WAVE"


def read_wav(stream: ByteStream, findings: Findings) -> Blocks:
    """Blocks of all frames.

    Raises `UnsupportedAudioError` naming the field and its value, `OtherCodecError` for a compressed WAV.
    """
    format_chunk, data_start, declared = _find_chunks(stream)
    layout = _parse_format(stream.name, format_chunk)
    width, decode = ENCODINGS[layout.encoding]
    frame_bytes = width * layout.channels
    remaining = _usable_bytes(stream, data_start, declared, findings)
    if remaining % frame_bytes:
        findings.note(
            f"the last {remaining % frame_bytes} bytes are less than a frame of {frame_bytes} and were dropped"
        )
        remaining -= remaining % frame_bytes
    stream.seek(data_start)
    block_bytes = max(1, _BLOCK_SAMPLES // layout.channels) * frame_bytes
    while remaining:
        data = stream.read(min(block_bytes, remaining))
        data = data[: len(data) // frame_bytes * frame_bytes]
        if not data:  # the file shrank while it was read
            findings.cut(f"the file ended {remaining} bytes early while it was read")
            break
        remaining -= len(data)
        yield downmix(decode(data).reshape(-1, layout.channels)), layout.rate


def _find_chunks(stream: ByteStream) -> tuple[bytes, int, int]:
    """The `fmt ` chunk, where the first `data` chunk's samples start, and how many bytes that chunk declares."""
    format_chunk: bytes | None = None
    data: tuple[int, int] | None = None
    long_size: int | None = None
    position = 12
    for _ in range(_MAX_CHUNKS):
        if format_chunk is not None and data is not None:
            return format_chunk, *data
        stream.seek(position)
        header = stream.read(8)
        if len(header) < 8:
            missing = "fmt " if format_chunk is None else "data"
            raise UnsupportedAudioError(stream.name, f"WAV without a '{missing}' chunk in its {stream.size} bytes")
        size = struct.unpack_from("<I", header, 4)[0]
        position += 8
        if header[:4] == b"ds64":  # RF64: 64-bit sizes of the file and of the data
            sizes = stream.read(16)
            long_size = struct.unpack_from("<Q", sizes, 8)[0] if len(sizes) == 16 else None
        elif header[:4] == b"fmt ":
            format_chunk = stream.read(min(size, _MAX_FORMAT_BYTES))
        elif header[:4] == b"data" and data is None:
            size = long_size if size == 0xFFFFFFFF and long_size is not None else size
            data = position, size
        position += size + _padding(stream, position + size, size)
    raise UnsupportedAudioError(stream.name, f"WAV with {_MAX_CHUNKS} chunks and no samples among them")


def _padding(stream: ByteStream, end: int, size: int) -> int:
    """Chunks are padded to even sizes, except by writers that forget: then the next chunk's name shows it."""
    if size % 2 == 0:
        return 0
    stream.seek(end)
    return 0 if stream.read(4) in (b"fmt ", b"data") else 1


def _parse_format(name: str, chunk: bytes) -> _Format:
    if len(chunk) < 14:
        raise UnsupportedAudioError(name, f"WAV 'fmt ' chunk has {len(chunk)} bytes; at least 14 are needed")
    tag, channels, rate, _, frame_bytes = struct.unpack_from("<HHIIH", chunk)
    if channels == 0:
        raise UnsupportedAudioError(name, "WAV field 'channels' is 0")
    if not 1 <= rate <= MAX_SAMPLE_RATE:
        raise UnsupportedAudioError(name, f"WAV field 'sample rate' is {rate}; 1 to {MAX_SAMPLE_RATE} Hz are read")
    bits = struct.unpack_from("<H", chunk, 14)[0] if len(chunk) >= 16 else frame_bytes * 8 // channels
    if tag == _EXTENSIBLE:
        # Size of the extension, valid bits, speaker mask, GUID whose first two bytes are the tag. Fewer valid bits
        # than the container's are left-justified, so the container's full scale holds.
        if len(chunk) < 26:
            raise UnsupportedAudioError(
                name, f"WAV 'fmt ' chunk of {len(chunk)} bytes is extensible but ends before field 'sub-format'"
            )
        tag = struct.unpack_from("<H", chunk, 24)[0]
    if tag not in _TAGS:
        raise OtherCodecError(f"WAV field 'format tag' is 0x{tag:04X}")
    return _Format(_encoding(name, tag, bits, frame_bytes, channels), channels, rate)


def _encoding(name: str, tag: int, bits: int, frame_bytes: int, channels: int) -> str:
    if tag in (_ALAW, _MULAW):
        return _TAGS[tag][8]  # G.711 has one width; writers put 0, 8 or 16 in the field
    width = (bits + 7) // 8 * 8
    if tag == _PCM and frame_bytes > width // 8 * channels and frame_bytes % channels == 0:
        width = frame_bytes // channels * 8  # 20 or 24 bits in a wider container, left-justified
    encoding = _TAGS[tag].get(width)
    if encoding is None:
        raise UnsupportedAudioError(
            name, f"WAV field 'bits per sample' is {bits}; format tag {tag} is read with {sorted(_TAGS[tag])}"
        )
    return encoding


def _usable_bytes(stream: ByteStream, start: int, declared: int, findings: Findings) -> int:
    """How many bytes from `start` are samples: what is declared, within reason and within what is present."""
    present = stream.size - start
    stream.seek(4)
    finalised = struct.unpack("<I", stream.read(4))[0] + 8 == stream.size
    if declared == 0 and not finalised:
        if present:
            findings.note("the WAV header declares no length, as of a live recording; read to the end")
        return present
    if declared <= present:
        if declared < present // 2 and not _chunk_follows(stream, start + declared):
            findings.note(f"the WAV header declares {declared} bytes of samples, {present} are present and were read")
            return present
        return declared
    if _unset(declared):
        findings.note("the WAV header declares no length, as of a live recording; read to the end")
    else:
        findings.cut(f"the WAV header declares {declared} bytes of samples, only {present} are present")
    return present


def _unset(declared: int) -> bool:
    """Sizes that writers to a pipe leave: all ones, or 2 GiB less a little (sox, arecord)."""
    return declared >= 0xFFFF0000 or 0x7FFF0000 <= declared <= 0x80000000


def _chunk_follows(stream: ByteStream, end: int) -> bool:
    stream.seek(end + end % 2)
    name = stream.read(4)
    return len(name) == 4 and all(0x20 <= byte < 0x7F for byte in name)
