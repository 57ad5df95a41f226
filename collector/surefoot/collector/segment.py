"""The segment file: what was received, byte for byte, with checksums. The contract between collector and writer.

Layout, all numbers little-endian:

    header   magic "SUREFOOT" | u16 version | 16 bytes receiver UUID | u64 sequence | u64 created unix nano | u32 crc32
    record   u32 length of what follows after the crc | u32 crc32 of it |
             u8 signal | u8 encoding | u64 received unix nano | u16 length of source | source | body

Rule: a reader never trusts a length without its checksum. A record cut short at the end of the file is a torn tail (the
process died while writing; nothing in it was acknowledged). A record whose checksum is wrong while readable records
follow is damage in the middle; it is reported with its position and the rest is kept.
"""

from __future__ import annotations

import enum
import struct
import uuid
import zlib
from dataclasses import dataclass
from pathlib import Path

from surefoot.collector.errors import SegmentError

MAGIC = b"SUREFOOT"
VERSION = 1
_HEADER = struct.Struct("<8sH16sQQ")
_CRC = struct.Struct("<I")
_FRAME = struct.Struct("<II")
_RECORD = struct.Struct("<BBQH")
HEADER_BYTES = _HEADER.size + _CRC.size


class Signal(enum.IntEnum):
    """Which OTLP service a request came to."""

    TRACES = 1
    LOGS = 2
    METRICS = 3


class Encoding(enum.IntEnum):
    """How a record's body is encoded."""

    PROTOBUF = 1


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
    sound_bytes: int  # length of the file up to the end of the last readable record


def encode_header(receiver_id: uuid.UUID, sequence: int, created_unix_nano: int) -> bytes:
    """The first bytes of a segment."""
    head = _HEADER.pack(MAGIC, VERSION, receiver_id.bytes, sequence, created_unix_nano)
    return head + _CRC.pack(zlib.crc32(head))


def encode_record(record: Record) -> bytes:
    """One record as it stands in the file. The source is cut to 65,535 bytes."""
    source = record.source.encode()[:0xFFFF]
    head = _RECORD.pack(record.signal, record.encoding, record.received_unix_nano, len(source))
    crc = zlib.crc32(record.body, zlib.crc32(source, zlib.crc32(head)))
    return b"".join((_FRAME.pack(len(head) + len(source) + len(record.body), crc), head, source, record.body))


def read_segment(path: Path) -> Segment:
    """Read a segment whole. Raises SegmentError if the header is unreadable; damage after it is reported instead."""
    data = path.read_bytes()
    receiver_id, sequence, created = _decode_header(data, path)
    records: list[Record] = []
    damage: list[Damage] = []
    position = sound = HEADER_BYTES
    while position < len(data):
        found = _decode_record(data, position)
        if isinstance(found, str):
            following = _next_record(data, position + 1)
            end = len(data) if following is None else following
            damage.append(Damage(position, end - position, following is None, found))
            position = end
            continue
        record, position = found
        records.append(record)
        sound = position
    return Segment(receiver_id, sequence, created, records, damage, sound)


def read_header(path: Path) -> tuple[str, int]:
    """Receiver id and sequence of a segment. Raises SegmentError."""
    with path.open("rb") as file:
        receiver_id, sequence, _ = _decode_header(file.read(HEADER_BYTES), path)
    return receiver_id, sequence


def _decode_header(data: bytes, path: Path) -> tuple[str, int, int]:
    if len(data) < HEADER_BYTES or not data.startswith(MAGIC):
        raise SegmentError(f"{path} is not a Surefoot segment, or ends before its header does.")
    magic, version, receiver, sequence, created = _HEADER.unpack_from(data)
    del magic
    if version != VERSION:
        raise SegmentError(
            f"{path} has segment version {version}; this program reads {VERSION}. Use the newer program."
        )
    (crc,) = _CRC.unpack_from(data, _HEADER.size)
    if crc != zlib.crc32(data[: _HEADER.size]):
        raise SegmentError(f"The header of {path} does not match its checksum.")
    return str(uuid.UUID(bytes=receiver)), sequence, created


def _decode_record(data: bytes, position: int) -> tuple[Record, int] | str:
    """The record at ``position`` and the position after it, or why there is none."""
    if position + _FRAME.size > len(data):
        return "the file ends inside a record's frame"
    length, crc = _FRAME.unpack_from(data, position)
    start = position + _FRAME.size
    end = start + length
    if end > len(data):
        return "the file ends inside a record"
    if length < _RECORD.size:
        return "a record is shorter than its fixed part"
    if zlib.crc32(memoryview(data)[start:end]) != crc:
        return "a record does not match its checksum"
    signal, encoding, received, source_length = _RECORD.unpack_from(data, start)
    body = start + _RECORD.size + source_length
    try:
        record = Record(
            Signal(signal),
            Encoding(encoding),
            received,
            data[start + _RECORD.size : body].decode(errors="replace"),
            data[body:end],
        )
    except ValueError as error:
        return f"a record has an unknown kind: {error}"
    return record, end


def _next_record(data: bytes, position: int) -> int | None:
    """Where the next sound record starts at or after ``position``, or None.

    A candidate needs known kind bytes before its checksum is tried, so that a damaged stretch of many megabytes is
    scanned in one pass instead of summing the rest of the file at every byte.
    """
    last = len(data) - _FRAME.size - _RECORD.size
    while position <= last:
        position = data.find(bytes((Encoding.PROTOBUF,)), position + _FRAME.size + 1) - _FRAME.size - 1
        if position < 0 or position > last:
            return None
        if data[position + _FRAME.size] in _SIGNALS and not isinstance(_decode_record(data, position), str):
            return position
        position += 1
    return None


_SIGNALS = frozenset(int(signal) for signal in Signal)
