"""Plain JSONL and CSV: one row per attempt, in documented columns. Anything else that a row says is kept.

Rule: a row that cannot be understood is dropped with its line and the remedy, and counted; the good ones are kept.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from surefoot.evaluation.importers.reading import Dropped, Format, Options, ResultsError, accepted
from surefoot.evaluation.records import Attempt, Failure, Outcome, Verdict

_YES: Final = frozenset({"true", "pass", "passed", "yes", "success", "resolved", "correct"})
_NO: Final = frozenset({"false", "fail", "failed", "no", "failure", "unresolved", "incorrect"})
_OUTCOMES: Final[tuple[Outcome, ...]] = ("ok", "error", "timeout", "infrastructure", "lost")


class _RowError(ValueError):
    """What is wrong with a row, and the remedy."""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _time(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    try:
        return _finite(value)
    except ValueError:
        if not isinstance(value, str) or _is_number(value):
            raise
        found = datetime.fromisoformat(value)
    # A time without a zone is taken as UTC: a machine's zone would make the same file mean different things.
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _finite(value: Any) -> float:
    """Return a number. NaN is what tables write where there is none; it must become no figure."""
    found = float(value)
    if not math.isfinite(found):
        raise ValueError
    return found


def _amount(value: Any) -> float:
    found = _finite(value)
    if found < 0 or isinstance(value, bool):
        raise ValueError
    return found


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(name.strip() for name in value.split("|") if name.strip())
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return tuple(value)
    raise ValueError


def _outcome(value: Any) -> Outcome:
    for known in _OUTCOMES:
        if value == known:
            return known
    raise ValueError


def _whole(value: Any) -> int:
    found = _amount(value)
    if not found.is_integer():
        raise ValueError
    return int(found)


def _percent(value: Any) -> float:
    found = _amount(value)
    if found > 100:
        raise ValueError
    return found


# Column: how its value is read, and what it has to be.
COLUMNS: Final[Mapping[str, tuple[Callable[[Any], Any], str]]] = {
    "task_id": (_text, "text"),
    "variant": (_text, "text"),
    "repetition": (_whole, "a whole number from 0 on"),
    "outcome": (_outcome, f"one of {', '.join(_OUTCOMES)}"),
    "error": (_text, "text"),
    "output": (lambda value: value, "anything"),
    "signature": (_text, "text: equal means the same final state"),
    "task_class": (_text, "text"),
    "consequence_class": (_text, "text"),
    "started_at": (_time, "unix seconds or ISO 8601"),
    "ended_at": (_time, "unix seconds or ISO 8601"),
    "confidence": (_percent, "a number from 0 to 100"),
    "input_tokens": (_whole, "a whole number from 0 on"),
    "output_tokens": (_whole, "a whole number from 0 on"),
    "cost_usd": (_amount, "a number from 0 on"),
    "model_calls": (_whole, "a whole number from 0 on"),
    "tool_calls": (_whole, "a whole number from 0 on"),
    "tool_errors": (_whole, "a whole number from 0 on"),
    "actions": (_names, "names in order: a list, or text with | between them"),
    "trace_id": (_text, "text"),
    "grader_name": (_text, "text"),
    "grader_kind": (_text, "executable, human or model"),
}
_OF_VERDICT: Final = frozenset({"grader_name", "grader_kind"})


def _attempt(row: Any, options: Options) -> Attempt:
    if not isinstance(row, dict):
        raise _RowError("it is no JSON object; write one object a line")
    theirs = {options.columns.get(name, name): name for name in (*COLUMNS, "acceptable")}
    given = {theirs[name]: value for name, value in row.items() if name in theirs and value is not None and value != ""}
    rest = {name: value for name, value in row.items() if name not in theirs}
    if "task_id" not in given:
        raise _RowError(f"no {options.columns.get('task_id', 'task_id')}; every attempt needs its task's id")
    if options.columns.get("acceptable", "acceptable") not in row:
        name = options.columns.get("acceptable", "acceptable")
        raise _RowError(f"no {name}; write true, false or, where nobody judged it, nothing")
    acceptable = _acceptable(given.pop("acceptable", None), options)
    read = {name: _read(name, value) for name, value in given.items()}
    if read.get("ended_at", math.inf) < read.get("started_at", -math.inf):
        raise _RowError("it ended before it began; correct started_at or ended_at")
    kind = read.get("grader_kind")
    if kind not in {None, "executable", "human", "model"}:
        raise _RowError(f"grader_kind is {kind!r}; write executable, human or model")
    verdict = Verdict(
        name="acceptable",
        kind="outcome",
        verdict="unresolved" if acceptable is None else "pass" if acceptable else "fail",
        grader_name=read.get("grader_name"),
        grader_kind=kind,
    )
    error = read.pop("error", None)
    return Attempt(
        attempt_id="",
        suite="",
        variant=read.pop("variant", ""),
        repetition=read.pop("repetition", -1),
        outcome=read.pop("outcome", "ok" if error is None else "error"),
        error=None if error is None else Failure("error", error),
        acceptable=acceptable,
        verdicts=(verdict,),
        equivalence="given" if "signature" in read else None,
        extra=rest,
        **{name: value for name, value in read.items() if name not in _OF_VERDICT},
    )


def _acceptable(value: Any, options: Options) -> bool | None:
    if value is None:
        return False if options.no_verdict == "fail" else None
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in _YES | _NO:
        return word in _YES
    try:
        return accepted(_finite(word), options)
    except (ValueError, OverflowError):
        raise _RowError(f"acceptable is {value!r}; write true, false, pass, fail, a score or nothing") from None


def _read(name: str, value: Any) -> Any:
    convert, wanted = COLUMNS[name]
    try:
        return convert(value)
    except (TypeError, ValueError, OverflowError):
        raise _RowError(f"{name} is {value!r}; write {wanted}") from None


def _read_jsonl(path: Path, options: Options, _header: Mapping[str, Any]) -> Iterator[Attempt | Dropped]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                yield _attempt(json.loads(line.removeprefix(b"\xef\xbb\xbf")), options)
            except _RowError as error:
                yield Dropped(path.name, f"line {number}", str(error))
            except (ValueError, RecursionError) as error:
                yield Dropped(path.name, f"line {number}", f"it is no JSON ({error}); correct or remove it")


def _read_csv(path: Path, options: Options, header: Mapping[str, Any]) -> Iterator[Attempt | Dropped]:
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        rows = csv.DictReader(file, strict=True)
        while True:
            start = rows.line_num + 1
            try:
                row = next(rows, None)
                if row is None:
                    return
                yield _attempt(_whole_row(row, len(header["columns"])), options)
            except _RowError as error:
                yield Dropped(path.name, f"line {start}", str(error))
            except csv.Error as error:
                yield Dropped(path.name, f"line {start}", f"it is no CSV ({error}); correct its quotes")


def _whole_row(row: dict[Any, Any], cells: int) -> dict[Any, Any]:
    # The reader puts what is too much under None, and None where a cell is absent.
    if None in row or None in row.values():
        raise _RowError(f"it has not {cells} cells; quote those with commas or line ends")
    if any(_no_text(cell) for cell in row.values()):
        # What stands for a letter that cannot be read would make one task of two.
        raise _RowError("it is not UTF-8; save the file as UTF-8")
    return row


def _no_text(text: str) -> bool:
    return any(letter == "\0" or "\udc80" <= letter <= "\udcff" for letter in text)


def _csv_header(path: Path, options: Options) -> dict[str, Any]:
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # outputs are long; the default ends at 131,072 characters
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        columns = next(csv.reader(file), [])
    if _no_text("".join(columns)):
        raise ResultsError(f"Reading {path.name}: its first line is not UTF-8. Save the file as UTF-8.")
    needed = [options.columns.get(name, name) for name in ("task_id", "acceptable")]
    absent = [name for name in needed if name not in columns]
    theirs = {options.columns.get(name, name) for name in (*COLUMNS, "acceptable")}
    twice = [name for name in columns if name in theirs and columns.count(name) > 1]
    if twice:
        raise ResultsError(f"Reading {path.name}: the column {twice[0]} stands twice. Rename one of them.")
    if absent:
        raise ResultsError(
            f"Reading {path.name}: no column {', '.join(absent)}; it has {', '.join(columns) or 'none'}. "
            f"Rename them, or say which they are: --map {absent[0]}=COLUMN."
        )
    return {"columns": columns}


JSONL: Final = Format(
    name="jsonl",
    about="one JSON object a line, with task_id and acceptable",
    read=_read_jsonl,
    header=lambda _path, _options: {},
)
CSV: Final = Format(
    name="csv", about="a table with the columns task_id and acceptable", read=_read_csv, header=_csv_header
)
