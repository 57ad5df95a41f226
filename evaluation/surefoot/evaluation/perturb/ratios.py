"""What a perturbation left of the yield, beside both yields and the dose that arrived.

Rule: each variant is compared by the kind of its perturbations; one that mixes kinds has no ratio of its own, because
nobody could say what cost it its yield.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.evaluation.loading import resolve
from surefoot.evaluation.perturb.dose import Dose, doses
from surefoot.evaluation.perturb.environment import Environment
from surefoot.evaluation.perturb.faults import Faults
from surefoot.evaluation.perturb.prompts import Prompts
from surefoot.evaluation.perturb.world import ConcurrentUpdate, Interrupted
from surefoot.evaluation.records import Attempt
from surefoot.evaluation.results import group_table, of_variant, variants
from surefoot.evaluation.suite import Suite, Variant
from surefoot.processors.evidence.groups import GroupTable
from surefoot.processors.evidence.robustness import Kind, Robustness, robustness

_KIND: Mapping[type[Any], Kind] = {
    Faults: "fault",
    Interrupted: "fault",
    Environment: "environment",
    ConcurrentUpdate: "environment",
    Prompts: "prompt",
}


@dataclass(frozen=True, slots=True)
class Retained:
    """One variant beside the baseline. ``why``: why it has no ratio."""

    variant: str
    robustness: Robustness | None
    dose: Dose | None
    why: str = ""

    def __str__(self) -> str:
        if self.robustness is None:
            return f"{self.variant}: {self.why}"
        ratio = self.robustness.ratio
        value = "undefined" if ratio.value is None else f"{ratio.value:.4f}"
        parts = (ratio.says, ratio.reason or "", "" if self.dose is None else str(self.dose))
        return f"{self.variant}: {ratio.name} {value}; " + "; ".join(part for part in parts if part)


def kind_of(entries: Sequence[Any]) -> Kind | None:
    """Return the one kind of a variant's perturbations, None if it is another's, or there are several."""
    kinds = {_KIND.get(type(resolve(one, "perturb"))) for one in entries}
    return kinds.pop() if len(kinds) == 1 else None


def of_suite(suite: Suite, attempts: Sequence[Attempt]) -> list[Retained]:
    """Return a line for each perturbed variant of a run, beside the first variant that nothing disturbs."""
    made = set(variants(attempts))
    # As the suite has them, not as they happened to end; what was not asked for may not be written yet.
    entries = {variant.name: _entries(suite, variant) for variant in suite.variants if variant.name in made}
    there = list(entries)
    calm = next((name for name in there if not entries[name]), None)
    disturbed = [name for name in there if entries[name]]
    if calm is None or not disturbed:
        return []
    tables = {name: group_table(of_variant(attempts, name)) for name in (calm, *disturbed)}
    return retained(tables[calm], {name: tables[name] for name in disturbed}, entries, doses(attempts))


def _entries(suite: Suite, variant: Variant) -> tuple[Any, ...]:
    agent = resolve(variant.agent or suite.agent, f"agent of {variant.name}")
    return (*variant.perturb, agent) if isinstance(agent, Interrupted) else variant.perturb


def retained(
    baseline: GroupTable,
    perturbed: Mapping[str, GroupTable],
    entries: Mapping[str, Sequence[Any]],
    delivered: Mapping[str, Dose] | None = None,
) -> list[Retained]:
    """Return a line for each perturbed variant; ``entries``: each variant's ``perturb``."""
    lines = []
    for variant, groups in perturbed.items():
        kind = kind_of(entries[variant])
        if kind is None:
            lines.append(Retained(variant, None, None, "no ratio: it has not one kind of Surefoot's perturbations"))
        else:
            lines.append(Retained(variant, robustness(baseline, groups, kind), (delivered or {}).get(variant)))
    return lines
