"""What is taken out before anything is written: the values of named fields, keys by their looks, and known secrets.

Rule: it is applied to every piece of text and data on its way into a cassette, and to the arguments before their key is
computed. So a key never depends on a secret, and a replay with another key finds what was recorded. Headers of a
request are not written at all; what its secret ones hold is looked for everywhere else.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from surefoot.instrumentation.redaction import PATTERNS, REDACTED, Pattern

# Ends of names; "x-api-key" and "openaiApiKey" end so, too. Not "token": in log probabilities it is a word.
FIELDS: Final = (
    *("api_key", "password", "passwd", "secret", "client_secret", "secret_key", "private_key", "authorization"),
    *("access_token", "refresh_token", "id_token", "session_token", "auth_token", "bearer_token"),
)
HEADERS: Final = ("authorization", "proxy-authorization", "cookie", "set-cookie", "api-key", "x-amz-security-token")
# Of the built-in patterns those of credentials: mail addresses and card numbers may be what a task is about.
_LOOKS: Final = tuple(p for p in PATTERNS if p.name in {"bearer token", "API key", "JSON web token"})
_ENVIRONMENT: Final = re.compile(r"(?i)(api_?key|token|secret|passw(or)?d|credential|private_?key)")
_SHORTEST: Final = 8  # shorter texts are words


@dataclass(frozen=True, slots=True)
class Redaction:
    """``fields``: names whose values are taken out, beside the built-in ones; ``patterns``: texts by their looks."""

    fields: tuple[str, ...] = ()
    patterns: tuple[Pattern, ...] = _LOOKS
    from_environment: bool = True  # values of variables that are named like secrets
    _names: re.Pattern[str] = field(init=False, repr=False)
    _quoted: re.Pattern[str] = field(init=False, repr=False)
    _bare: re.Pattern[str] = field(init=False, repr=False)
    _assigned: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        wanted = (*FIELDS, *self.fields)
        ends = "|".join(re.sub(r"_|\\-", "[_-]?", re.escape(name)) for name in wanted)
        names = rf"(?:[A-Za-z0-9_-]*)(?:{ends})"
        flags = re.IGNORECASE
        object.__setattr__(self, "_names", re.compile(names, flags))
        # JSON in text, and JSON in a string of JSON: the same quotes, escaped, on both sides.
        quoted = rf'((?<!\\)(\\*)"{names}\2"\s*:\s*\2")(?:.*?)(?<!\\)(?=\2")'
        object.__setattr__(self, "_quoted", re.compile(quoted, flags | re.DOTALL))
        object.__setattr__(
            self, "_bare", re.compile(rf'((?<!\\)(\\*)"{names}\2"\s*:\s*)(?:-?\d[\d.eE+-]*|true|false)', flags)
        )
        object.__setattr__(self, "_assigned", re.compile(rf"((?:^|[?&;\s]){names}=)[^\s&;\"']+", flags))

    def secrets(self) -> set[str]:
        """Return the secrets of the environment."""
        if not self.from_environment:
            return set()
        return {value for name, value in os.environ.items() if _ENVIRONMENT.search(name) and len(value) >= _SHORTEST}

    def secrets_of(self, headers: Iterable[tuple[str, str]]) -> set[str]:
        """Return the secrets that a request's headers hold, without the name of their scheme."""
        found = {value.rpartition(" ")[2] for name, value in headers if self.is_secret_header(name)}
        return {value for value in found if len(value) >= _SHORTEST}

    def is_secret_header(self, name: str) -> bool:
        """Whether a header holds a credential."""
        return name.lower() in HEADERS or self._names.fullmatch(name) is not None

    def clean(self, data: Any, secrets: Iterable[str] = ()) -> Any:
        """Return JSON data without what is secret."""
        if isinstance(data, str):
            return self.clean_text(data, secrets)
        if isinstance(data, list):
            return [self.clean(item, secrets) for item in data]
        if isinstance(data, Mapping):
            mark = next(iter(data), "") if len(data) == 1 else ""
            if mark == "$dict" and isinstance(data[mark], list):
                return {mark: [self._pair(pair, secrets) for pair in data[mark]]}
            if mark in {"$bytes", "$bytearray"} and isinstance(data[mark], str):
                return {mark: self._bytes(data[mark], secrets)}
            return {self.clean_text(key, secrets): self._value(key, item, secrets) for key, item in data.items()}
        return data

    def _pair(self, pair: Any, secrets: Iterable[str]) -> Any:
        """Clean a key and its value, as ``values`` writes those of a mapping whose keys are not all plain names."""
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            return self.clean(pair, secrets)
        return [self.clean_text(pair[0], secrets), self._value(pair[0], pair[1], secrets)]

    def _bytes(self, given: str, secrets: Iterable[str]) -> str:
        try:
            text = base64.b64decode(given).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError):
            return given
        cleaned = self.clean_text(text, secrets)
        return given if cleaned == text else base64.b64encode(cleaned.encode()).decode("ascii")

    def _value(self, name: str, value: Any, secrets: Iterable[str]) -> Any:
        return REDACTED if value is not None and self._names.fullmatch(name) else self.clean(value, secrets)

    def clean_text(self, text: str, secrets: Iterable[str] = ()) -> str:
        """Return text, which may be JSON, without what is secret; JSON stays JSON."""
        # Most texts are short and plain, and expressions cost far more than looking for a character.
        if len(text) >= _SHORTEST:
            # The longest first: one secret may begin with another, whose removal would leave its end standing.
            for secret in sorted(secrets, key=len, reverse=True):
                text = text.replace(secret, REDACTED)
            for pattern in self.patterns:
                text = pattern.applied(text)
        if '"' in text:
            text = self._quoted.sub(lambda found: found[1] + REDACTED, text)
            text = self._bare.sub(lambda found: f'{found[1]}{found[2]}"{REDACTED}{found[2]}"', text)
        return self._assigned.sub(lambda found: found[1] + REDACTED, text) if "=" in text else text


BUILT_IN: Final = Redaction()
