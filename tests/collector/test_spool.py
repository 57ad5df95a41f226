from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from surefoot.collector.errors import SpoolError
from surefoot.collector.segment import HEADER_BYTES, Encoding, Record, Signal, encode_record, read_segment
from surefoot.collector.spool import Spool
from surefoot.collector.testing import write_segment


def record(body: bytes) -> Record:
    return Record(Signal.TRACES, Encoding.PROTOBUF, 1, "grpc", body)


def left_open(spool: Spool, *bodies: bytes) -> Path:
    """A segment as a killed collector leaves it."""
    writer = spool.begin_segment()
    writer.append([encode_record(record(body)) for body in bodies])
    writer.close()
    return writer.path


def sealed(spool: Spool, *bodies: bytes) -> Path:
    path = left_open(spool, *bodies)
    assert spool.seal(path)
    return spool.sealed_folder / path.name


def test_the_receiver_id_stays_and_another_spool_has_another(tmp_path: Path) -> None:
    first = Spool(tmp_path / "a").receiver_id
    assert Spool(tmp_path / "a").receiver_id == first
    assert Spool(tmp_path / "b").receiver_id != first
    assert first.version == 4


def test_a_sequence_number_is_never_used_again(tmp_path: Path) -> None:
    used = []
    for _ in range(3):
        spool = Spool(tmp_path)  # as after a restart
        used += [read_segment(sealed(spool, b"1")).sequence, read_segment(sealed(spool, b"2")).sequence]
        for path in spool.sealed():
            spool.remove(path)
    assert used == [1, 2, 3, 4, 5, 6]


def test_a_lost_identity_makes_a_fresh_receiver_and_not_old_numbers(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    old = read_segment(sealed(spool, b"1"))
    (tmp_path / "receiver.json").unlink()
    new = read_segment(sealed(Spool(tmp_path), b"2"))
    assert old.receiver_id != new.receiver_id
    assert len(Spool(tmp_path).sealed()) == 2  # the same number, yet neither name took the other's place


def test_a_damaged_identity_is_named_with_what_to_do(tmp_path: Path) -> None:
    Spool(tmp_path)
    (tmp_path / "receiver.json").write_bytes(b"")
    with pytest.raises(SpoolError, match=r"receiver\.json is damaged .* Delete it"):
        Spool(tmp_path)


def test_a_folder_that_cannot_be_a_spool_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SpoolError, match=r"Cannot use .* as a spool"):
        Spool(tmp_path / "file" / "spool")


def test_sealed_segments_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for number in range(12):
        sealed(spool, b"%d" % number)
    assert [read_segment(path).records[0].body for path in spool.sealed()] == [b"%d" % n for n in range(12)]


def test_a_listing_never_shows_a_segment_without_those_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a listing in several steps can see while segments 2 and 3 are moved in behind it: 3 without 2.
    spool = Spool(tmp_path)
    paths = [sealed(spool, b"%d" % number) for number in range(3)]
    seen = iter([[paths[0], paths[2]], paths])
    monkeypatch.setattr(Spool, "_listed", lambda self: next(seen))
    assert spool.sealed() == paths
    seen = iter([[paths[0]], [paths[0], paths[2]]])
    assert spool.sealed() == [paths[0]]


