"""Errors of the collector, and what each means to a sender."""

from __future__ import annotations

from surefoot.errors import SurefootError, UnreachableError


class CollectorError(SurefootError):
    """Something that the collector refuses or cannot do."""


class SegmentError(CollectorError):
    """A segment file that cannot be read at all: no segment, an unknown version, a broken header."""


class SpoolError(CollectorError):
    """A spool folder that cannot be used."""


class SpoolLockedError(SpoolError):
    """A spool that another collector works on."""


class AddressError(UnreachableError):
    """An address that cannot be listened on."""


class ExposureError(CollectorError):
    """A set-up that would let strangers in, or certificates and tokens that cannot be used."""


class RefusedError(CollectorError):
    """A request that is not taken. ``reason`` is what the refusal is counted under."""

    reason = "refused"


class BadRequestError(RefusedError):
    """A request that can never be accepted; the sender must not send it again."""

    reason = "malformed"


class IncompleteError(BadRequestError):
    """A gRPC call that ended before its request was there, or whose request gRPC itself found too large."""

    reason = "incomplete"


class TooLargeError(RefusedError):
    """A request beyond the size limit; the sender must not send it again as it is."""

    reason = "too_large"


class UnauthenticatedError(RefusedError):
    """A request without a token that is known."""

    reason = "unauthenticated"


class RetryableError(RefusedError):
    """A request that the sender should send again after ``retry_seconds``."""

    def __init__(self, message: str, retry_seconds: float) -> None:
        super().__init__(message)
        self.retry_seconds = retry_seconds


class UnavailableError(RetryableError):
    """The disk takes nothing now."""

    reason = "disk"


class BackloggedError(UnavailableError):
    """Too much waits for the lake."""

    reason = "backlog"


class SlowError(UnavailableError):
    """The request did not arrive in time; on another day the network may be faster."""

    reason = "slow"


class ThrottledError(RetryableError):
    """The source sends more requests than it may."""

    reason = "rate"
