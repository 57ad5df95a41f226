"""``surefoot case from-trace``: from what was captured to a suite that runs; what was not captured is said."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from support.captures import FOLDER
from support.serving import SUREFOOT
from support.traces import T0, TRACE, agent, chat, evaluation, put, sid, tool
from surefoot.cli.main import app
from surefoot.errors import SurefootError
from surefoot.evaluation import replay
from surefoot.evaluation.replay.case import read_case
from surefoot.evaluation.replay.case_files import AGENT_PLACEHOLDER, INPUT_PLACEHOLDER
from surefoot.evaluation.replay.cassette import read_cassette
from surefoot.instrumentation import semconv
from surefoot.instrumentation.redaction import REDACTED
from surefoot.processors.genai.derive import Deriver
from surefoot.processors.lake import Lake
from surefoot.processors.lake.schema import CONTENTS
from surefoot.processors.settings import Settings

DESK = """
def look_up(order, verbose=False):
    raise RuntimeError("the real shop was asked")

def refund(order):
    raise RuntimeError("the real shop was asked")

def desk(task_input, ctx):
    tools = ctx.tools({"look_up": look_up, "refund": refund})
    assert task_input == "Refund order 42, \\"quick\\"!", task_input
    found = tools["look_up"](42)
    if found["paid"] != 3 or tools["look_up"](order=42)["paid"] != 4:
        return "another world"
    try:
        tools["refund"](42)
    except TimeoutError as error:
        return f"Refunded. ({error})" if ctx.variant == "baseline" else "sorry"
    return "no error"

def lost(task_input, ctx):
    try:
        return ctx.tool("look_up", look_up)(43)
    except Exception:
        return "I went on"
