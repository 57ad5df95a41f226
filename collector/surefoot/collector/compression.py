"""Decompresses request bodies with a bound, so that a small bomb cannot fill the memory."""

from __future__ import annotations

import zlib
from typing import Final

from surefoot.collector.errors import BadRequestError, TooLargeError

CODINGS = ("identity", "gzip", "deflate")
_MEMBERS: Final = 1_000  # senders make one; 200,000 empty ones, 4 MB, held a thread for 12 s (n = 1)
_BLOCK: Final = 64 << 10


def decompress(body: bytes, coding: str, limit: int) -> bytes:
    """The plain body. ``coding`` is one of CODINGS.

    Raises TooLargeError if the plain body is larger than ``limit`` bytes, BadRequestError if the stream is corrupt or
    ends too early.
    """
    if coding == "identity":
        plain = body
    else:
        try:
            plain = _gunzip(body, limit + 1) if coding == "gzip" else _inflate(body, limit + 1)
        except (EOFError, zlib.error) as error:
            raise BadRequestError(f"The {coding} body is corrupt: {error}.") from error
    if len(plain) > limit:
        raise TooLargeError(f"The body is larger than {limit:,} bytes; send smaller batches.")
    return plain


def _gunzip(body: bytes, most: int) -> bytes:
    """At most ``most`` bytes of up to ``_MEMBERS`` gzip members, checksums compared; zeros may follow."""
    plain, at = bytearray(), 0
    for _ in range(_MEMBERS):
        if body[at : at + 1] in (b"", b"\0"):
            break
        inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS + 16)
        while not inflater.eof:
            if len(plain) >= most:
                return bytes(plain)
            block = body[at : at + _BLOCK]  # what a member leaves over is copied, so not the whole body
            if not block:
                raise EOFError("the stream ends too early")
            plain += inflater.decompress(block, most - len(plain))
            at += len(block) - len(inflater.unconsumed_tail) - len(inflater.unused_data)
    if body[at:].strip(b"\0"):
        raise BadRequestError(f"The gzip body has more than {_MEMBERS:,} members, or other bytes behind them.")
    return bytes(plain)


def _inflate(body: bytes, most: int) -> bytes:
    """At most ``most`` bytes of a zlib stream, which is what HTTP calls deflate."""
    inflater = zlib.decompressobj()
    plain = inflater.decompress(body, most)
    if len(plain) < most and not inflater.eof:
        raise EOFError("the stream ends too early")
    return plain
