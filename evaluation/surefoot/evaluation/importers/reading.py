"""Other people's results as attempts: what every importer gives, and what is common to all of them.

Rule: what the source says is kept (file, hash, place, its own fields), and what it does not say is told, never made up.
Attempts come one at a time: an importer holds one of them and a few numbers per task, not the file.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Literal

from surefoot.evaluation.errors import EvaluationError
from surefoot.evaluation.records import Attempt

_KEPT_REASONS: Final = 1000  # dropped rows whose reasons are kept; all are counted


class ResultsError(EvaluationError):
    """Results that cannot be imported as asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the caller says beside the files."""

    suite: str | None = None
    variant: str | None = None
    accept_from: float = 1.0  # the least score that is acceptable, where a format has scores
    no_verdict: Literal["fail", "missing"] | None = None  # None: as the source's own figures count them
    columns: Mapping[str, str] = field(default_factory=dict)  # of plain formats: our name, the file's
    scorer: str | None = None  # of several, the one that decides


@dataclass(frozen=True, slots=True)
class Dropped:
    """A row that is no attempt: where, and what would make it one."""

    file: str
    place: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How one kind of file is read.

    ``read`` yields attempts with the source's own repetition or -1, and without an id; ``header`` gives what the file
    says of itself as a whole, of which ``suite`` and ``variant`` name the attempts.
    """

    name: str
    about: str
    read: Callable[[Path, Options, Mapping[str, Any]], Iterator[Attempt | Dropped]]
    header: Callable[[Path, Options], dict[str, Any]]
    cannot_tell: Mapping[str, str] = field(default_factory=dict)  # fact: why this format never has it
    grader_kind: Literal["executable"] | None = None
    version: int = 1


# What evidence would like to know of an attempt, and how one sees that an attempt tells it.
FACTS: Final[Mapping[str, Callable[[Attempt], bool]]] = {
    "times": lambda attempt: attempt.started_at is not None and attempt.ended_at is not None,
    "costs": lambda attempt: attempt.cost_usd is not None,
    "tokens": lambda attempt: attempt.input_tokens is not None,
    "equivalence of failures": lambda attempt: attempt.signature is not None,
    "confidence": lambda attempt: attempt.confidence is not None,
    "tool calls": lambda attempt: attempt.actions is not None,
    "process": lambda attempt: any(verdict.kind == "process" for verdict in attempt.verdicts),
    "classes of tasks": lambda attempt: attempt.task_class is not None,
}


class Results:
    """The attempts of some files. Iterate once; what is counted is complete after that."""

    def __init__(self, form: Format, paths: Sequence[Path], options: Options) -> None:
        self.format, self.options = form, options
        self.dropped: list[Dropped] = []
        self.dropped_count = 0
        self.attempts = 0
        self._told: Counter[str] = Counter()
        self._paths = list(paths)
        self._headers = [form.header(path, options) for path in paths]
        self._hashes = [_sha256(path) for path in paths]
        self._check_files()
        self._names = [self._name(at) for at in range(len(paths))]

    def __iter__(self) -> Iterator[Attempt]:
        mark, taken = self.provenance_id, Counter[tuple[str, str]]()
        for path, header, sha, (suite, variant) in zip(
            self._paths, self._headers, self._hashes, self._names, strict=True
        ):
            for place, found in enumerate(self.format.read(path, self.options, header)):
                if isinstance(found, Dropped):
                    self._drop(found)
                    continue
                # The order in the files numbers repetitions: several files may each begin at 0.
                named = self.options.variant or found.variant or variant
                slot = (named, found.task_id)
                own = {} if found.repetition < 0 else {"repetition": found.repetition}
                attempt = replace(
                    found,
                    attempt_id=hashlib.sha256(f"{sha}/{place}".encode()).hexdigest()[:16],
                    suite=suite,
                    variant=named,
                    repetition=taken[slot],
                    provenance_id=mark,
                    extra={**found.extra, **own, "file": path.name},
                )
                taken[slot] += 1
                self.attempts += 1
                self._told.update(fact for fact, tells in FACTS.items() if tells(attempt))
                yield attempt
        if not self.attempts:
            names = ", ".join(path.name for path in self._paths)
            why = (
                f"{self.dropped[0].place}: {self.dropped[0].reason}"
                if self.dropped
                else f"The format is {self.format.about}"
            )
            raise ResultsError(f"Importing {names} as {self.format.name}: no attempt was found. {why}.")

    @property
    def provenance_id(self) -> str:
        """Which import the attempts came of: equal files and options give the same."""
        said = {"format": self.format.name, "version": self.format.version, "files": self._hashes}
        text = json.dumps({**said, "options": asdict(self.options)}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def provenance(self) -> dict[str, Any]:
        """Return where it all came from."""
        files = [
            {"name": path.name, "sha256": sha, "bytes": path.stat().st_size, "says": header}
            for path, sha, header in zip(self._paths, self._hashes, self._headers, strict=True)
        ]
        return {
            "id": self.provenance_id,
            "imported_as": f"{self.format.name}/{self.format.version}",
            "imported_at": time.time(),
            "surefoot": version("surefoot"),
            "options": {name: value for name, value in asdict(self.options).items() if value},
            "files": files,
            "attempts": self.attempts,
            "dropped": self.dropped_count,
            "cannot_tell": self.cannot_tell(),
        }

    def cannot_tell(self) -> list[str]:
        """Return what nobody will learn from these attempts, and why."""
        said = []
        for fact in FACTS:
            told = self._told[fact]
            if told < self.attempts:
                why = self.format.cannot_tell.get(fact, "not in these files")
                said.append(f"{fact}: {f'only in {told:,} of {self.attempts:,} attempts' if told else why}")
        return [*said, *(why for fact, why in self.format.cannot_tell.items() if fact not in FACTS)]

    def _drop(self, found: Dropped) -> None:
        self.dropped_count += 1
        if len(self.dropped) < _KEPT_REASONS:
            self.dropped.append(found)

    def _check_files(self) -> None:
        if len(set(self._hashes)) < len(self._hashes):
            raise ResultsError("Importing results: the same file is given twice; name each once.")

    def _name(self, at: int) -> tuple[str, str]:
        """The suite and the variant of a file's attempts."""
        path, header = self._paths[at], self._headers[at]
        variant = self.options.variant or header.get("variant")
        if variant is None:
            variant = path.stem
            if sum(other.stem == variant for other in self._paths) > 1:
                raise ResultsError(
                    f"Importing results: several files are named {path.name} and none says what was run; give "
                    "--variant for runs of one system, and import each system by itself."
                )
        return self.options.suite or header.get("suite") or self.format.name, variant


def accepted(score: float, options: Options) -> bool:
    """Whether a score is acceptable; a millionth is forgiven, as sums of floats need it."""
    return score >= options.accept_from - 1e-6


def made(path: Path, place: str, make: Callable[[], Attempt]) -> Attempt | Dropped:
    """Return the attempt; where a part of the row has another type than the format gives it, what is wrong with it."""
    try:
        return make()
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        why = f"a part of it is not as the format has it ({type(error).__name__}: {error}); correct or remove it"
        return Dropped(path.name, place, why)


def missing_fields(found: Any, names: Iterable[str]) -> list[str]:
    """Return which of the names an object lacks; all of them where it is none. A task has an id that is not null."""
    if not isinstance(found, dict):
        return list(names)
    return [name for name in names if name not in found or (name == "task_id" and found[name] is None)]


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ResultsError(f"Importing results: {error}. Name files that can be read.") from error
