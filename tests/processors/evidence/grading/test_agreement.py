"""Agreement, kappa and both errors, against published figures."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.processors.evidence.grading.agreement import Confusion, agreement, kappa
from surefoot.processors.evidence.types import EvidenceInputError


def test_kappa_to_the_digit() -> None:
    found = agreement(Confusion(17, 10, 17, 70)).kappa
    assert found.value == pytest.approx(0.3985932004689333, abs=1e-15)
    (interval,) = found.intervals
    assert interval.note.endswith("standard error 0.094947")
    assert interval.low == pytest.approx(0.212501, abs=1e-6)
    assert interval.high == pytest.approx(0.584685, abs=1e-6)
    assert not interval.gate


def test_rates_have_their_own_denominators() -> None:
    found = agreement(Confusion(accepted_good=90, accepted_bad=4, rejected_good=10, rejected_bad=16, unresolved=3))
    assert found.agreement.value == pytest.approx(106 / 120)
    assert (found.false_accept.value, found.false_accept.runs) == (4 / 20, 20)
    assert (found.false_reject.value, found.false_reject.runs) == (10 / 100, 100)
    assert found.youden.value == pytest.approx(0.7)
    assert found.accepted_right.value == pytest.approx(90 / 94)
    assert found.rejected_right.value == pytest.approx(16 / 26)
    assert found.confusion.runs == 120
    low, high = found.youden.intervals[0].low, found.youden.intervals[0].high
    assert low is not None
    assert high is not None
    assert 0 < low < 0.7 < high < 1


def test_nothing_audited_is_undefined_with_a_reason() -> None:
    found = agreement(Confusion(0, 0, 0, 0, unresolved=2))
    for one in (found.agreement, found.kappa, found.false_accept, found.youden, found.accepted_right):
        assert (one.value, one.intervals) == (None, ())
        assert one.reason


def test_all_agree_on_one_verdict() -> None:
    found = agreement(Confusion(30, 0, 0, 0))
    assert found.agreement.value == 1
    low = found.agreement.intervals[0].low
    assert low is not None
    assert 0.85 < low < 0.9
    assert found.kappa.value is None
    assert "one and the same verdict" in (found.kappa.reason or "")
    assert found.false_accept.value is None
    assert "unacceptable" in (found.false_accept.reason or "")
    assert found.false_reject.value == 0
    assert found.youden.value is None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("accepted", [29.7, 100 / 3, 0.9 * 70, 12.1])
def test_kappa_of_weighted_full_agreement_is_a_number(accepted: float) -> None:
    found = kappa(np.array([[accepted, 0.0], [0.0, 70 - accepted]]), 70, 0.95)
    assert found.value == pytest.approx(1)
    low, high = found.intervals[0].low, found.intervals[0].high
    assert low is not None
    assert high is not None
    assert low <= high
    assert low == pytest.approx(1, abs=1e-6)


def test_all_agree_on_both_verdicts() -> None:
    found = agreement(Confusion(30, 0, 0, 30))
    assert found.kappa.value == 1
    assert found.youden.value == 1


def test_a_grader_that_says_the_opposite() -> None:
    found = agreement(Confusion(0, 30, 30, 0))
    assert found.kappa.value == pytest.approx(-1)
    high = found.youden.intervals[0].high
    assert found.youden.value == -1
    assert high is not None
    assert high < 0


def test_negative_counts_are_refused() -> None:
    with pytest.raises(EvidenceInputError, match="negative"):
        Confusion(1, -1, 0, 0)
