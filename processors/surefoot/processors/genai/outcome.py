"""How a span ended: its outcome and the name of its error. The same rules for runs, tool calls and model calls.

Rules that real instrumentations force: cancellation is told apart from failure by the name of the exception, wherever
it stands; an exception that asks for a deferral, or that a guard raised, is no failure; ``error.type`` is often missing
or ``_OTHER``, then the exception event and the status message are asked. Names lose their module, so one error has one
name. Only spans that did not end well are looked at one by one, and each distinct name once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from surefoot.processors.genai.arrays import Bools, Codes, Ints, bools, text
from surefoot.processors.genai.marks import Marks
from surefoot.processors.genai.traces import Traces

OTHER: Final = "_OTHER"

OUTCOMES: Final = ("ok", "error", "retry", "cancelled", "deferred", "refused", "running", "abandoned", "unknown")
OK, ERROR, RETRY, CANCELLED, DEFERRED, REFUSED, RUNNING, ABANDONED, UNKNOWN = range(len(OUTCOMES))

_CANCELLED: Final = frozenset({"CancelledError", "GeneratorExit", "KeyboardInterrupt"})
_ABANDONED_STREAM: Final = "abandoned stream"
# pydantic-ai raises these to hand a tool call to a person or another process.
_DEFERRED: Final = frozenset({"CallDeferred", "ApprovalRequired"})
# A guard or a person said no: openai-agents' guardrails, pydantic-ai's answer to a denied approval.
_REFUSED: Final = frozenset(
    {
        "InputGuardrailTripwireTriggered",
        "OutputGuardrailTripwireTriggered",
        "ToolInputGuardrailTripwireTriggered",
        "ToolOutputGuardrailTripwireTriggered",
        "ToolDenied",
    }
)
_RETRY: Final = "ToolRetryError"

_IDENTIFIER: Final = re.compile(r"[\w.\-]{1,200}")
# "RuntimeError: 429" and "pkg.errors.RateLimit: slow down", but not "failed: no such city".
_PREFIX: Final = re.compile(r"((?:\w+\.)*[A-Z]\w*):(?:\s|$)")


@dataclass(frozen=True, slots=True)
class Endings:
    """How some nodes ended, in their order."""

    outcome: Codes  # places in OUTCOMES
    error_type: pa.StringArray  # null of what ended well


def endings(traces: Traces, nodes: Ints, marks: Marks, *, tools: bool = False) -> Endings:
    """Outcomes of spans. Only of ``tools`` can one be that another try was asked for."""
    outcome = np.zeros(len(nodes), np.int8)
    failed = bools(pc.equal(traces.column("status", nodes), "error"))
    told = traces.column("error_type", nodes)
    cancelled = marks.cancelled[nodes]
    bad = failed | bools(told.is_valid()) | cancelled
    at = np.flatnonzero(bad)
    names = np.full(len(nodes), -1, np.int64)
    words: list[str] = []
    if len(at):
        number: dict[str, int] = {}
        reports = zip(
            told.take(pa.array(at)).to_pylist(),
            marks.exceptions(nodes[at]).to_pylist(),
            traces.column("status_message", nodes[at]).to_pylist(),
            cancelled[at].tolist(),
            marks.retries[nodes[at]].tolist(),
            strict=True,
        )
        for place, (error_type, exception, message, stopped, retry) in zip(at.tolist(), reports, strict=True):
            name = error_name(error_type, exception, message)
            names[place] = number.setdefault(name, len(number))
            outcome[place] = CANCELLED if stopped else _outcome(name, message, tools, retry)
        words = list(number)
    return Endings(outcome, text(words, names))


def _outcome(name: str, message: str | None, tools: bool, retry: bool) -> int:
    if name in _CANCELLED or message == _ABANDONED_STREAM:
        return CANCELLED
    if name in _DEFERRED:
        return DEFERRED
    if name in _REFUSED:
        return REFUSED
    return RETRY if tools and (retry or name == _RETRY) else ERROR


@lru_cache(maxsize=4096)
def error_name(error_type: str | None, exception: str | None, message: str | None) -> str:
    """The error, first that tells something: ``error.type``, exception event, status message, ``_OTHER``."""
    for name in (error_type, exception):
        if name and name != OTHER and _IDENTIFIER.fullmatch(name):
            return _short(name)
    prefix = _PREFIX.match(message or "")
    return _short(prefix[1]) if prefix else OTHER


def _short(name: str) -> str:
    return name.rstrip(".").rpartition(".")[2] or name


def words(outcome: Codes) -> pa.StringArray:
    """Outcomes as text."""
    return text(OUTCOMES, outcome)


def failures(outcome: Codes) -> Bools:
    """What a run that still ended well has recovered from."""
    found: Bools = (outcome == ERROR) | (outcome == RETRY)
    return found
