"""A ratio stands beside both yields and the dose."""

from __future__ import annotations

from typing import Any

from surefoot.evaluation.perturb import ConcurrentUpdate, Environment, Faults, Prompts
from surefoot.evaluation.perturb.dose import dose
from surefoot.evaluation.perturb.ratios import kind_of, retained
from surefoot.processors.evidence.groups import GroupTable


def test_the_worked_example() -> None:
    """Baseline .90, faults .90, environment 1.00 and paraphrases .50 of ten tasks, as in the article."""
    tables = {name: GroupTable.from_counts(10, [c] * 10) for name, c in [("faults", 9), ("other", 10), ("words", 5)]}
    entries: dict[str, list[Any]] = {
        "faults": [Faults()],
        "other": [Environment(dates="us")],
        "words": [Prompts(given={"t": ["x"]})],
    }
    found = retained(GroupTable.from_counts(10, [9] * 10), tables, entries, {"faults": dose(0.2, 100, ["empty"] * 18)})
    ratios = {line.variant: line.robustness for line in found if line.robustness is not None}
    values = {name: round(one.ratio.value, 6) for name, one in ratios.items() if one.ratio.value is not None}
    assert values == {"faults": 1.0, "other": 1.0, "words": 0.555556}
    assert ratios["other"].uncapped is not None
    assert round(ratios["other"].uncapped, 2) == 1.11
    assert str(found[0]).startswith(
        "faults: robustness_fault 1.0000; baseline 0.9000 (n = 100), perturbed 0.9000 (n = 100); "
        "dose asked 0.2, delivered 0.1800 (18 of 100 calls"
    )
    assert "prompt 0.5556; baseline 0.9000 (n = 100), perturbed 0.5000 (n = 100)" in str(found[2])


def test_a_mixture_has_no_ratio() -> None:
    assert kind_of([Faults(), Environment()]) is None
    assert kind_of([]) is None
    assert kind_of([print]) is None
    assert kind_of(["surefoot.evaluation.perturb:usual_faults"]) == "fault"
    assert kind_of([ConcurrentUpdate(change=print), Environment()]) == "environment"
    table = GroupTable.from_counts(1, [1])
    (line,) = retained(table, {"both": table}, {"both": [Faults(), Environment()]})
    assert str(line).startswith("both: no ratio")