"""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.open(Settings(home=tmp_path).lake_path)


def contents(lake: Lake, *kept: tuple[str, str, Any]) -> None:
    rows = [
        {
            **dict.fromkeys(CONTENTS.names),
            "trace_id": TRACE,
            "span_id": sid(span),
            "name": name,
            "content": content if isinstance(content, str) else json.dumps(content),
            "date": datetime.fromtimestamp(T0, UTC).date(),
        }
        for span, name, content in kept
    ]
    lake.commit("contents", pa.Table.from_pylist(rows, schema=CONTENTS), app_id="contents", app_version=1)


def derived(lake: Lake, tmp_path: Path) -> None:
    Deriver(lake, Settings(home=tmp_path)).step(T0 + 5000)


def wrong_refund(lake: Lake, tmp_path: Path, *, captured: bool = True) -> None:
    """An agent looks an order up twice, its refund times out, and it says that it refunded."""
    late: dict[str, Any] = {"status": "error", "error_type": "TimeoutError", "status_message": "no answer in 10 s"}
    wrong: dict[str, str] = {"name": "outcome", "score.label": "fail", "explanation": "nothing was refunded"}
    put(
        lake,
        agent("desk", task_class="refund", task_id="refund-42", agent_version="1.4", consequence_class="high"),
        chat("think", "desk", response_model="m-1"),
        tool("look_up", "desk", 1, tool_effect="read"),
        {**tool("again", "desk", 3), "tool_name": "look_up", "tool_effect": "read"},
        tool("refund", "desk", 5, tool_effect="irreversible", **late),
        evaluation("desk", 9, attributes=wrong),
    )
    if captured:
        asked = [{"role": "user", "parts": [{"type": "text", "content": 'Refund order 42, "quick"!'}]}]
        said = [{"role": "assistant", "parts": [{"type": "text", "content": "Refunded. (no answer in 10 s)"}]}]
        contents(
            lake,
            ("think", semconv.INPUT_MESSAGES, asked),
            ("desk", semconv.OUTPUT_MESSAGES, said),
            ("look_up", semconv.TOOL_ARGUMENTS, {"order": 42}),
            ("look_up", semconv.TOOL_RESULT, {"paid": 3}),
            ("again", semconv.TOOL_ARGUMENTS, {"order": 42.0}),
            ("again", semconv.TOOL_RESULT, {"paid": 4}),
            ("refund", semconv.TOOL_ARGUMENTS, {"order": 42}),
        )
    derived(lake, tmp_path)


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


def command(home: Path, *arguments: str | Path) -> Done:
    """The command in this process; attempts are in processes of their own."""
    before = Path.cwd()
    os.chdir(home)
    try:
        done = CliRunner().invoke(app, [*map(str, arguments)], env={"SUREFOOT_HOME": str(home)})
    finally:
        os.chdir(before)
    if isinstance(done.exception, SurefootError):
        return Done(done.exception.exit_code, done.stdout, str(done.exception))
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return Done(done.exit_code, done.stdout, done.stderr)


def attempts(run: Path) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in (run / "attempts.jsonl").read_text().splitlines()]
    return [event for event in events if event["event"] == "finished"]


def test_a_failing_trace_becomes_a_case_that_fails_again(lake: Lake, tmp_path: Path) -> None:
    wrong_refund(lake, tmp_path)
    (tmp_path / "desk.py").write_text(DESK)
    made = command(tmp_path, "case", "from-trace", TRACE[:12], "--out", "cases", "--agent", "desk:desk")
    assert made.returncode == 0, made.stderr
    assert "outcome verdict outcome failed: nothing was refunded" in made.stdout
    assert "3 tool calls, 0 without a result" in made.stdout
    assert "not told" not in made.stdout
    suite = tmp_path / "cases" / f"case_{TRACE[:8]}.py"
    assert f"surefoot repeat {suite.relative_to(tmp_path)} --k 10" in made.stdout

    ran = command(tmp_path, "repeat", suite, "--k", "3", "--folder", "run")
    assert ran.returncode == 0, ran.stderr
    found = attempts(tmp_path / "run")
    assert [(one["outcome"], one["output"], one["acceptable"]) for one in found] == [
        ("ok", "Refunded. (no answer in 10 s)", False)
    ] * 3
    assert "came again: outcome verdict" in found[0]["verdicts"][0]["explanation"]
    notes = found[0]["extra"]["notes"]["cassette"]
    assert (notes["mode"], notes["calls"], "unused" in notes) == ("replay", 3, False)

    # Mended: another answer, of which nobody has said that it is right.
    suite.write_text(suite.read_text().replace('name="baseline"', 'name="mended"'))
    assert command(tmp_path, "repeat", suite, "--k", "2", "--folder", "mended").returncode == 0
    assert [(one["output"], one.get("acceptable")) for one in attempts(tmp_path / "mended")] == [("sorry", None)] * 2

    # Another way through the tools: the case says nothing about it, whatever the agent makes of the miss.
    suite.write_text(suite.read_text().replace("desk:desk", "desk:lost"))
    assert command(tmp_path, "repeat", suite, "--k", "2", "--folder", "lost").returncode == 0
    lost = attempts(tmp_path / "lost")
    assert [one["outcome"] for one in lost] == ["infrastructure"] * 2
    assert "arguments.order = 43" in lost[0]["error"]["message"]


def test_what_the_suite_says(lake: Lake, tmp_path: Path) -> None:
    wrong_refund(lake, tmp_path)
    assert command(tmp_path, "case", "from-trace", TRACE, "--out", "cases").returncode == 0
    said = runpy.run_path(str(tmp_path / "cases" / f"case_{TRACE[:8]}.py"))
    suite = said["suite"]
    (task,) = suite.tasks
    assert (task.id, task.task_class, task.consequence_class) == ("refund-42", "refund", "high")
    assert task.input == 'Refund order 42, "quick"!'
    assert suite.agent == AGENT_PLACEHOLDER
    assert suite.variants[0].versions == {"agent": "1.4", "model": "m-1"}
    assert suite.protocol.effects == "replayed"
    assert said["GAPS"] == []
    cassette = read_cassette(tmp_path / "cases" / f"case_{TRACE[:8]}.tools.jsonl")
    assert [(entry.name, entry.occurrence, entry.effect) for entry in cassette.entries] == [
        ("look_up", 0, "read"),
        ("look_up", 1, "read"),
        ("refund", 0, "irreversible"),
    ]
    again = command(tmp_path, "case", "from-trace", TRACE, "--out", "cases")
    assert (again.returncode, "is there already" in again.stderr) == (2, True)


def test_what_was_not_captured_is_said(lake: Lake, tmp_path: Path) -> None:
    wrong_refund(lake, tmp_path, captured=False)
    made = command(tmp_path, "case", "from-trace", TRACE, "--out", "cases")
    assert made.returncode == 0, made.stderr
    assert made.stdout.count("its arguments were not captured") == 3
    assert "the task's input was not captured" in made.stdout
    assert f"instead of {AGENT_PLACEHOLDER}" in made.stdout
    said = runpy.run_path(str(tmp_path / "cases" / f"case_{TRACE[:8]}.py"))
    assert said["suite"].tasks[0].input == INPUT_PLACEHOLDER
    assert said["OBSERVED"] is None
    assert said["observed_failure"]("anything", None)[0] == "unresolved"


def test_a_missing_result_is_filled_in_and_sealed(lake: Lake, tmp_path: Path) -> None:
    put(lake, agent("desk", error_type="KeyError", status="error", status_message="'x'"), tool("look_up", "desk"))
    contents(lake, ("look_up", semconv.TOOL_ARGUMENTS, {"order": 1, "mail": "ann@example.org"}))
    derived(lake, tmp_path)
    made = command(tmp_path, "case", "from-trace", TRACE, "--out", ".")
    assert "1 tool calls, 1 without a result" in made.stdout
    assert "the run ended as error: KeyError 'x'" in made.stdout
    path = tmp_path / f"case_{TRACE[:8]}.tools.jsonl"

    def look_up() -> Any:
        with replay.opened(path) as world:
            return world.tool("look_up", lambda order, mail, deep=False: None)(1, "ann@example.org", deep=False)

    with pytest.raises(replay.CassetteMissError, match="without its result, which the trace did not tell"):
        look_up()
    path.write_text(path.read_text().replace('"missing": true', '"missing": true, "result": {"paid": 1}'))
    sealed = CliRunner().invoke(app, ["case", "seal", str(path)])
    assert sealed.stdout == f"{path}: 1 calls\n"
    assert look_up() == {"paid": 1}
    said = runpy.run_path(str(path.with_name(f"case_{TRACE[:8]}.py")))
    assert said["observed_failure"]("an answer", None) is True


def test_a_trace_of_a_real_framework(tmp_path: Path) -> None:
    files = [str(FOLDER / f"pydantic-ai-2.68.0__native-v5.{name}.json") for name in ("multi_tool", "tool_fatal")]
    home = {**os.environ, "SUREFOOT_HOME": str(tmp_path)}
    subprocess.run([*SUREFOOT, "import", "otlp", *files], check=True, capture_output=True, timeout=120, env=home)
    lake = Lake.open(Settings(home=tmp_path).lake_path, create=False)
    found = sorted(set(lake.read("runs", ["trace_id"])["trace_id"].to_pylist()))
    cases = [read_case(lake, trace_id) for trace_id in found]
    several, fatal = sorted(cases, key=lambda case: case.crashed)
    assert several.input == "Weather in Paris and 2+2?"
    assert several.output == "21C and 4"
    told = {entry.name: (entry.arguments, entry.outcome) for entry in several.entries}
    assert told == {
        "get_weather": ({"city": "Paris"}, {"result": "Paris: 21C"}),
        "add": ({"a": 2, "b": 2}, {"result": 4}),
    }
    assert any("shows no failure" in gap for gap in several.gaps)
    assert fatal.input == "go"
    assert fatal.failures[0].startswith("the run ended as error")
    assert fatal.entries[0].arguments == {"x": "1"}
    assert "error" in fatal.entries[0].outcome


def test_there_is_no_such_trace(lake: Lake, tmp_path: Path) -> None:
    done = command(tmp_path, "case", "from-trace", "ab")
    assert (done.returncode, "no trace begins with 'ab'" in done.stderr) == (1, True)


def test_odd_contents_redactions_and_several_roots_are_told(lake: Lake, tmp_path: Path) -> None:
    asked = [{"role": "user", "parts": [{"type": "text", "content": f"Refund it to {REDACTED}"}, "odd"]}]
    put(
        lake,
        agent("desk"),
        chat("think", "desk", response_model="m-1"),
        tool("look_up", "desk", 1),
        {**tool("orphan", "gone", 2), "tool_name": "look_up"},
        agent("second", None, 20),
        agent("third", "gone", 40),
    )
    contents(
        lake,
        ("desk", semconv.INPUT_MESSAGES, asked),
        ("desk", semconv.OUTPUT_MESSAGES, [{"role": "assistant", "parts": None}, "odd", 5]),
        ("think", semconv.INPUT_MESSAGES, [{"role": "user", "parts": ["odd", None]}, 7]),
        ("look_up", semconv.TOOL_ARGUMENTS, {"order": 42}),
        ("look_up", semconv.TOOL_RESULT, {"mail": REDACTED}),
        ("orphan", semconv.TOOL_ARGUMENTS, {"order": 43}),
        ("orphan", semconv.TOOL_RESULT, '{"rate": NaN}'),
    )
    derived(lake, tmp_path)
    case = read_case(lake, TRACE)
    gaps = "\n".join(case.gaps)
    assert f"the task's input holds {REDACTED}" in gaps
    assert f"its result holds {REDACTED}" in gaps
    assert "3 runs: the case is that of one of 3 that no other began, the first that failed, else the first" in gaps
    assert case.run["span_id"] == sid("desk")
    made = command(tmp_path, "case", "from-trace", TRACE, "--out", "cases")
    assert made.returncode == 0, made.stderr
    said = runpy.run_path(str(tmp_path / "cases" / f"case_{TRACE[:8]}.py"))
    assert said["suite"].tasks[0].input == f"Refund it to {REDACTED}"


def test_an_input_that_python_has_no_literal_for(lake: Lake, tmp_path: Path) -> None:
    put(lake, agent("desk"))
    contents(lake, ("desk", "input.value", '{"limit": Infinity}'))
    derived(lake, tmp_path)
    assert command(tmp_path, "case", "from-trace", TRACE, "--out", "cases").returncode == 0
    said = runpy.run_path(str(tmp_path / "cases" / f"case_{TRACE[:8]}.py"))
    assert said["suite"].tasks[0].input == {"limit": float("inf")}


def test_of_several_roots_the_case_is_that_of_the_one_that_failed(lake: Lake, tmp_path: Path) -> None:
    wrong: dict[str, str] = {"name": "outcome", "score.label": "fail", "explanation": "nothing was refunded"}
    put(lake, agent("desk"), agent("second", None, 20), evaluation("second", 40, attributes=wrong))
    contents(
        lake,
        *((name, key, f"{key} of {name}") for name in ("desk", "second") for key in ("input.value", "output.value")),
    )
    derived(lake, tmp_path)
    case = read_case(lake, TRACE)
    assert (case.input, case.output) == ("input.value of second", "output.value of second")
    assert len(case.failures) == 1
