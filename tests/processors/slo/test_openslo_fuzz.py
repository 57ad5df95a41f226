"""Whatever stands in a file, it is read or refused with a line and a remedy, and nothing else happens."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from support.openslo_documents import FILES, GOOD, SLO, write
from surefoot.processors.slo import load_slos

Steps = tuple[str | int, ...]
WORDS = ["", "0", "-1", "1M", "28d", "nan", "~", "yes", "a b", "x" * 300, "\n", "lte", "sql", "../x", "stratum.", "é"]
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.sampled_from(WORDS),
    st.dates(),
    st.datetimes(),
    st.lists(st.sampled_from(WORDS), max_size=2),
    st.dictionaries(st.sampled_from(["kind", "spec", "metadata", "x", "indicator"]), st.none(), max_size=2),
)


def places(data: Any, path: Steps = ()) -> Iterator[Steps]:
    yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


ALL = {name: yaml.safe_load(text) for name, text in FILES.items()}
PLACES = [(name, path) for name, data in ALL.items() for path in places(data) if path]


@settings(max_examples=100, deadline=None)
@given(place=st.sampled_from(PLACES), value=VALUES, as_key=st.booleans())
def test_any_value_at_any_place_is_read_or_refused(place: tuple[str, Steps], value: Any, as_key: bool) -> None:
    check_read_or_refused(place, value, as_key)


@pytest.mark.parametrize("value", [None, "", [], {}], ids=repr)
def test_a_field_that_says_nothing_is_read_or_refused_wherever_it_stands(value: Any) -> None:
    for place in PLACES:
        check_read_or_refused(place, value, as_key=False)


def check_read_or_refused(place: tuple[str, Steps], value: Any, as_key: bool) -> None:
    name, path = place
    data = yaml.safe_load(FILES[name])
    parent = data
    for step in path[:-1]:
        parent = parent[step]
    if as_key and isinstance(parent, dict) and not isinstance(value, list | dict):
        parent[value] = parent.pop(path[-1])
    else:
        parent[path[-1]] = value
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), {**FILES, name: yaml.safe_dump(data, allow_unicode=True), "good": GOOD})
        loaded = load_slos(Path(folder))
    assert "good" in [slo.name for slo in loaded.slos]
    for problem in loaded.problems:
        assert problem.line >= 1
        assert problem.what
        assert problem.remedy
    if "desk-outcome" not in [slo.name for slo in loaded.slos]:
        assert loaded.problems or name == "slo"


@pytest.mark.parametrize(
    ("value", "line", "path", "words"),
    [
        (
            "startTime: 2026-02-30 00:00:00",
            16,
            "spec.timeWindow[0].calendar.startTime",
            "'2026-02-30 00:00:00' is",
        ),
        ("startTime: !!float x", 16, "spec.timeWindow[0].calendar.startTime", "'x' is read as float"),
        (f"startTime: {'9' * 5000}", 16, "spec.timeWindow[0].calendar.startTime", "is read as int"),
        (f"startTime: 0x{'9' * 5000}", 16, "spec.timeWindow[0].calendar.startTime", "a number that is far too large"),
    ],
)
def test_what_yaml_cannot_read_is_told_by_line_and_field(
    value: str, line: int, path: str, words: str, tmp_path: Path
) -> None:
    write(tmp_path, {**FILES, "slo": SLO.replace("startTime: 2026-01-01 00:00:00", value), "good": GOOD})
    loaded = load_slos(tmp_path)
    assert [slo.name for slo in loaded.slos] == ["good"]
    (problem,) = loaded.problems
    assert (problem.line, problem.path) == (line, path)
    assert words in problem.what
    assert len(str(problem)) < 400
