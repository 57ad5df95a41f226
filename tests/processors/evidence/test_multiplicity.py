"""The declared rule decides what each gate needs, and says for which claim."""

from __future__ import annotations

import pytest

from surefoot.processors.evidence.multiplicity import multiplicity
from surefoot.processors.evidence.types import EvidenceInputError


def test_intersection_union_keeps_the_level_for_false_approval() -> None:
    found = multiplicity("intersection_union", 7)
    assert found.per_gate == found.confidence == 0.95
    assert "false approval" in found.purpose


def test_bonferroni_divides_the_error_for_simultaneous_coverage() -> None:
    found = multiplicity("bonferroni", 3)
    assert found.per_gate == pytest.approx(0.98333333)
    assert f"{found.z:.3f}" == "2.128"
    assert "simultaneous" in found.purpose
    assert multiplicity("bonferroni", 1).per_gate == pytest.approx(0.95)


@pytest.mark.parametrize(("gates", "confidence"), [(0, 0.95), (3, 95), (3, 0)])
def test_no_gates_and_percentages_are_refused(gates: int, confidence: float) -> None:
    with pytest.raises(EvidenceInputError):
        multiplicity("bonferroni", gates, confidence)
