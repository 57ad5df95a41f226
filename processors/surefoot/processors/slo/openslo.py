"""A file to the documents that stand in it, or to problems that name file, line, field and remedy.

Contract: every document is read by itself; one that is wrong yields problems and its neighbours are used. A file that
is not YAML yields one problem from there on. The shape is checked here; what reaches across fields and documents is
``openslo_references``'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from surefoot.processors.documents import Document, DocumentError, dotted, read_documents
from surefoot.processors.slo import adjustments, policy
from surefoot.processors.slo import openslo_documents as documents
from surefoot.processors.slo.adjustments import BudgetAdjustment
from surefoot.processors.slo.openslo_rules import Refused, Steps
from surefoot.processors.slo.openslo_schema import API_VERSION
from surefoot.processors.slo.policy import ErrorBudgetPolicy
from surefoot.processors.slo.problems import Problem
from surefoot.processors.slo.refusals import OWN_VERSION, kind_of, parse
from surefoot.processors.suggestions import suggestion

_DOCS: Final = "docs/slos.md"
_VERSION: Final[Steps] = ("apiVersion",)
_OWN: Final = {policy.KIND: policy.read, adjustments.KIND: adjustments.read}


@dataclass(frozen=True, slots=True)
class Entry:
    """One document, and where it stands."""

    file: str
    kind: str
    name: str
    parsed: documents.Document | ErrorBudgetPolicy | BudgetAdjustment | None  # None: it has problems
    document: Document
    refused: tuple[Refused, ...] = ()  # what is wrong with it by itself

    def line(self, path: Steps = ("metadata", "name")) -> int:
        """The line of a field of it."""
        return self.document.line(path)

    def problem(self, refused: Refused, holds_up: tuple[str, ...] = ()) -> Problem:
        """What is wrong with it, as people read it."""
        line = self.line(refused.path)
        return Problem(self.file, line, dotted(refused.path), refused.what, refused.remedy, holds_up)


@dataclass(frozen=True, slots=True)
class Read:
    """What one file held."""

    entries: list[Entry] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)  # of the file; those of an entry are with it


def read_file(file: Path) -> Read:
    """The documents of a file. Never raises for what the file holds, or because it cannot be read."""
    read = Read()
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        read.problems.append(Problem(str(file), 1, "", f"it cannot be read: {error}", "make it a readable UTF-8 file"))
        return read
    try:
        for document in read_documents(text):
            read.entries.append(_read_document(document, str(file)))
    except DocumentError as error:
        read.problems.append(Problem(str(file), error.line, dotted(error.path), error.what, error.remedy))
    return read


def _read_document(document: Document, file: str) -> Entry:
    data = document.data
    if not isinstance(data, dict):
        what = f"the document is {kind_of(data)}, not a mapping"
        return Entry(file, "", "", None, document, (Refused((), what, f"begin with apiVersion: {API_VERSION}"),))
    kind, name = str(data.get("kind", "")), _name_of(data)
    wrong = list(_refuse_head(data))
    # A document of another version or kind has other fields.
    if any(refused.path != _VERSION or "apiVersion" in data for refused in wrong):
        return Entry(file, kind, name, None, document, tuple(wrong))
    parsed = _OWN[kind](document, file) if kind in _OWN else parse(documents.KINDS[kind], data, _DOCS)
    if isinstance(parsed, list):
        wrong += [refused for refused in parsed if refused.path != _VERSION]
    return Entry(file, kind, name, None if isinstance(parsed, list) else parsed, document, tuple(wrong))


def _name_of(data: dict[Any, Any]) -> str:
    metadata = data.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def _refuse_head(data: dict[Any, Any]) -> Iterator[Refused]:
    version, kind = data.get("apiVersion"), data.get("kind")
    right = OWN_VERSION if isinstance(kind, str) and kind in _OWN else API_VERSION
    if version != right:
        found = "is missing" if version is None else f"is {version!r}"
        yield Refused(_VERSION, f"the version {found}", f"write apiVersion: {right}")
    kinds = (*documents.KINDS, *_OWN)
    if kind is None:
        yield Refused(("kind",), "the kind is missing", "write kind: SLO")
    elif kind not in kinds:
        yield Refused(("kind",), f"{kind!r} is not a kind of document here", suggestion(str(kind), kinds))