def test_an_empty_segment_is_not_kept(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    assert not spool.seal(left_open(spool))
    assert spool.sealed() == spool.unsealed() == []


def test_sealing_may_be_repeated_after_it_failed_half_way(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    path = left_open(spool, b"1")
    assert spool.seal(path)
    assert spool.seal(path)  # moved already, folders not synced yet
    assert len(spool.sealed()) == 1


def test_recovery_seals_what_was_left_open_whole(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    left_open(spool, b"1", b"2")
    assert spool.recover() == []
    assert [kept.body for kept in read_segment(spool.sealed()[0]).records] == [b"1", b"2"]
    assert spool.unsealed() == []


def test_recovery_cuts_a_torn_tail_and_says_how_much_and_where(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    path = left_open(spool, b"1", b"a longer one")
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    (told,) = spool.recover()
    cut = read_segment(spool.sealed()[0])
    assert [kept.body for kept in cut.records] == [b"1"]
    assert cut.damage == []
    size = spool.sealed()[0].stat().st_size
    assert told == (
        f"{path.name}: cut {len(whole) - 5 - size} bytes at {size}, never acknowledged (the file ends inside a record)."
    )


def test_recovery_keeps_wrong_bytes_for_a_person_to_look_at(tmp_path: Path) -> None:
    # They may be of a record that was acknowledged, so they must not be cut like a torn tail.
    spool = Spool(tmp_path)
    path = left_open(spool, b"first", b"last")
    whole = bytearray(path.read_bytes())
    whole[-1] ^= 1
    path.write_bytes(whole)
    (told,) = spool.recover()
    assert "are damaged" in told
    kept = read_segment(spool.sealed()[0])
    assert [one.body for one in kept.records] == [b"first"]
    assert [damage.torn for damage in kept.damage] == [False]
    assert spool.sealed()[0].stat().st_size == len(whole)


def test_recovery_drops_a_file_that_has_no_record_yet_and_sets_a_foreign_one_aside(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    (spool.open_folder / "0000000000000001-abc.segment").write_bytes(b"SUREF")
    (spool.open_folder / "0000000000000002-abc.segment").write_bytes(bytes(HEADER_BYTES + 10))
    (told,) = spool.recover()
    assert "was set aside" in told
    assert [path.name for path in spool.quarantined()] == ["0000000000000002-abc.segment"]
    assert (spool.quarantine_folder / "0000000000000002-abc.reason.txt").read_text().startswith(str(spool.open_folder))
    assert spool.unsealed() == spool.sealed() == []


def test_quarantine_keeps_the_segment_and_the_reason(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    path = sealed(spool, b"poison")
    data = path.read_bytes()
    target = spool.quarantine(path, "the writer ended three times")
    assert spool.sealed() == []
    assert spool.quarantined() == [target]
    assert target.read_bytes() == data
    assert target.with_suffix(".reason.txt").read_text() == "the writer ended three times\n"


def test_the_backlog_counts_open_and_sealed_but_not_quarantined_bytes(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    assert spool.backlog_bytes() == 0
    paths = [sealed(spool, b"x" * 100), left_open(spool, b"y" * 50)]
    assert spool.backlog_bytes() == sum(path.stat().st_size for path in paths)
    spool.quarantine(paths[0], "why")
    assert spool.backlog_bytes() == paths[1].stat().st_size


def test_one_collector_holds_the_spool_and_the_next_is_told_who(tmp_path: Path) -> None:
    code = "import sys\nfrom pathlib import Path\nfrom surefoot.collector.spool import Spool\n"
    code += "with Spool(Path(sys.argv[1])).lock():\n    print('held', flush=True)\n    sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(SpoolError, match=rf"used by another collector \(process {holder.pid}\)"),
            Spool(tmp_path).lock(),
        ):
            pytest.fail("two collectors on one spool")
        holder.kill()  # a dead process holds nothing
        holder.wait()
    with Spool(tmp_path).lock():
        assert (tmp_path / "lock").read_text() == str(os.getpid())


def test_every_new_name_and_every_rename_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool(tmp_path)
    done: list[str] = []
    real_sync, real_data_sync, real_rename = os.fsync, os.fdatasync, os.replace

    def sync(descriptor: int) -> None:
        done.append("sync " + Path(f"/proc/self/fd/{descriptor}").readlink().name)
        real_sync(descriptor)

    def data_sync(descriptor: int) -> None:
        done.append("data " + Path(f"/proc/self/fd/{descriptor}").readlink().name)
        real_data_sync(descriptor)

    def rename(source: Path, target: Path) -> None:
        done.append(f"rename to {Path(target).parent.name}/{Path(target).name}")
        real_rename(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "fdatasync", data_sync)
    monkeypatch.setattr(os, "replace", rename)
    path = left_open(spool, b"1")
    spool.seal(path)
    assert done == [
        f"sync .receiver.json.{os.getpid()}",  # the number is used up before anything carries it
        f"rename to {tmp_path.name}/receiver.json",
        f"sync {tmp_path.name}",
        "sync open",  # the new name
        f"data {path.name}",  # the records
        f"rename to sealed/{path.name}",
        "sync sealed",
        "sync open",
    ]


def test_the_writer_may_open_a_spool_that_no_collector_has_made_yet(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    assert spool.sealed() == []
    assert json.loads((tmp_path / "spool" / "receiver.json").read_text())["sequence"] == 0
    write_segment(spool.sealed_folder / spool.name_of(4), [record(b"1")], uuid.uuid4(), 4)
    assert len(spool.sealed()) == 1
