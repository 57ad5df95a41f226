"""The bodies of HTTP responses: noted while a client reads them, and given again chunk by chunk.

Rule: a recorded body is written as far as the client read it, and says whether that was its end. What is read beyond it
in replay is a miss, never an end that looks like one.
"""

from __future__ import annotations

import asyncio
import base64
import codecs
import functools
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from surefoot.evaluation.replay.cassette import Entry
from surefoot.evaluation.replay.errors import ReplayedError
from surefoot.evaluation.replay.world import Call, World


def raise_recorded(library: Any, error: Mapping[str, Any]) -> None:
    """Raise the library's own exception of the recorded name, else a ReplayedError."""
    kind = getattr(library, error["type"], None)
    if isinstance(kind, type) and issubclass(kind, library.TransportError):
        raise kind(error["message"])
    raise ReplayedError(error["type"], error["message"])


@functools.cache
def stream_class(base: Any, *, asynchronous: bool) -> Any:
    """Return a stream class of the library's own kind: its clients insist on that."""
    if asynchronous:
        members = {"__aiter__": lambda self: self.given.chunks_async(), "aclose": lambda self: self.given.aclose()}
    else:
        members = {"__iter__": lambda self: self.given.chunks(), "close": lambda self: self.given.close()}
    return type("Stream", (base,), {"__init__": lambda self, given: setattr(self, "given", given), **members})


@dataclass(slots=True)
class Recording:
    """A response that is read by the client and noted on the way; it is written when it ends or is closed."""

    world: World
    call: Call
    response: Any
    told: dict[str, Any]
    seen: list[bytes] = field(default_factory=list)
    written: bool = False
    # One for all: who iterates again, as OpenAI's client does to drain a stream, goes on where the first one stopped.
    rest: Any = None

    def chunks(self) -> Iterator[bytes]:
        """Yield the body."""
        try:
            self.rest = self.rest or self.response.iter_bytes()
            for chunk in self.rest:
                self.seen.append(chunk)
                yield chunk
        except GeneratorExit:
            raise
        except BaseException as error:
            self._write(error=error)
            raise
        self._write(complete=True)

    async def chunks_async(self) -> AsyncIterator[bytes]:
        """Yield the body."""
        try:
            self.rest = self.rest or self.response.aiter_bytes()
            async for chunk in self.rest:
                self.seen.append(chunk)
                yield chunk
        except GeneratorExit:
            raise
        except BaseException as error:
            self._write(error=error)
            raise
        self._write(complete=True)

    def close(self) -> None:
        """Write what was read, and close."""
        self._write()
        self.response.close()

    async def aclose(self) -> None:
        """Write what was read, and close."""
        self._write()
        await self.response.aclose()

    def _write(self, *, complete: bool = False, error: BaseException | None = None) -> None:
        if self.written:
            return
        self.written = True
        told = dict(self.told, headers=self._headers(), chunks=_cleaned(self.world, self.seen))
        if not complete:
            told["ended"] = "cancelled" if isinstance(error, asyncio.CancelledError) else "closed"
        if error is not None and not isinstance(error, asyncio.CancelledError):
            told["ended"] = {"type": type(error).__name__, "message": str(error)}
        self.world.ended(self.call, {"response": told})

    def _headers(self) -> list[list[str]]:
        secret = self.world.redaction.is_secret_header
        return [[name, value] for name, value in self.told["headers"] if not secret(name)]


@dataclass(slots=True)
class Replaying:
    """A recorded response, chunk by chunk."""

    library: Any
    world: World
    entry: Entry
    given: int = 0  # chunks; who iterates again goes on after them

    @property
    def _recorded(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.entry.outcome["response"]
        return found

    def chunks(self) -> Iterator[bytes]:
        """Yield the body."""
        while (chunk := self._next()) is not None:
            yield chunk
        self._end()

    async def chunks_async(self) -> AsyncIterator[bytes]:
        """Yield the body."""
        while (chunk := self._next()) is not None:
            yield chunk
            await asyncio.sleep(0)
        if self._recorded.get("ended") == "cancelled":
            await asyncio.Event().wait()
        self._end()

    def _next(self) -> bytes | None:
        chunks = self._recorded["chunks"]
        if self.given == len(chunks):
            return None
        self.given += 1
        return _bytes(chunks[self.given - 1])

    def _end(self) -> None:
        ended = self._recorded.get("ended")
        if isinstance(ended, dict):
            raise_recorded(self.library, ended)
        if ended is not None:
            raise self.world.miss(
                f"{self.entry.name}: the recording of its response ends after {len(self._recorded['chunks'])} chunks, "
                "where the client closed it then; now more was read. Record it again."
            )

    def close(self) -> None:
        """Nothing is open."""

    async def aclose(self) -> None:
        """Nothing is open."""


def _cleaned(world: World, chunks: list[bytes]) -> list[Any]:
    """Chunks as they may be written: as text where they are. Together in one if a secret lies across two."""
    try:
        texts = _decoded(chunks)
    except UnicodeDecodeError:
        return [{"$bytes": base64.b64encode(chunk).decode("ascii")} for chunk in chunks]
    cleaned = [world.clean(text) for text in texts]
    whole = world.clean("".join(texts))
    return cleaned if whole == "".join(cleaned) else [whole]


def _decoded(chunks: list[bytes]) -> list[str]:
    """Decode chunks, a letter that is cut in two going with the later one; so boundaries move by up to 3 bytes."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    texts = [decoder.decode(chunk) for chunk in chunks]
    decoder.decode(b"", final=True)
    return [text for text in texts if text]


def _bytes(chunk: Any) -> bytes:
    return chunk.encode("utf-8") if isinstance(chunk, str) else base64.b64decode(chunk["$bytes"])
