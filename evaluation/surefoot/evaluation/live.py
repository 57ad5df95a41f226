"""Figures while a run is under way: Pass^k and Mean@k of what is there, and what it cost."""

from __future__ import annotations

import numpy as np

from surefoot.evaluation.records import SPARED, Attempt
from surefoot.processors.evidence.repeated import pass_hat_each


class Live:
    """Sums of the attempts so far. Pass^k is over the groups that have k judged attempts already."""

    def __init__(self, k: int) -> None:
        self._k = k
        self._groups: dict[tuple[str, str], list[int]] = {}
        self._spared: set[tuple[str, str, int]] = set()
        self._usd: float | None = None

    def add(self, attempt: Attempt) -> None:
        """Count one attempt more."""
        (self._spared.add if attempt.outcome in SPARED else self._spared.discard)(attempt.slot)
        if attempt.cost_usd is not None:
            self._usd = (self._usd or 0.0) + attempt.cost_usd
        if attempt.acceptable is not None and attempt.outcome not in SPARED:
            group = self._groups.setdefault((attempt.variant, attempt.task_id), [0, 0])
            group[0] += 1
            group[1] += attempt.acceptable

    def text(self) -> str:
        """Return it for a line of a terminal."""
        parts = []
        for variant in dict.fromkeys(name for name, _ in self._groups):
            rows = np.array([row for (name, _), row in self._groups.items() if name == variant])
            n, c = rows[:, 0], rows[:, 1]
            strict = pass_hat_each(n, c, self._k)
            known = int((~np.isnan(strict)).sum())
            told = f"{100 * np.nanmean(strict):.0f} % (n = {known})" if known else "-"
            parts.append(f"{variant} Pass^{self._k} {told}, Mean {100 * np.mean(c / n):.0f} %")
        parts += [f"infrastructure {len(self._spared)}"] if self._spared else []
        parts += [f"{self._usd:.2f} USD"] if self._usd is not None else []
        return " | ".join(parts)
