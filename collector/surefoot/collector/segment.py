"""The segment file: what was received, byte for byte, with checksums. The contract between collector and writer.

Layout, all numbers little-endian:

    header   magic "SUREFOOT" | u16 version | 16 bytes receiver UUID | u64 sequence | u64 created unix nano | u32 crc32
    record   u32 mark | u32 length of the payload | u32 crc32 of the payload | u32 crc32 of the twelve bytes before |
             payload: u8 signal | u8 encoding | u64 received unix nano | u16 length of source | source | body

The mark is the header's checksum, which depends on the receiver's UUID: it lets a reader find the next record after a
damaged stretch, and a sender that puts a forged record into a body cannot guess it.

Rule: a length is trusted only under its own checksum. So a sound frame whose payload goes beyond the end of the file is
a torn tail and nothing else (the process died while writing; nothing in it was acknowledged), while wrong bytes
anywhere are damage: reported with their position, kept for a person to look at, and the rest is read.
"""

from __future__ import annotations

import enum
import os
import struct
import uuid
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from surefoot.collector.errors import SegmentError

MAGIC = b"SUREFOOT"
VERSION = 1
_HEADER = struct.Struct("<8sH16sQQ")
_CRC = struct.Struct("<I")
_FRAME = struct.Struct("<4sII")
_PAYLOAD = struct.Struct("<BBQH")
HEADER_BYTES = _HEADER.size + _CRC.size
FRAME_BYTES = _FRAME.size + _CRC.size


class Signal(enum.IntEnum):
    """Which OTLP service a request came to."""

    TRACES = 1
    LOGS = 2
    METRICS = 3


class Encoding(enum.IntEnum):
    """How a record's body is encoded. JSON is OTLP/JSON in the one form that ``json_typed`` writes."""

    PROTOBUF = 1
    JSON = 2


@dataclass(frozen=True, slots=True)
class Record:
    """One acknowledged request: ``body`` is an ``Export*ServiceRequest``."""

    signal: Signal
    encoding: Encoding
    received_unix_nano: int
    source: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Damage:
    """A stretch of a segment that could not be read. ``torn`` means that the file ends inside a record."""

    offset: int
    length: int
    torn: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Segment:
    """Everything that could be read from one file."""

    receiver_id: str
    sequence: int
    created_unix_nano: int
    records: list[Record]
    damage: list[Damage]


class Payload(NamedTuple):
    """A record as it stands in the file, without its frame."""

    crc: int
    data: bytes


def encode_record(record: Record) -> Payload:
    """Encode a record, apart from the file that it goes to. The source is cut to 65,535 bytes."""
    source = record.source.encode()[:0xFFFF]
    head = _PAYLOAD.pack(record.signal, record.encoding, record.received_unix_nano, len(source))
    data = b"".join((head, source, record.body))
    return Payload(zlib.crc32(data), data)


