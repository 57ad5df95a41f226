"""What a repeated test asks for, whether its attempts reach it, and how it says so.

Rule: attempts of one test are taken as independent runs of one task, and the message says that and n. A bound is asked
for only where ``confidence`` is given; the observed share decides otherwise. What was not judged clears nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import comb

from surefoot.evaluation.compare_sides import judged, reason, strip
from surefoot.evaluation.errors import EvaluationError
from surefoot.evaluation.records import SPARED, Attempt


class GateError(EvaluationError):
    """A gate that no result could pass, or that says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What is asked of the attempts. Without a minimum, all of them have to be acceptable."""

    k: int = 10  # of Pass^k
    attempts: int | None = None  # how many are made; None: k
    min_pass_hat_k: float | None = None
    min_yield: float | None = None
    confidence: float | None = None  # of one-sided bounds; None: the observed shares decide

    @property
    def made(self) -> int:
        """How many attempts are made."""
        return self.attempts or self.k

    @property
    def strict(self) -> float | None:
        """What Pass^k has to reach."""
        return 1.0 if self.min_pass_hat_k is None and self.min_yield is None else self.min_pass_hat_k


def checked(gate: Gate) -> Gate:
    """Return the gate. Raises GateError if it makes no sense, or if even a perfect agent could not pass it."""
    if gate.k < 1 or gate.made < gate.k:
        raise GateError(f"k = {gate.k} of {gate.made} attempts: make at least k attempts, and k at least 1.")
    for name in ("min_pass_hat_k", "min_yield", "confidence"):
        value = getattr(gate, name)
        if value is not None and not 0 < value <= 1:
            raise GateError(f"{name}={value}: it lies between 0 and 1 (.95, not 95).")
    if gate.confidence is None:
        return gate
    if gate.confidence == 1 or gate.strict == 1 or gate.min_yield == 1:
        raise GateError("no number of attempts shows a share of 1, or with confidence 1; ask for less than 1.")
    # All of n acceptable: the lower bound of the yield is (1 - confidence)^(1/n), that of Pass^k its k-th power.
    power = {gate.min_yield: 1, gate.strict: gate.k}
    needed = [math.log(1 - gate.confidence) * times / math.log(least) for least, times in power.items() if least]
    if gate.made < max(needed):
        raise GateError(
            f"{gate.made} attempts cannot show that at confidence {gate.confidence:g}, even if all are acceptable: "
            f"make attempts={math.ceil(max(needed))}, or ask for less."
        )
    return gate


@dataclass(frozen=True, slots=True)
class Repeated:
    """The attempts of one test, or of one call of ``repeat_agent``."""

    gate: Gate
    attempts: tuple[Attempt, ...]
    replay: str = ""  # the command that makes one attempt again; {} stands for its repetition
    recorded: str = ""
    traces: dict[int, str] = field(default_factory=dict)  # repetition to the failure as pytest shows it

    @property
    def n(self) -> int:
        """How many attempts were judged."""
        return sum(judged(attempt) for attempt in self.attempts)

    @property
    def c(self) -> int:
        """How many of those were acceptable."""
        return sum(judged(attempt) and attempt.acceptable is True for attempt in self.attempts)

    @property
    def outputs(self) -> list[object]:
        """What the attempts returned."""
        return [attempt.output for attempt in self.attempts]

    @property
    def share(self) -> float | None:
        """The yield: the share of judged attempts that were acceptable."""
        return self.c / self.n if self.n else None

    def pass_hat_k(self, k: int | None = None) -> float | None:
        """Return the chance that k attempts are all acceptable; None with fewer than k judged ones."""
        k = k or self.gate.k
        return comb(self.c, k) / comb(self.n, k) if self.n >= k else None

    @property
    def level(self) -> float:
        """Of the interval."""
        return self.gate.confidence or 0.95

    def interval(self) -> tuple[float, float]:
        """Return the two-sided Clopper-Pearson interval of the yield, at 95 % or the gate's confidence."""
        tail = (1 - self.level) / 2
        return clopper_pearson_lower(self.c, self.n, tail), 1 - clopper_pearson_lower(self.n - self.c, self.n, tail)

    @property
    def missed(self) -> list[str]:
        """What the gate asked for and did not get."""
        gate = self.gate
        if self.n < gate.made:
            return [f"{gate.made} judged attempts were asked for, and there are {self.n}"]
        found = [("yield", gate.min_yield, self.share, 1), (f"Pass^{gate.k}", gate.strict, self.pass_hat_k(), gate.k)]
        missed = []
        for name, least, seen, power in found:
            value = seen if gate.confidence is None else self._bound() ** power
            if least is not None and (value is None or value < least):
                what = "" if gate.confidence is None else f" at confidence {gate.confidence:g}, as its lower bound"
                missed.append(f"{name} is {0 if value is None else value:.3f}{what}, and has to reach {least:g}")
        return missed

    def _bound(self) -> float:
        return clopper_pearson_lower(self.c, self.n, 1 - self.level)

    def require(self) -> None:
        """Raise AssertionError with the distribution if the gate is not reached."""
        if self.missed:
            raise AssertionError(str(self))

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        lines = [f"acceptable in {self.c} of {self.n} judged attempts: {'; '.join(self.missed) or 'as asked'}"]
        lines.append(f"  {strip(list(self.attempts))}   ● acceptable  ○ not acceptable  · not judged")
        if self.n:
            low, high = self.interval()
            lines.append(
                f"  yield {self.share:.3f}, {100 * self.level:g} % interval [{low:.3f}, {high:.3f}] "
                f"(Clopper-Pearson, n = {self.n} attempts, taken as independent)"
            )
        spared = [attempt for attempt in self.attempts if not judged(attempt)]
        if spared:
            lines.append(f"  not judged: {len(spared)}, the first is attempt {_told(spared[0])}")
        failed = self.first_failure
        if failed is not None:
            lines.append(f"  first failing attempt: {_told(failed)}")
            lines += ["", *(f"    {line}" for line in self.traces.get(failed.repetition, "").splitlines()), ""]
        again = failed or next(iter(spared), None)
        if again is not None and self.replay:
            lines.append(f"  replay it: {self.replay.format(again.repetition)}")
        if self.recorded:
            lines.append(f"  recorded in {self.recorded}")
        return lines

    @property
    def first_failure(self) -> Attempt | None:
        """The first attempt that was judged and not acceptable."""
        return next((each for each in self.attempts if judged(each) and not each.acceptable), None)

    def properties(self) -> list[tuple[str, object]]:
        """Return what JUnit files and other reports keep of it."""
        found: list[tuple[str, object]] = [
            ("surefoot.attempts", self.n),
            ("surefoot.acceptable", self.c),
            ("surefoot.not_judged", len(self.attempts) - self.n),
            ("surefoot.strip", strip(list(self.attempts))),
        ]
        if self.n:
            low, high = self.interval()
            found += [
                ("surefoot.yield", f"{self.share:.6g}"),
                ("surefoot.yield_interval", f"[{low:.6g}, {high:.6g}]"),
                ("surefoot.interval_method", f"Clopper-Pearson at {self.level:g}, n = {self.n}"),
            ]
        if (strict := self.pass_hat_k()) is not None:
            found.append((f"surefoot.pass_hat_{self.gate.k}", f"{strict:.6g}"))
        return found


def _told(attempt: Attempt) -> str:
    why = "the infrastructure ended it: " if attempt.outcome in SPARED else ""
    return f"{attempt.repetition}: {why}{reason(attempt)}"


def clopper_pearson_lower(hits: int, n: int, alpha: float) -> float:
    """Return the exact lower bound of a share of runs that is wrong with a chance of at most alpha."""
    # scipy.stats, by which evidence's intervals go, takes two seconds to import; each pytest worker would.
    from scipy.special import betaincinv

    return float(betaincinv(hits, n - hits + 1, alpha)) if hits else 0.0


def gate_from(arguments: Sequence[object], named: dict[str, object]) -> Gate:
    """Return the gate of a mark's arguments. Raises GateError for those that do not exist."""
    if len(arguments) > 1:
        raise GateError("repeat_agent: only k may stand without its name.")
    try:
        return checked(Gate(**({"k": arguments[0]} if arguments else {}), **named))  # type: ignore[arg-type]  # caught
    except TypeError as error:
        raise GateError(
            f"repeat_agent takes k, attempts, min_pass_hat_k, min_yield and confidence: {error}."
        ) from error
