"""The file of attempts: nothing that was finished is lost, whatever else is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.evaluation.errors import RecordsError
from surefoot.evaluation.records import (
    FILE,
    Attempt,
    Failure,
    RecordsWriter,
    Verdict,
    from_json,
    read_attempts,
    read_records,
    to_json,
)


def attempt(number: int = 0, **told: object) -> Attempt:
    base: dict[str, object] = {
        "attempt_id": f"a{number}",
        "suite": "desk",
        "variant": "baseline",
        "task_id": "t1",
        "repetition": number,
        "outcome": "ok",
    }
    return Attempt(**{**base, **told})  # type: ignore[arg-type]  # a test's short form


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(categories=None), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(output=JSON, acceptable=st.none() | st.booleans(), confidence=st.none() | st.floats(0, 100))
def test_what_is_written_is_read(output: object, acceptable: bool | None, confidence: float | None) -> None:
    import tempfile

    one = attempt(
        output=output,
        acceptable=acceptable,
        confidence=confidence,
        error=Failure("ValueError", "no"),
        verdicts=(Verdict("exact", "outcome", "fail", severity="high"),),
        actions=("refund",),
    )
    with tempfile.TemporaryDirectory() as folder:
        with RecordsWriter(Path(folder)) as writer:
            writer.started(one)
            writer.finished(one)
        assert read_attempts(Path(folder)) == [one]
    assert from_json(to_json(one)) == one


def test_every_place_at_which_a_crash_cuts_the_file_keeps_what_was_finished(tmp_path: Path) -> None:
    with RecordsWriter(tmp_path / "whole") as writer:
        for number in range(3):
            writer.started(attempt(number, outcome="lost"))
            writer.finished(attempt(number, output="é" * 5))
    whole = (tmp_path / "whole" / FILE).read_bytes()
    ends = [at + 1 for at, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(0, len(whole), 7):
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / FILE).write_bytes(whole[:cut])
        before = read_records(folder)
        # A line without its end is whole if only the end is missing.
        whole_lines = sum(end <= cut + 1 for end in ends)
        assert len(before.finished) == whole_lines // 2
        with RecordsWriter(folder) as writer:
            writer.lost(before.open)
            writer.finished(attempt(9))
        after = read_records(folder)
        assert after.finished == (*before.finished, attempt(9))
        assert after.open == ()
        assert len(after.lost) == len(before.open)


def test_a_damaged_line_in_the_middle_is_no_crash(tmp_path: Path) -> None:
    with RecordsWriter(tmp_path) as writer:
        writer.finished(attempt(0))
    file = tmp_path / FILE
    file.write_bytes(b"{not json\n" + file.read_bytes())
    with pytest.raises(RecordsError, match=r"attempts\.jsonl:1: the line is damaged"):
        read_records(tmp_path)


def test_two_runs_do_not_write_to_one_file(tmp_path: Path) -> None:
    with RecordsWriter(tmp_path), pytest.raises(RecordsError, match="Another run writes"):
        RecordsWriter(tmp_path)


def test_fields_of_a_newer_version_are_kept() -> None:
    assert from_json({**to_json(attempt()), "event": "finished", "new": 1}).extra == {"new": 1}


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordsError, match=r"attempts\.jsonl"):
        read_attempts(tmp_path)
