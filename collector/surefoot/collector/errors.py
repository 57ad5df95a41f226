"""Errors of the collector, and what each means to a sender."""

from __future__ import annotations

from surefoot.errors import SurefootError, UnreachableError


class CollectorError(SurefootError):
    """Something that the collector refuses or cannot do."""


class SegmentError(CollectorError):
    """A segment file that cannot be read at all: no segment, an unknown version, a broken header."""


class SpoolError(CollectorError):
    """A spool folder that cannot be used."""


class AddressError(UnreachableError):
    """An address that cannot be listened on."""


class BadRequestError(CollectorError):
    """A request that can never be accepted; the sender must not send it again."""


class TooLargeError(CollectorError):
    """A request beyond the size limit; the sender must not send it again as it is."""


class UnavailableError(CollectorError):
    """The collector cannot take the request now; the sender should try again after ``retry_seconds``."""

    def __init__(self, message: str, retry_seconds: float) -> None:
        super().__init__(message)
        self.retry_seconds = retry_seconds
