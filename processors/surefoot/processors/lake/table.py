"""One Delta table on disk: its handle, its log, its lock, and the list of its current files.

Rule: nothing here changes what a table holds; only :mod:`surefoot.processors.lake.commit` calls :meth:`Table.transact`.
A partition's value stands in the path and in the log (Delta's convention), never in the file's body: DuckDB then skips
whole files by ``date`` without opening them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import date
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema
from deltalake.transaction import AddAction, CommitProperties, PostCommitHookProperties, RemoveAction, Transaction

from surefoot.processors.lake.durable import exclusive, make_folder, sync, write_file

PARTITION: Final = "date"
OPEN_PREFIX: Final = "open-"
RESTING_PREFIX: Final = "open-resting-"  # open rows that wait for their time, with the age of the file
PART_PREFIX: Final = "part-"
MOVED_PREFIX: Final = "part-moved-"  # rows that other files held before
CURRENT: Final = "_current.json"
# What a commit says of the table after it, in its commitInfo: `history` counts along and finds what was lost.
HOLDS_FILES: Final = "surefootFiles"
HOLDS_BYTES: Final = "surefootBytes"

# Statistics beyond the number of rows are not kept: trace ids are random, so their minimum and maximum skip nothing.
# The log is cleaned by upkeep, after it synced the checkpoint that replaces it, and by nobody else.
_CONFIGURATION: Final = {
    "delta.enableExpiredLogCleanup": "false",
    "delta.dataSkippingNumIndexedCols": "0",
}
# Checkpoints are upkeep's too: delta-rs does not sync them.
_NO_HOOKS: Final = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


class DataFile(NamedTuple):
    """A file of the table, by its path relative to the table's folder."""

    path: str
    rows: int
    size: int  # bytes
    date: date

    @property
    def is_open(self) -> bool:
        """True for a small file of rows that are not settled yet."""
        return self.path.rpartition("/")[2].startswith(OPEN_PREFIX)

    @property
    def is_live(self) -> bool:
        """True for an open file whose rows are expected to change."""
        return self.is_open and not self.path.rpartition("/")[2].startswith(RESTING_PREFIX)

    @property
    def age(self) -> int:
        """Of a resting file: which replacement wrote its rows first."""
        return int(self.path.rpartition("/")[2].removeprefix(RESTING_PREFIX).partition("-")[0])

    @property
    def is_moved(self) -> bool:
        """True for a file whose rows are not new."""
        return self.path.rpartition("/")[2].startswith(MOVED_PREFIX)


