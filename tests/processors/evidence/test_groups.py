"""Run groups: what counts as judged, missing and spared, and the four classes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.processors.evidence.groups import (
    ALL_ACCEPTABLE,
    CONSISTENT_WRONG,
    MIXED,
    NON_EQUIVALENT,
    UNCLASSED,
    GroupsError,
    GroupTable,
    outcome_classes,
)

RUNS = pa.table(
    {
        "group_id": ["b", "a", "b", "a", "c", "c", "d", "e", "e", "f", "f", "f"],
        "run_id": ["r2", "r4", "r1", "r3", "r5", "r6", "r7", "r8", "r9", "s1", "s2", "s3"],
        "task_class": ["x", "y", "x", "y", None, None, "x", "x", "x", "x", "x", "x"],
        "acceptable": [True, True, False, None, False, False, False, False, False, False, False, False],
        "infrastructure": [None, None, None, None, None, None, None, False, True, False, False, False],
        "signature": ["s", "s", "s", None, "p", "p", "p", "p", "p", "p", None, "q"],
        "actions": [["m"], ["n", "m"], [], None, ["m"], ["m"], [], [], [], [], [], ["n"]],
    }
)


def test_missing_verdicts_and_infrastructure_errors_are_not_failures() -> None:
    groups = GroupTable.from_runs(RUNS)
    assert list(groups.group_id) == ["a", "b", "c", "d", "e", "f"]
    assert groups.n.tolist() == [1, 2, 2, 1, 1, 3]
    assert groups.c.tolist() == [1, 1, 0, 0, 0, 0]
    assert groups.missing.tolist() == [1, 0, 0, 0, 0, 0]
    assert groups.infrastructure.tolist() == [0, 0, 0, 0, 1, 0]


def test_what_nobody_judges_is_set_apart_and_repetitions_without_names_sort_too() -> None:
    rows = {"group_id": ["a", "a", "a"], "acceptable": [True, None, None], "excluded": [None, True, None]}
    groups = GroupTable.from_runs(pa.table(rows | {"repetition": [2, 0, None], "actions": [["x"], ["y"], ["z"]]}))
    assert (groups.n[0], groups.missing[0], groups.excluded[0], groups.infrastructure[0]) == (1, 1, 1, 0)
    assert groups.runs is not None
    assert [groups.runs.actions.names[code] for code in groups.runs.actions.codes] == ["z", "y", "x"]
    assert groups.runs.counted.tolist() == [True, False, True]


def test_classes_need_two_judged_runs_and_known_equivalence() -> None:
    groups = GroupTable.from_runs(RUNS)
    # f: two known signatures differ, so the unknown one cannot make it consistent.
    assert groups.classes().tolist() == [UNCLASSED, MIXED, CONSISTENT_WRONG, UNCLASSED, UNCLASSED, NON_EQUIVALENT]
    unknown = GroupTable.from_runs(RUNS.set_column(5, "signature", pa.array([None] * len(RUNS), pa.string())))
    assert unknown.classes()[2] == UNCLASSED


@settings(max_examples=30, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_nothing(random: object) -> None:
    order = list(range(len(RUNS)))
    random.shuffle(order)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    one, other = GroupTable.from_runs(RUNS), GroupTable.from_runs(RUNS.take(order))
    assert one.runs is not None
    assert other.runs is not None
    assert one.runs.run_id.tolist() == other.runs.run_id.tolist()
    assert one.runs.actions.codes.tolist() == other.runs.actions.codes.tolist()
    assert one.runs.offsets.tolist() == other.runs.offsets.tolist()
    assert one.strata["task_class"].codes.tolist() == other.strata["task_class"].codes.tolist()
    assert one.equivalent.tolist() == other.equivalent.tolist()


def test_a_selection_keeps_its_runs_and_their_actions() -> None:
    groups = GroupTable.from_runs(RUNS)
    chosen = groups.select(groups.group_id == "a")
    assert chosen.runs is not None
    assert chosen.runs.run_id.tolist() == ["r3", "r4"]
    assert [chosen.runs.actions.names[code] for code in chosen.runs.actions.codes] == ["n", "m"]
    assert chosen.runs.offsets.tolist() == [0, 0, 2]
    assert chosen.runs.group.tolist() == [0, 0]


def test_counts_are_checked_and_sorted() -> None:
    groups = GroupTable.from_counts([3, 2], [3, 0], task_id=["z", "y"], equivalent=[-1, 1], horizon=["long", None])
    assert groups.n.tolist() == [2, 3]
    assert groups.classes().tolist() == [CONSISTENT_WRONG, ALL_ACCEPTABLE]
    assert groups.strata["horizon"].codes.tolist() == [-1, 0]
    with pytest.raises(GroupsError, match="more than n"):
        GroupTable.from_counts(3, [4])
    with pytest.raises(GroupsError, match="different task ids"):
        GroupTable.from_counts(3, [1, 1], task_id=["a", "a"])
    with pytest.raises(GroupsError, match="no stratum"):
        GroupTable.from_counts(3, [1], colour=["red"])


def test_a_run_of_a_year_is_read() -> None:
    groups = GroupTable.from_runs(pa.table({"group_id": ["a"], "acceptable": [True], "duration_ns": [2**55 + 1]}))
    assert groups.runs is not None
    assert groups.runs.numbers["duration_ns"].tolist() == [2.0**55]


def test_runs_need_a_group_and_a_verdict_column() -> None:
    with pytest.raises(GroupsError, match="'acceptable'"):
        GroupTable.from_runs(RUNS.drop_columns(["acceptable"]))
    with pytest.raises(GroupsError, match="no group_id"):
        GroupTable.from_runs(pa.table({"group_id": pa.array([None], pa.string()), "acceptable": [True]}))
    assert len(GroupTable.from_runs(RUNS.slice(0, 0))) == 0


@given(st.lists(st.tuples(st.integers(2, 6), st.integers(0, 6), st.sampled_from([0, 1])), min_size=1, max_size=40))
def test_the_classes_are_exclusive_and_exhaustive(rows: list[tuple[int, int, int]]) -> None:
    n, c, same = (np.array(column) for column in zip(*rows, strict=True))
    classes = outcome_classes(n, np.minimum(c, n), same)
    assert np.isin(classes, [ALL_ACCEPTABLE, MIXED, CONSISTENT_WRONG, NON_EQUIVALENT]).all()
