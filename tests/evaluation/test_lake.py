"""What a repeated run leaves in a real lake: runs, verdicts, and the same groups as its own file gives."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from support.serving import eventually, serving
from surefoot.evaluation import read_attempts
from surefoot.evaluation.results import group_table
from surefoot.processors.evidence.reading import read_groups
from surefoot.processors.lake import Lake

EXAMPLE = Path(__file__).parents[2] / "examples" / "flaky_agent" / "suite.yaml"
DYING = Path(__file__).parent / "agents" / "dying.py"


def test_attempts_land_as_runs_and_verdicts_of_the_same_groups(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as server:

        def repeated(suite: Path, *arguments: str) -> Path:
            done = server.command("repeat", str(suite), "--json", "--endpoint", server.http, *arguments, cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            told = json.loads(done.stdout)
            assert told["ended"] == "complete"
            return tmp_path / str(told["folder"])

        flaky = repeated(EXAMPLE, "--k", "3")
        died = repeated(DYING, "--task", "raises", "--task", "is_killed", "--task", "needs_a_network")
        assert not [each for each in (*read_attempts(flaky), *read_attempts(died)) if "undelivered" in each.extra]
        verdicts = (
            "SELECT task_id, count(*) AS n FROM verdicts JOIN runs USING (run_id) WHERE kind = 'outcome' GROUP BY 1"
        )
        told = {f"refund-100{n}": 3 for n in (1, 2, 3, 4)} | {"raises": 1, "is_killed": 1}
        seen: dict[str, int] = {}

        def arrived() -> bool:
            seen.update({row["task_id"]: row["n"] for row in server.rows(verdicts)})
            return seen == told

        try:
            eventually("verdicts on all runs but the infrastructure's", arrived)
        finally:
            assert seen == told
        runs = server.rows(
            "SELECT service_name, agent_name, task_id, repetition, variant, consequence_class, versions, run_group, "
            "input_tokens, tool_calls, environment, trace_id, span_id FROM runs WHERE agent_name = 'refund-desk'"
        )
        killed = server.rows("SELECT outcome FROM runs WHERE task_id = 'is_killed'")
        spared = server.rows("SELECT outcome, error_type FROM runs WHERE task_id = 'needs_a_network'")

    attempts = read_attempts(flaky)
    assert {(run["trace_id"], run["span_id"]) for run in runs} == {(each.trace_id, each.run_id) for each in attempts}
    one = runs[0]
    assert (one["service_name"], one["environment"], one["variant"]) == (
        "refund-desk-evaluation",
        "evaluation",
        "baseline",
    )
    assert {run["repetition"] for run in runs} == {0, 1, 2}
    assert {run["run_group"] for run in runs} == {f"{flaky.name}/baseline/{each.task_id}" for each in attempts}
    assert dict(one["versions"])["prompt"] == "1"
    assert "suite" in dict(one["versions"])
    # It has a start and a verdict, and never an end.
    assert killed == [{"outcome": "running"}]
    assert spared == [{"outcome": "error", "error_type": "InfrastructureError"}]
    assert [attempt.outcome for attempt in read_attempts(died)].count("infrastructure") == 1

    lake = Lake.open(tmp_path / "home" / "lake", create=False)
    today = datetime.now(UTC).date()
    with lake.connect() as con:
        reading = read_groups(con, today - timedelta(days=1), today, where={"agent_name": "refund-desk"})
    own = group_table(attempts)
    by_task = dict(zip(reading.groups.task_id, zip(reading.groups.n, reading.groups.c, strict=True), strict=True))
    assert by_task == dict(zip(own.task_id, zip(own.n, own.c, strict=True), strict=True))
    assert sorted(reading.groups.classes()) == sorted(own.classes())