class Table:
    """A handle on one table. It sees other processes' commits, and its own, at :meth:`refresh`."""

    def __init__(self, name: str, path: Path, schema: pa.Schema) -> None:
        self.name = name
        self.path = path
        self.schema = schema
        self._delta = DeltaTable(path)
        self._files: dict[str, DataFile] | None = None
        self._synced = -1  # the log is on the disk up to this version, or up to the last checkpoint
        self._removals: dict[str, int] = {}
        self._removals_to = -1

    @classmethod
    def create(cls, name: str, path: Path, schema: pa.Schema) -> Table:
        """Create the table durably; a table that is already there is opened."""
        make_folder(path)
        DeltaTable.create(
            path,
            schema=schema,
            mode="ignore",
            partition_by=[PARTITION],
            name=name,
            configuration=_CONFIGURATION,
            post_commithook_properties=_NO_HOOKS,
        )
        table = cls(name, path, schema)
        sync(path)
        table.sync_log()
        return table

    @property
    def log_path(self) -> Path:
        """Folder of the Delta log."""
        return self.path / "_delta_log"

    @property
    def version(self) -> int:
        """Version of the table that this handle sees."""
        return self._delta.version()

    @property
    def body_schema(self) -> pa.Schema:
        """Schema of a data file: the table's without the partition column."""
        return self.schema.remove(self.schema.get_field_index(PARTITION))

    @property
    def blank_path(self) -> Path:
        """A file with every column and no row: readers list it first, so an empty table still has its columns."""
        return self.path / "_schema" / f"{PARTITION}=1970-01-01" / "blank.parquet"

    def write_blank(self) -> None:
        """Write :attr:`blank_path` for the schema of this program; done when the schema grew."""
        make_folder(self.blank_path.parent)
        write_file(self.blank_path, lambda draft: pq.write_table(self.body_schema.empty_table(), draft))
        sync(self.blank_path.parent)

    def lock(self) -> AbstractContextManager[None]:
        """The table's commit lock: held for the milliseconds of a commit, by any process."""
        return exclusive(self.path / "_commit.lock")

    def refresh(self) -> None:
        """See what is committed now."""
        before = self.version
        self._delta.update_incremental()
        if self.version != before:
            self._files = None

    def reload(self) -> None:
        """Open the handle anew, for changes that are no new version: a log entry set aside, a column added."""
        self._delta = DeltaTable(self.path)
        self._files = None
        self._synced = min(self._synced, self.version)

    def files(self) -> Mapping[str, DataFile]:
        """The files of the version that this handle sees, by relative path, oldest partition first."""
        if self._files is None:
            actions = pa.table(self._delta.get_add_actions(flatten=True))
            listed = [
                DataFile(path, rows, size, day)
                for path, rows, size, day in zip(
                    actions["path"].to_pylist(),
                    actions["num_records"].to_pylist(),
                    actions["size_bytes"].to_pylist(),
                    actions[f"partition.{PARTITION}"].to_pylist(),
                    strict=True,
                )
            ]
            self._files = {file.path: file for file in sorted(listed, key=lambda file: (file.date, file.path))}
        return self._files

    def bodies(self, files: Iterable[DataFile]) -> Iterator[pa.Table]:
        """The rows of the files as :attr:`body_schema`, by row group; a column younger than its file is null."""
        for file in files:
            with pq.ParquetFile(self.path / file.path) as source:
                for group in range(source.num_row_groups):
                    yield _widen(source.read_row_group(group), self.body_schema)

    def transaction_version(self, app_id: str) -> int | None:
        """The last version that ``app_id`` committed, as this handle sees it; None if it never did."""
        return self._delta.transaction_version(app_id)

    def transact(
        self, actions: Sequence[AddAction | RemoveAction], transaction: Transaction, holds: Mapping[str, int]
    ) -> None:
        """Commit as exactly the next version of this handle, or raise deltalake's ``CommitFailedError``.

        ``holds`` are the files and bytes of the table after it, by :data:`HOLDS_FILES` and :data:`HOLDS_BYTES`.
        No retry inside delta-rs: its own rebase would accept what the caller has not rechecked.
        """
        self._delta.create_write_transaction(
            list(actions),
            mode="append",
            schema=self._delta.schema(),
            partition_by=[PARTITION],
            commit_properties=CommitProperties(dict(holds), max_commit_retries=0, app_transactions=[transaction]),
            post_commithook_properties=_NO_HOOKS,
        )

    def entries(self, after: int) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """The log's actions, version by version, after ``after``; FileNotFoundError where the log was cleaned."""
        for version in range(after + 1, self.version + 1):
            text = (self.log_path / f"{version:020}.json").read_text()
            yield version, [json.loads(line) for line in text.splitlines() if line]

    def sync_log(self) -> None:
        """Wait until the log up to this version is on the disk, whoever wrote it.

        Called before a commit too: an entry must never outlive, on a disk that lost power, the one it builds on.
        """
        for version in range(max(self._synced, self.last_checkpoint) + 1, self.version + 1):
            sync(self.log_path / f"{version:020}.json")
        sync(self.log_path)
        self._synced = self.version

    def removals(self) -> Mapping[str, int]:
        """When each path that the log still knows as removed was removed, in unix milliseconds."""
        first = min((int(path.stem) for path in self.log_path.glob("*.json") if path.stem.isdigit()), default=0)
        for version, actions in self.entries(max(self._removals_to, first - 1)):
            for action in actions:
                if "remove" in action:
                    self._removals[action["remove"]["path"]] = action["remove"]["deletionTimestamp"]
            self._removals_to = version
        return self._removals

    def forget_removals(self, paths: Iterable[str]) -> None:
        """Drop paths from :meth:`removals` whose files are deleted, so that it does not grow for ever."""
        for path in paths:
            self._removals.pop(path, None)

    def checkpoint(self) -> None:
        """Write a checkpoint of this version and sync it."""
        self._delta.create_checkpoint()
        self.sync_checkpoint()

    def sync_checkpoint(self) -> None:
        """Wait until the last checkpoint is on the disk. Until then the log that it sums up must stay."""
        if self.last_checkpoint >= 0:
            sync(self.log_path / f"{self.last_checkpoint:020}.checkpoint.parquet")
            sync(self.log_path / "_last_checkpoint")
            sync(self.log_path)

    @property
    def last_checkpoint(self) -> int:
        """Version of the last checkpoint, -1 without one."""
        try:
            pointer: dict[str, Any] = json.loads((self.log_path / "_last_checkpoint").read_text())
        except FileNotFoundError:
            return -1
        return int(pointer["version"])

    def publish(self) -> None:
        """Replace ``_current.json``, the file list for readers without Delta; call with the lock held."""
        draft = self.path / f".{CURRENT}.draft"
        files = [str(self.blank_path.relative_to(self.path)), *self.files()]
        draft.write_text(json.dumps({"table": self.name, "version": self.version, "files": files}))
        draft.replace(self.path / CURRENT)

    def missing_columns(self) -> list[str]:
        """Columns that this program knows and the table does not have."""
        present = {field.name for field in self._delta.schema().fields}
        return [name for name in self.schema.names if name not in present]

    def add_missing_columns(self) -> list[str]:
        """Add this program's columns that the table does not have yet; returns their names. Call with the lock held."""
        missing = [self.schema.field(name) for name in self.missing_columns()]
        if missing:
            self._delta.alter.add_columns(
                Schema.from_arrow(pa.schema(missing)).fields, post_commithook_properties=_NO_HOOKS
            )
            self.reload()
            self.sync_log()
        return [field.name for field in missing]


def _widen(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
