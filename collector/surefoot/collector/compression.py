"""Decompresses request bodies with a bound, so that a small bomb cannot fill the memory."""

from __future__ import annotations

import gzip
import io
import zlib

from surefoot.collector.errors import BadRequestError, TooLargeError

CODINGS = ("identity", "gzip", "deflate")


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
        except (OSError, EOFError, zlib.error) as error:  # gzip.BadGzipFile is an OSError
            raise BadRequestError(f"The {coding} body is corrupt: {error}.") from error
    if len(plain) > limit:
        raise TooLargeError(f"The body is larger than {limit:,} bytes; send smaller batches.")
    return plain


def _gunzip(body: bytes, most: int) -> bytes:
    """At most ``most`` bytes of one or more gzip members, checksums compared."""
    with gzip.GzipFile(fileobj=io.BytesIO(body)) as file:
        return file.read(most)


def _inflate(body: bytes, most: int) -> bytes:
    """At most ``most`` bytes of a zlib stream, which is what HTTP calls deflate."""
    inflater = zlib.decompressobj()
    plain = inflater.decompress(body, most)
    if len(plain) < most and not inflater.eof:
        raise EOFError("the stream ends too early")
    return plain
