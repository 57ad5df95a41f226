from __future__ import annotations

import itertools
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.collector.errors import SegmentError
from surefoot.collector.segment import (
    FRAME_BYTES,
    HEADER_BYTES,
    Encoding,
    Record,
    Signal,
    encode_record,
    read_segment,
)
from surefoot.collector.testing import write_segment

RECEIVER = uuid.UUID("6f1cbb2e-2d4e-4a8e-9c1b-5a4f0e3d2c1b")


def record(body: bytes, signal: Signal = Signal.TRACES, source: str = "grpc") -> Record:
    return Record(signal, Encoding.PROTOBUF, 1_800_000_000_000_000_000, source, body)


def length(of: Record) -> int:
    return FRAME_BYTES + len(encode_record(of).data)


records = st.builds(
    Record,
    st.sampled_from(Signal),
    st.just(Encoding.PROTOBUF),
    st.integers(0, 2**64 - 1),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.binary(max_size=200),
)
numbers = itertools.count()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("segments")


def written(folder: Path, kept: list[Record]) -> Path:
    path = folder / f"{next(numbers)}.segment"
    write_segment(path, kept, RECEIVER, sequence=7)
    return path


@given(kept=st.lists(records, max_size=8))
def test_what_was_written_is_read(folder: Path, kept: list[Record]) -> None:
    segment = read_segment(written(folder, kept))
    assert (segment.receiver_id, segment.sequence) == (str(RECEIVER), 7)
    assert segment.created_unix_nano > 1_700_000_000_000_000_000
    assert segment.records == kept
    assert segment.damage == []


@given(kept=st.lists(records, min_size=1, max_size=6), data=st.data())
def test_a_file_cut_anywhere_loses_only_the_record_that_was_cut(
    folder: Path, kept: list[Record], data: st.DataObject
) -> None:
    path = written(folder, kept)
    whole = path.read_bytes()
    end = data.draw(st.integers(HEADER_BYTES, len(whole)))
    path.write_bytes(whole[:end])
    ends = list(itertools.accumulate(map(length, kept), initial=HEADER_BYTES))
    sound = sum(1 for position in ends[1:] if position <= end)
    segment = read_segment(path)
    assert segment.records == kept[:sound]
    torn = [] if ends[sound] == end else [(ends[sound], end - ends[sound], True)]
    assert [(damage.offset, damage.length, damage.torn) for damage in segment.damage] == torn


@given(kept=st.lists(records, min_size=1, max_size=6), data=st.data())
def test_one_wrong_byte_costs_one_record_and_is_located(folder: Path, kept: list[Record], data: st.DataObject) -> None:
    path = written(folder, kept)
    whole = bytearray(path.read_bytes())
    place = data.draw(st.integers(HEADER_BYTES, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(whole)
    ends = list(itertools.accumulate(map(length, kept), initial=HEADER_BYTES))
    hit = next(number for number in range(len(kept)) if ends[number] <= place < ends[number + 1])
    segment = read_segment(path)
    assert segment.records == kept[:hit] + kept[hit + 1 :]
    assert [(damage.offset, damage.length, damage.torn) for damage in segment.damage] == [
        (ends[hit], length(kept[hit]), False)
    ]


@given(kept=st.lists(records, max_size=4), junk=st.binary(min_size=FRAME_BYTES, max_size=300))
def test_junk_at_the_end_is_reported_and_everything_before_it_is_read(
    folder: Path, kept: list[Record], junk: bytes
) -> None:
    path = written(folder, kept)
    with path.open("ab") as file:
        file.write(junk)
    segment = read_segment(path)
    assert segment.records == kept
    assert [damage.length for damage in segment.damage] == [len(junk)]
    assert segment.damage[0].torn == (not any(junk))


def test_a_record_that_a_sender_hides_in_a_body_is_never_read_as_one(tmp_path: Path) -> None:
    # The forger knows the format, but not this segment's receiver id: here even the sequence is the same.
    forged = tmp_path / "forged.segment"
    write_segment(forged, [record(b"forged")], uuid.uuid4(), sequence=7)
    carrier = record(b"text " + forged.read_bytes()[HEADER_BYTES:] * 3)
    path = tmp_path / "1.segment"
    write_segment(path, [carrier, record(b"after")], RECEIVER, sequence=7)
    whole = bytearray(path.read_bytes())
    whole[HEADER_BYTES + 4] ^= 0xFF  # the carrier's length
    path.write_bytes(whole)
    segment = read_segment(path)
    assert segment.records == [record(b"after")]
    assert [(damage.offset, damage.length) for damage in segment.damage] == [(HEADER_BYTES, length(carrier))]


def test_a_kind_from_the_future_is_damage_and_not_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "1.segment"
    write_segment(path, [record(b"new"), record(b"known")], RECEIVER)
    whole = path.read_bytes()
    payload = encode_record(record(b"new")).data
    newer = bytes((9,)) + payload[1:]
    path.write_bytes(whole.replace(payload, newer))
    segment = read_segment(path)
    assert segment.records == [record(b"known")]
    assert "checksum" in segment.damage[0].reason  # nothing is believed before its checksum is


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[: HEADER_BYTES - 1], "ends before its header"),
        (lambda data: b"PAR1" + data[4:], "not a Surefoot segment"),
        (lambda data: data[:8] + b"\x63\x00" + data[10:], "version 99"),
        (lambda data: data[:20] + b"\x00\x00" + data[22:], "does not match its checksum"),
        (lambda data: b"", "not a Surefoot segment"),
    ],
)
def test_an_unreadable_header_is_said_and_names_the_file(tmp_path: Path, change, message: str) -> None:  # type: ignore[no-untyped-def]  # a lambda over bytes
    path = tmp_path / "1.segment"
    write_segment(path, [record(b"body")], RECEIVER)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(SegmentError, match=message) as caught:
        read_segment(path)
    assert str(path) in str(caught.value)


def test_a_long_source_is_cut_and_the_body_stays_whole(tmp_path: Path) -> None:
    path = tmp_path / "1.segment"
    write_segment(path, [record(b"body", source="é" * 40_000)], RECEIVER)
    (read,) = read_segment(path).records
    assert read.body == b"body"
    assert read.source.startswith("é" * 32_767)
