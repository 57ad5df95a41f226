"""Who may send: bearer tokens, kept as hashes in a file of lines ``name:hash``.

A token is 256 random bits, so one round of SHA-256 is enough: what makes slow password hashes necessary is guessing
what a person chose, and nobody guesses 256 bits. Whoever reads the file cannot send with it.

Rule: once tokens are asked for, they are asked for until the end. A file that is deleted or broken lets nobody in; it
never lets everybody in.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import hmac
import logging
import os
import re
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from surefoot.collector.errors import ExposureError, UnauthenticatedError

log = logging.getLogger("surefoot.collector")

_PREFIX = "sft_"  # lets secret scanners find one that was published by mistake
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HASH = re.compile(r"[0-9a-f]{64}")
_LOOK_SECONDS = 1.0
_NEEDED = "This collector takes requests with a token: send the header 'authorization: Bearer TOKEN'."
_UNKNOWN = "The token is not known here, or was revoked."


def add_token(path: Path, name: str) -> str:
    """Make a token for a source, keep its hash, and return it; it can never be shown again.

    Raises ExposureError if the name cannot be used or is taken.
    """
    if _NAME.fullmatch(name) is None:
        raise ExposureError(
            f"{name!r} cannot name a token: use letters, digits, dots, dashes, underscores; at most 64."
        )
    token = _PREFIX + secrets.token_urlsafe(32)
    with _alone(path):
        tokens = read_tokens(path) if path.exists() else {}
        if name in tokens:
            raise ExposureError(f"{path} has a token named {name!r} already. Revoke it first, or choose another name.")
        _write(path, {**tokens, name: _hash(token)})
    return token


def revoke_token(path: Path, name: str) -> None:
    """Forget a token. A running collector refuses it within seconds. Raises ExposureError if there is none."""
    with _alone(path):
        tokens = read_tokens(path)
        if name not in tokens:
            raise ExposureError(f"{path} has no token named {name!r}; it has {', '.join(sorted(tokens)) or 'none'}.")
        _write(path, {other: value for other, value in tokens.items() if other != name})


def read_tokens(path: Path) -> dict[str, str]:
    """Hashes by name. Raises ExposureError if the file cannot be read or a line is no token."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ExposureError(
            f"Cannot read the tokens in {path}: {error}. `surefoot token add NAME` makes one."
        ) from error
    tokens: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        name, _, value = (part.strip() for part in line.partition(":"))
        if not name or name.startswith("#"):
            continue
        if _NAME.fullmatch(name) is None or _HASH.fullmatch(value) is None or name in tokens:
            raise ExposureError(f"{path}, line {number}: expected NAME:SHA256, each name once.")
        tokens[name] = value
    return tokens


class Authenticator:
    """Tells the source of a request by its token; follows changes of the file. Safe to call from many threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._tokens: Mapping[str, str] = read_tokens(path)
        self._stamp = self._stat()
        self._looked = time.monotonic()

    def source(self, authorization: str | None) -> str:
        """The name of the token in an ``authorization`` header. Raises UnauthenticatedError."""
        scheme, _, token = (authorization or "").strip().partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise UnauthenticatedError(_NEEDED)
        shown = _hash(token.strip())
        found = None
        for name, value in self._current().items():  # all of them: the time tells nothing about which one matched
            if hmac.compare_digest(value, shown):
                found = name
        if found is None:
            raise UnauthenticatedError(_UNKNOWN)
        return found

    def _current(self) -> Mapping[str, str]:
        with self._lock:
            now = time.monotonic()
            if now - self._looked >= _LOOK_SECONDS:
                self._looked = now
                self._reload()
            return self._tokens

    def _reload(self) -> None:
        stamp = self._stat()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._tokens = read_tokens(self._path)
            log.info("Read %d tokens from %s.", len(self._tokens), self._path)
        except ExposureError as error:
            self._tokens = {}
            log.error("%s Nobody is let in until that is repaired.", error)

    def _stat(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep other commands off the file: one that read it earlier would write a token back that is revoked here.

    What was written survives a power loss on leaving.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise ExposureError(f"Cannot write the tokens to {path}: {error}.") from error
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
        os.fsync(folder)
    finally:
        os.close(folder)


def _write(path: Path, tokens: Mapping[str, str]) -> None:
    """Replace the file, readable for its owner only."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.writelines(f"{name}:{value}\n" for name, value in tokens.items())
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise ExposureError(f"Cannot write the tokens to {path}: {error}.") from error