class SegmentWriter:
    """A segment file being written. ``size`` is its length up to the last synced record.

    Every method may raise OSError. After one, :meth:`cut` and :meth:`close`: what a failed write left behind, and
    which pages a failed sync dropped, is unknown, so nothing may be appended any more.
    """

    def __init__(self, path: Path, receiver_id: uuid.UUID, sequence: int, created_unix_nano: int) -> None:
        head = _HEADER.pack(MAGIC, VERSION, receiver_id.bytes, sequence, created_unix_nano)
        self._mark = _CRC.pack(zlib.crc32(head))
        self.path = path
        self.size = HEADER_BYTES
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            _write_all(self._descriptor, head + self._mark)
        except OSError:
            os.close(self._descriptor)
            path.unlink()
            raise

    def append(self, payloads: Sequence[Payload]) -> int:
        """Write records and sync once. They survive a power loss when this returns; returns the bytes written."""
        parts: list[bytes] = []
        for payload in payloads:
            frame = _FRAME.pack(self._mark, len(payload.data), payload.crc)
            parts += (frame, _CRC.pack(zlib.crc32(frame)), payload.data)
        data = b"".join(parts)
        _write_all(self._descriptor, data)
        os.fdatasync(self._descriptor)
        self.size += len(data)
        return len(data)

    def cut(self) -> None:
        """Remove what a failed append left behind the last synced record."""
        os.ftruncate(self._descriptor, self.size)
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file. Everything in it that counts is synced already."""
        os.close(self._descriptor)


def read_segment(path: Path) -> Segment:
    """Read a segment whole. Raises SegmentError if the header is unreadable; damage after it is reported instead."""
    data = path.read_bytes()
    receiver_id, sequence, created = _read_header(data, path)
    mark = data[_HEADER.size : HEADER_BYTES]
    records: list[Record] = []
    damage: list[Damage] = []
    position = HEADER_BYTES
    while position < len(data):
        found = _read_record(data, position, mark)
        if isinstance(found, Damage):
            damage.append(found)
            position += found.length
        else:
            records.append(found[0])
            position = found[1]
    return Segment(receiver_id, sequence, created, records, damage)


def _read_header(data: bytes, path: Path) -> tuple[str, int, int]:
    if len(data) < HEADER_BYTES or not data.startswith(MAGIC):
        raise SegmentError(f"{path} is not a Surefoot segment, or ends before its header does.")
    _, version, receiver, sequence, created = _HEADER.unpack_from(data)
    if version != VERSION:
        raise SegmentError(
            f"{path} has segment version {version}; this program reads {VERSION}. Use the program that wrote it."
        )
    (crc,) = _CRC.unpack_from(data, _HEADER.size)
    if crc != zlib.crc32(data[: _HEADER.size]):
        raise SegmentError(f"The header of {path} does not match its checksum.")
    return str(uuid.UUID(bytes=receiver)), sequence, created


def _read_record(data: bytes, position: int, mark: bytes) -> tuple[Record, int] | Damage:
    """The record at ``position`` and the position after it, or the damaged stretch that is there."""
    rest = len(data) - position
    if rest < FRAME_BYTES:
        return Damage(position, rest, torn=True, reason="the file ends inside a record's frame")
    if not _is_frame(data, position, mark):
        following = _next_frame(data, position + 1, mark)
        if following is None and not any(memoryview(data)[position:]):
            # File systems record a length before the data that it counts: a power loss shows as zeros.
            return Damage(position, rest, torn=True, reason="the file ends in zeros")
        length = rest if following is None else following - position
        return Damage(position, length, torn=False, reason="a record's frame does not match its checksum")
    _, length, crc = _FRAME.unpack_from(data, position)
    start = position + FRAME_BYTES
    end = start + length
    if end > len(data):
        return Damage(position, rest, torn=True, reason="the file ends inside a record")
    if zlib.crc32(memoryview(data)[start:end]) != crc:
        return Damage(position, end - position, torn=False, reason="a record does not match its checksum")
    record = _decode_payload(data, start, end)
    if record is None:
        return Damage(position, end - position, torn=False, reason="a record is of an unknown kind")
    return record, end


def _decode_payload(data: bytes, start: int, end: int) -> Record | None:
    """A record of a kind that this program knows, or None; the bytes have matched their checksum."""
    if end - start < _PAYLOAD.size:
        return None
    signal, encoding, received, source_length = _PAYLOAD.unpack_from(data, start)
    source = start + _PAYLOAD.size
    body = source + source_length
    if signal not in _SIGNALS or encoding not in _ENCODINGS or body > end:
        return None
    text = data[source:body].decode(errors="replace")
    return Record(Signal(signal), Encoding(encoding), received, text, data[body:end])


def _is_frame(data: bytes, position: int, mark: bytes) -> bool:
    frame = data[position : position + FRAME_BYTES]
    return (
        len(frame) == FRAME_BYTES
        and frame.startswith(mark)
        and _CRC.unpack_from(frame, _FRAME.size)[0] == zlib.crc32(frame[: _FRAME.size])
    )


def _next_frame(data: bytes, position: int, mark: bytes) -> int | None:
    position = data.find(mark, position)
    while position >= 0:
        if _is_frame(data, position, mark):
            return position
        position = data.find(mark, position + 1)
    return None


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


_SIGNALS = frozenset(int(signal) for signal in Signal)
_ENCODINGS = frozenset(int(encoding) for encoding in Encoding)
