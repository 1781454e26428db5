"""Every container and codec but plain WAV, decoded by libav through PyAV.

Decoding is packet by packet, so that one bad packet costs itself and not the file. libav's log is off by default in
PyAV and stays as the application set it: its level is one per process, and other threads may be using it.
"""

from collections.abc import Generator, Iterator
from typing import Any

import av
import av.error

from oasr.audio.bytestream import ByteStream
from oasr.audio.frames import frame_samples, plain_layout
from oasr.audio.mpeg import TAGS, is_mpeg_audio, states_length, trailing_tags
from oasr.audio.pcm import Float32Array, downmix, is_sound
from oasr.audio.stream import Blocks, Findings
from oasr.audio.waveform import MAX_SAMPLE_RATE
from oasr.errors import AudioError, EmptyAudioError, NoAudioStreamError, UnsupportedAudioError

# Demuxers that need no file but the one given. Playlists (hls, concat, dash) would open what they name: other files
# and addresses. Those that recognise text or headerless samples by guesswork are absent too.
_FORMATS = (
    "aac,ac3,aiff,amr,ape,asf,au,avi,caf,dsf,eac3,flac,flv,matroska,webm,mov,mp4,m4a,3gp,mp3,mpc,mpc8,mpeg,mpegts,"
    "mxf,ogg,oma,rm,tak,tta,voc,w64,wav,wv"
)
_OPTIONS = {"format_whitelist": _FORMATS, "protocol_whitelist": "none"}
# Tags in another encoding than UTF-8 must not stop the reading; PyAV 19 lets them pass by itself.
_METADATA: dict[str, Any] = {} if int(av.__version__.split(".")[0]) >= 19 else {"metadata_errors": "replace"}
# Formats whose header states the duration. Others let libav estimate it from a bit rate.
_STATES_DURATION = {"aiff", "asf", "caf", "flac", "matroska", "mov", "ogg", "w64", "wav"}
_SHORTFALL_SECONDS = 0.5
_SHORTFALL_RATIO = 0.02
_MAX_FAILURES = 10_000
_MAX_TRACKS = 16

# What PyAV raises on damaged input; ValueError and RuntimeError come from its own checks.
_DAMAGE = (av.error.FFmpegError, ValueError, RuntimeError)

# PyAV declares its classes too loosely to help.
_Container = Any
_Track = Any
_Packet = Any


def read_container(stream: ByteStream, findings: Findings) -> Blocks:
    """Blocks of the first audio stream that decodes.

    Raises `UnsupportedAudioError` when the bytes are no known container or no stream's codec is known,
    `NoAudioStreamError` when there is none, `EmptyAudioError` when none gives a sample.
    """
    tried = False
    for attempt in range(_MAX_TRACKS):
        with _open(stream) as container:
            tracks = container.streams.audio
            if not tracks:
                raise NoAudioStreamError(stream.name, f"no audio stream in this {container.format.name} file")
            if attempt == len(tracks):
                break
            track = tracks[attempt]
            if track.codec_context is None:
                continue
            tried = True
            decoded, failed = yield from _decode(container, track)
            if decoded:
                _report_damage(stream, container, track, failed, findings)
                return
    if not tried:
        raise UnsupportedAudioError(stream.name, "its audio codec is unknown to the decoder library")
    raise EmptyAudioError(stream.name, "no samples could be decoded from its audio")


def _open(stream: ByteStream) -> _Container:
    stream.seek(0)
    try:
        container = av.open(stream, options=_OPTIONS, **_METADATA)
    except _DAMAGE as error:
        raise _refusal(stream) from error
    if container.format.name in ("mp3", "aac"):
        if not is_mpeg_audio(stream):
            container.close()
            raise _refusal(stream)
        stream.leave_out_last(trailing_tags(stream))
    return container


def _refusal(stream: ByteStream) -> AudioError:
    stream.seek(0)
    head = stream.read(12)
    if head[4:8] == b"ftyp":
        return AudioError(
            stream.name, "is an MP4 file without a usable index ('moov'): the recording was cut off before its end"
        )
    return UnsupportedAudioError(
        stream.name,
        f"is not audio in a known format (it starts with {head!r}); samples without a header need --encoding and "
        "--rate on the command line, oasr.audio.RawAudio in Python",
    )


def _decode(container: _Container, track: _Track) -> Generator[tuple[Float32Array, int], None, tuple[bool, int]]:
    """Blocks of what decodes; returns whether anything did and how many packets failed."""
    decoded, failed, failed_in_a_row = False, 0, 0
    try:
        plain_layout(track.codec_context)
    except _DAMAGE:
        return False, 1
    for packet in _packets(container, track):
        blocks = _blocks(packet)
        if blocks is None:
            failed += 1
            failed_in_a_row += 1
            if failed_in_a_row == _MAX_FAILURES:
                break
            continue
        failed_in_a_row = 0
        for mono, rate in blocks:
            decoded = True
            yield mono, rate
    return decoded, failed


def _packets(container: _Container, track: _Track) -> Iterator[_Packet | None]:
    """The track's packets, None for each failure to read one, and the empty packet that drains the decoder."""
    failures = 0
    while failures < _MAX_FAILURES:
        try:
            yield from container.demux(track)
            return
        except av.error.FFmpegError:
            failures += 1
            yield None
        except IndexError:  # PyAV, on a packet of a track that appeared after the header: damage or a broadcast
            continue


def _blocks(packet: _Packet | None) -> list[tuple[Float32Array, int]] | None:
    """The packet's mono blocks and their rates, None when it is damaged."""
    if packet is None:
        return None
    try:
        frames = packet.decode()
        blocks = [(downmix(frame_samples(frame)), int(frame.sample_rate)) for frame in frames]
    except av.error.EOFError:
        return []
    except _DAMAGE:
        return [] if bytes(packet)[:3] in TAGS else None
    # Damaged packets can decode to anything, and one NaN would cost the whole file.
    sound = [(mono, rate) for mono, rate in blocks if 1 <= rate <= MAX_SAMPLE_RATE and is_sound(mono)]
    return sound if len(sound) == len(blocks) else None


def _report_damage(stream: ByteStream, container: _Container, track: _Track, failed: int, findings: Findings) -> None:
    """One note, whatever the number of faults."""
    stated = _stated_seconds(stream, container, track)
    short = stated - findings.seconds > max(_SHORTFALL_SECONDS, _SHORTFALL_RATIO * stated)
    if failed:
        findings.cut(f"damaged packets were left out: {failed}; {findings.seconds:.2f} s decoded")
    elif short:
        findings.cut(f"the file states {stated:.2f} s of audio, only {findings.seconds:.2f} s could be decoded")


def _stated_seconds(stream: ByteStream, container: _Container, track: _Track) -> float:
    """What the header says of this track's length, 0 when it says nothing."""
    names = container.format.name.split(",")
    if not (_STATES_DURATION.intersection(names) or ("mp3" in names and states_length(stream))):
        return 0.0
    if track.duration and track.time_base:
        return float(track.duration * track.time_base)
    if container.duration and len(container.streams) == 1:  # else another track may be the long one
        return float(container.duration) / 1e6  # libav counts in microseconds
    return 0.0
