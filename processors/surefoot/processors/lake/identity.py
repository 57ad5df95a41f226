"""Drop spans that the lake holds already: a resent request changes no count anywhere, and the richer copy wins.

The identity of a span is ``(trace_id, span_id)``, never ``span_id`` alone and never its start. Contract: the answer is
exact for copies with the same start; a copy with another start is found in every date from 16 days before its arrival
on, newest first, as far as the budget reaches. Memory holds a 64-bit hash of every identity of those partitions; a hash
that is not there proves that the span is new, one that is there only asks the question, and the lake's own rows answer
it. Rule: an identity is remembered when its rows are committed, never before: a filter ahead of the table would drop
the retry of a commit that failed.

Some libraries send a span twice, first without its answer. The copy with the later end is the richer one, and of two
with the same end the one with more attributes. A richer copy of a span in the lake passes the filter and is named as
such, for ``lake.supersede`` to put it in the old one's place.

The partitions of the last days are read into memory when the first spans come, and forgotten, least recently used
first, when all of them exceed the budget; spans of a date that alone exceeds it are asked for in the lake. The filter
follows the table's log, so what another process added counts too. A start too far from its arrival was moved to another
``date`` that depends on the arrival, so copies of one span can lie in two partitions; such spans are asked for in both.
"""

from __future__ import annotations

import hashlib
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from surefoot.processors.lake import views
from surefoot.processors.lake.commit import Commit
from surefoot.processors.lake.lake import AddedFile, Lake
from surefoot.processors.lake.table import PARTITION

# A copy lies between the earliest start or date and the latest date, or, from the future of its arrival, before.
# `richer`: than every copy in the lake. Files from before format 2 do not tell their spans' attributes.
_PRESENT: Final = """
SELECT place, trace_id, span_id, unnest(list(DISTINCT held.date)) AS date, bool_and(coalesce(
    asked.ended > held.end_unix_nano OR asked.ended = held.end_unix_nano AND asked.sent > held.attribute_count, false
)) AS richer
FROM asked JOIN (
    SELECT trace_id, span_id, date, end_unix_nano, attribute_count FROM {table} WHERE date BETWEEN $first AND $last
    UNION ALL
    SELECT trace_id, span_id, date, end_unix_nano, attribute_count FROM {table}
    WHERE date < $first AND start_time >= $first::DATE::TIMESTAMPTZ
) AS held USING (trace_id, span_id)
GROUP BY place, trace_id, span_id
"""

Hashes = npt.NDArray[np.uint64]

# `date` lies within 8 days before its span's arrival, so a copy that came up to 8 days ago is found wherever it lies.
REACH: Final = timedelta(days=16)
_IDENTITY: Final = ["trace_id", "span_id"]
_POORER: Final = pa.schema([("trace_id", pa.string()), ("span_id", pa.string()), (PARTITION, pa.date32())])
_DIGITS: Final = {"trace_id": 32, "span_id": 16}
_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio: Fibonacci hashing
_SHIFT: Final = np.uint64(32)


