"""What the processors raise on purpose; every message says what was attempted, on what, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from surefoot.errors import SurefootError, UnreachableError


class ProcessorsError(SurefootError):
    """Base of the processors' errors."""


class LakeError(ProcessorsError):
    """A table cannot be opened, read or written as asked."""


class LakeNotFoundError(LakeError, UnreachableError):
    """There is no lake at the path, or one of its tables is missing."""


class LakeFormatError(LakeError):
    """The lake was written by a newer version of Surefoot."""


class LeaseHeldError(LakeError, UnreachableError):
    """Another process holds the lake's lease."""


class CommitConflictError(LakeError):
    """Files that a commit wanted to replace are no longer in the table; nothing was written."""


class RowsError(LakeError):
    """Rows do not fit the table, or not the request that they came with."""


class QueryError(ProcessorsError):
    """A query was refused or failed."""


class RequestError(ProcessorsError):
    """Another process was asked to do something to the lake and did not."""

    exit_code = 1


class WriterBusyError(ProcessorsError, UnreachableError):
    """Another writer works on the spool."""


class DecodeError(ProcessorsError):
    """Acknowledged requests that cannot be decoded. ``places`` are their indices among the records given."""

    def __init__(self, message: str, places: Sequence[int]) -> None:
        super().__init__(message)
        self.places = tuple(places)
