"""Kinds of pairs give what comparing every pair of runs gives."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from rapidfuzz.distance import Levenshtein
from scipy.spatial.distance import jensenshannon

from surefoot.processors.evidence import consistency
from surefoot.processors.evidence.groups import GroupTable

RNG = np.random.default_rng(3)


def trajectories(groups: int, longest: int, names: int) -> list[list[list[str | None]]]:
    made = []
    for _ in range(groups):
        lengths = RNG.integers(0, longest, RNG.integers(1, 6))
        made.append([[f"action {code}" for code in RNG.integers(0, names, size)] for size in lengths])
    return [[list(one) for one in group] for group in made]


@pytest.mark.parametrize(("longest", "names"), [(4, 2), (70, 8), (3, 300)])
def test_every_pair_by_hand(longest: int, names: int) -> None:
    made = trajectories(80, longest, names)
    made.append([[None, "action 1"], [None, "action 1"], ["action 1"]])  # an action without a name is one, too
    rows = [(f"t{place:03d}", one) for place, group in enumerate(made) for one in group]
    table = pa.table(
        {
            "group_id": [name for name, _ in rows],
            "acceptable": [True] * len(rows),
            "actions": pa.array([one for _, one in rows], pa.list_(pa.string())),
        }
    )
    groups = GroupTable.from_runs(table.take(pa.array(RNG.permutation(len(rows)))))
    spread, order = [], []
    for group in made:
        pairs = list(combinations([one for one in group if one], 2))
        if pairs:
            spread.append(np.mean([1 - divergence(left, right) for left, right in pairs]))
            order.append(np.mean([Levenshtein.normalized_similarity(left, right) for left, right in pairs]))
    assert consistency.trajectory_distribution(groups).value == pytest.approx(np.mean(spread))
    assert consistency.trajectory_sequence(groups).value == pytest.approx(np.mean(order))
    both = consistency.trajectory_distribution(groups), consistency.trajectory_sequence(groups)
    assert consistency.trajectory_consistency(groups) == both


def divergence(left: list[str | None], right: list[str | None]) -> float:
    names = sorted({*left, *right}, key=str)
    return float(jensenshannon([left.count(one) for one in names], [right.count(one) for one in names], base=2) ** 2)