class Generation:
    """The hashes of one partition, as few sorted runs whose sizes double: adding is cheap and so is asking."""

    def __init__(self) -> None:
        self._runs: list[Hashes] = []
        self.with_strays = False  # spans that start in the partition and lie in another one are in, too

    def __len__(self) -> int:
        return sum(len(run) for run in self._runs)

    def add(self, hashes: Hashes) -> None:
        """Remember hashes, in any order."""
        run = np.sort(hashes)
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            # The stable sort merges two sorted runs in linear time.
            run = np.sort(np.concatenate([self._runs.pop(), run]), kind="stable")
        self._runs.append(run)

    def holds(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """For each hash, whether it was added."""
        found = np.zeros(len(hashes), dtype=np.bool_)
        # In order, a search begins where the last one ended in the caches: six times as fast at 10 M hashes.
        order = np.argsort(hashes)
        asked = hashes[order]
        for run in self._runs:
            if len(run):
                places = np.searchsorted(run, asked)
                places[places == len(run)] = 0
                found[order] |= run[places] == asked
        return found

    def runs(self) -> list[Hashes]:
        """All of them."""
        return self._runs


class Sifted(NamedTuple):
    """What is left of a batch, and the trace_id, span_id and date of those in the lake that it is to replace."""

    rows: pa.Table
    poorer: pa.Table


class IdentityFilter:
    """What the raw table ``table`` holds of recent dates. ``budget`` is in bytes: 8 a span, and an eighth on top."""

    def __init__(self, lake: Lake, table: str = "spans", budget: int = 512 << 20) -> None:
        self.duplicates = 0  # rows so far that were dropped here or in the lake
        self.asked = 0  # rows so far that the lake had to be asked about
        self._lake = lake
        self._table = table
        self._capacity = budget // 8
        self._generations: OrderedDict[date, Generation] = OrderedDict()  # least recently used first
        self._too_large: set[date] = set()  # there was no room for these; read again for spans of the date only
        # One byte for a slot of hashes: nearly every new one is in a slot without any, and then no date is searched.
        self._slot_bits = max(1, self._capacity.bit_length() - 1)
        self._taken = np.zeros(1 << self._slot_bits, dtype=np.bool_)
        self._version = -1  # of the table; the generations hold all that it has up to there
        self._own: set[Path] = set()  # files whose identities were remembered without reading them

    def sift(self, rows: pa.Table) -> Sifted:
        """The rows that the table does not hold, or holds in a poorer copy, once each and in their order.

        Needs the columns trace_id, span_id, start_time, received_at, date, end_unix_nano and attributes.
        """
        if rows.num_rows == 0:
            return Sifted(rows, _POORER.empty_table())
        self._follow()
        hashes = identity_hashes(rows)
        gone = _repeated(rows, hashes)
        suspects, days = self._suspects(rows, hashes)
        suspects &= ~gone
        poorer = _POORER.empty_table()
        if suspects.any():
            self.asked += int(suspects.sum())
            held = self._in_lake(rows, suspects, days)
            richer = held["richer"]
            gone[held["place"].filter(pc.invert(richer)).to_numpy()] = True
            poorer = held.filter(richer).select(_POORER.names).cast(_POORER)
        self.duplicates += int(gone.sum()) + poorer.num_rows
        return Sifted(rows.filter(pa.array(~gone)) if gone.any() else rows, poorer)

    def remember(self, rows: pa.Table, commit: Commit) -> None:
        """``rows`` were committed by ``commit``; without this call the filter reads them back from the disk."""
        if not commit.committed:
            return  # an earlier commit holds them, or rows like them; the log tells which
        self._own.update(self._lake.table(self._table).path / file.path for file in commit.added)
        self._add(rows, identity_hashes(rows))

    def _follow(self) -> None:
        """Learn what was added to the table since the last call."""
        if not self._generations:
            self._version = self._lake.version(self._table)
            self._own.clear()
            return
        added = self._lake.added_since(self._table, self._version)
        if not added.complete:
            self._generations.clear()  # read again when asked
        else:
            self._read(file for file in added.files if file.path not in self._own)
        self._own.clear()
        self._version = added.version

    def _read(self, files: Iterable[AddedFile]) -> None:
        for file in files:
            for rows in _identities(file.path):
                self._add(rows, identity_hashes(rows))

    def _add(self, rows: pa.Table, hashes: Hashes) -> None:
        dates, started = rows[PARTITION], rows["start_time"].cast(pa.date32())
        for day in {*dates.unique().to_pylist(), *started.unique().to_pylist()} & self._generations.keys():
            self._keep(self._generations[day], hashes[_mask(pc.or_(pc.equal(dates, day), pc.equal(started, day)))])
        self._shrink(keep=None)

    def _keep(self, generation: Generation, hashes: Hashes) -> None:
        generation.add(hashes)
        self._taken[self._slots(hashes)] = True

    def _slots(self, hashes: Hashes) -> Hashes:
        slots: Hashes = hashes >> np.uint64(64 - self._slot_bits)
        return slots

    def _suspects(self, rows: pa.Table, hashes: Hashes) -> tuple[npt.NDArray[np.bool_], set[date]]:
        """Rows that may be in the table: their hash is known, or nothing in memory can clear them.

        With the dates, beside the rows' own, that their hashes are known of.
        """
        suspects = ~_mask(pc.equal(rows["start_time"].cast(pa.date32()), rows[PARTITION]))
        for day in rows[PARTITION].unique().to_pylist():
            of_day = _mask(pc.equal(rows[PARTITION], day)) & ~suspects
            if not of_day.any():
                continue
            generation = self._generation(day)
            if generation is not None:
                of_day &= self._taken[self._slots(hashes)]
            suspects[of_day] = True if generation is None else generation.holds(hashes[of_day])
        self._read_recent(pc.min(rows["received_at"]).cast(pa.date32()).as_py() - REACH)
        places = np.flatnonzero(self._taken[self._slots(hashes)])
        asked, days = hashes[places], set()
        for day, generation in self._generations.items():
            known = places[generation.holds(asked)]
            if len(known):
                suspects[known] = True
                days.add(day)
        return suspects, days

    def _read_recent(self, first: date) -> None:
        """Have the partitions from ``first`` on in memory, newest first, while there is room; forget older ones."""
        past = [day for day in self._generations if day < first]
        for day in past:
            del self._generations[day]
        if past:
            self._taken[:] = False
            for run in (run for generation in self._generations.values() for run in generation.runs()):
                self._taken[self._slots(run)] = True
        rows: Counter[date] = Counter()
        for file in self._lake.table(self._table).files().values():
            if file.date >= first and file.date not in self._generations and file.date not in self._too_large:
                rows[file.date] += file.rows
        room = self._capacity - sum(map(len, self._generations.values()))
        for day in sorted(rows, reverse=True):
            if rows[day] > room:
                self._too_large.add(day)
            elif (generation := self._read_date(day)) is not None:
                self._generations.move_to_end(day, last=False)  # the oldest is the first to be forgotten
                room -= len(generation)

    def _generation(self, day: date) -> Generation | None:
        """The hashes of the partition and of spans that start in it; None when they exceed the budget alone."""
        generation = self._generations[day] if day in self._generations else self._read_date(day)
        if generation is None:
            return None
        self._generations.move_to_end(day)
        if not generation.with_strays:
            # From the future of their arrival, filed under an earlier date. Zone maps skip nearly every row group.
            begin = datetime.combine(day, time.min, UTC)
            strays = self._lake.read(
                self._table,
                _IDENTITY,
                "date < ? AND start_time >= ? AND start_time < ?",
                [day, begin, begin + timedelta(days=1)],
            )
            self._keep(generation, identity_hashes(strays))
            generation.with_strays = True
        self._shrink(keep=day)
        return generation

    def _read_date(self, day: date) -> Generation | None:
        """Read the partition into memory; None when it exceeds the budget alone."""
        handle = self._lake.table(self._table)
        files = [file for file in handle.files().values() if file.date == day]
        if sum(file.rows for file in files) > self._capacity:
            return None
        generation = self._generations[day] = Generation()
        for file in files:
            for rows in _identities(handle.path / file.path):
                self._keep(generation, identity_hashes(rows))
        return generation

    def _shrink(self, keep: date | None) -> None:
        while sum(map(len, self._generations.values())) > self._capacity:
            oldest = next(iter(self._generations))
            if oldest == keep:
                return
            del self._generations[oldest]
            self._too_large.add(oldest)

    def _in_lake(self, rows: pa.Table, suspects: npt.NDArray[np.bool_], others: set[date]) -> pa.Table:
        """Those of the suspects that the table really holds: compared as text, in the partitions where they can be.

        Those are the rows' own, and ``others``. Columns: place among ``rows``, trace_id, span_id, date of a held copy,
        richer.
        """
        chosen = rows.select([*_IDENTITY, "start_time", PARTITION, "end_unix_nano", "attributes"]).filter(
            pa.array(suspects)
        )
        asked = pa.table(
            {
                "place": np.flatnonzero(suspects),
                **{name: chosen[name].cast(pa.string()) for name in _IDENTITY},
                "ended": chosen["end_unix_nano"],
                "sent": _attribute_counts(chosen),
            }
        )
        days = [*others, *(day for name in ("start_time", PARTITION) for day in _days(chosen[name]))]
        first = min((day for day in days if day is not None), default=date.min) if None not in days else date.min
        views.set_files(self._lake.con, self._lake.table(self._table))
        con = self._lake.con
        con.register("asked", asked)
        try:
            present = con.sql(
                _PRESENT.format(table=self._table), params={"first": first, "last": max(d for d in days if d)}
            ).to_arrow_table()
        finally:
            con.unregister("asked")
        return present


def identity_hashes(rows: pa.Table) -> Hashes:
    """A 64-bit hash of each row's identity, some 0.1 us a row; ids that are not hex of the right length take longer."""
    columns = {name: _text(rows[name]) for name in _IDENTITY}
    regular = np.ones(rows.num_rows, dtype=np.bool_)
    for name, column in columns.items():
        regular &= _lengths(column) == _DIGITS[name]
    if regular.all():
        return _hash_words(columns)
    hashes = np.zeros(rows.num_rows, dtype=np.uint64)
    keep = pa.array(regular)
    if regular.any():
        hashes[regular] = _hash_words({name: column.filter(keep) for name, column in columns.items()})
    pairs = zip(*(column.filter(pa.array(~regular)).to_pylist() for column in columns.values()), strict=True)
    hashes[~regular] = [_hash_text(f"{trace_id}\0{span_id}") for trace_id, span_id in pairs]
    return hashes


def _hash_text(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _text(column: pa.ChunkedArray) -> pa.StringArray:
    """One array of plain text, null as empty."""
    combined = column.cast(pa.string()).combine_chunks()
    if isinstance(combined, pa.ChunkedArray):
        combined = pa.concat_arrays(combined.chunks) if combined.num_chunks else pa.array([], pa.string())
    return pc.fill_null(combined, "")


def _lengths(column: pa.StringArray) -> npt.NDArray[np.int32]:
    lengths: npt.NDArray[np.int32] = pc.binary_length(column).to_numpy(zero_copy_only=False)
    return lengths


def _hash_words(columns: dict[str, pa.StringArray]) -> Hashes:
    """Mix the digits as they are, eight to a word; every text has its full length."""
    some = next(iter(columns.values()))
    hashes = np.full(len(some), _MULTIPLIER)
    for name, column in columns.items():
        words = np.frombuffer(_bytes(column), dtype=np.uint64).reshape(len(column), _DIGITS[name] // 8)
        for place in range(words.shape[1]):
            hashes ^= words[:, place]
            hashes *= _MULTIPLIER
            hashes ^= hashes >> _SHIFT
    return hashes


def _bytes(column: pa.StringArray) -> pa.Buffer:
    _, offsets, data = column.buffers()
    first, last = np.frombuffer(offsets, dtype=np.int32)[[column.offset, column.offset + len(column)]]
    return data.slice(int(first), int(last - first))


def _repeated(rows: pa.Table, hashes: Hashes) -> npt.NDArray[np.bool_]:
    """Rows whose identity a richer or earlier row has. Hashes find the candidates, the texts decide."""
    repeated = np.zeros(rows.num_rows, dtype=np.bool_)
    twice = repeats(hashes)
    if len(twice):
        candidates = np.flatnonzero(np.isin(hashes, twice))
        same = rows.select([*_IDENTITY, "end_unix_nano", "attributes"]).take(pa.array(candidates))
        ranked = pa.table(
            {
                **{name: same[name].cast(pa.string()) for name in _IDENTITY},
                "ended": same["end_unix_nano"].fill_null(0),
                "sent": _attribute_counts(same),
                "place": candidates,
            }
        ).sort_by([("ended", "descending"), ("sent", "descending"), ("place", "ascending")])
        best = ranked.group_by(_IDENTITY, use_threads=False).aggregate([("place", "first")])["place_first"]
        repeated[candidates] = True
        repeated[best.to_numpy()] = False
    return repeated


def repeats(hashes: Hashes) -> Hashes:
    """The hashes that occur more than once."""
    ordered = np.sort(hashes)
    twice: Hashes = ordered[1:][ordered[1:] == ordered[:-1]]
    return twice


def _attribute_counts(rows: pa.Table) -> pa.Array:
    maps = rows["attributes"].combine_chunks()
    if isinstance(maps, pa.ChunkedArray):
        maps = pa.concat_arrays(maps.chunks) if maps.num_chunks else pa.array([], rows.schema.field("attributes").type)
    return pa.array(np.diff(np.asarray(maps.offsets)), pa.int64())


def _days(column: pa.ChunkedArray) -> list[date | None]:
    days: list[date | None] = column.cast(pa.date32()).unique().to_pylist()
    return days


def _identities(path: Path) -> Iterator[pa.Table]:
    """Identity, start and date of the file's rows, a row group at a time."""
    day = pa.scalar(date.fromisoformat(path.parent.name.removeprefix(f"{PARTITION}=")), pa.date32())
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, columns=[*_IDENTITY, "start_time"])
            yield rows.append_column(PARTITION, pa.repeat(day, rows.num_rows))


def _mask(values: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = pc.fill_null(values, False).to_numpy()
    return mask
