"""``surefoot explain`` as an engineer meets it: files, the lake, ids cut short, a terminal of 100 columns."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from typer.testing import CliRunner

from support.captures import FOLDER
from support.serving import SUREFOOT
from support.traces import T0, TRACE, agent, put, run_started, tool
from surefoot.cli.explain_tree import show
from surefoot.cli.main import app
from surefoot.collector.json_codec import parse
from surefoot.collector.segment import Record, Signal
from surefoot.collector.validate import check
from surefoot.errors import SurefootError
from surefoot.processors.genai.derive import Deriver
from surefoot.processors.genai.explain_source import Answer, explain_records, explain_stored, imported
from surefoot.processors.lake import Lake, replace_dates
from surefoot.processors.settings import Settings

PAGE = Path(__file__).parents[2] / "docs" / "explain.md"
DOUBLE = FOLDER / "strands-agents-1.62.0__native.tool_error.json"
GOLDEN = """\
Trace 9563b00fe683dafc26115e96c3e0b21c  6 spans, settled
Dialect strands (scope strands.telemetry.tracer)
invoke_agent weather_agent 3.2ms ok    22+14  run 1 of agent weather_agent, outcome ok; tokens not
│                                             counted: its model calls have them (rule 9)
├ execute_event_loop_cycle 2.4ms ok           nothing to count, in run 1
│ ├ chat                   0.3ms ok     11+7  model call of run 1
│ └ execute_tool flaky     1.3ms error        tool call of run 1, outcome error: own status,
│                                             ValueError from the exception event (rule 6)
└ execute_event_loop_cycle 0.5ms ok           nothing to count, in run 1
  └ chat                   0.2ms ok     11+7  model call of run 1
Runs
  1  weather_agent: ok
     ok because its own span ended without an error (rule 4); a tool call that failed is no failed
     run (rule 7)
     1 tool call (1 failed), 2 model calls, 22+14 tokens from its model calls
     run_id 9563b00fe683dafc26115e96c3e0b21c-40d3de772628c134
Counted
  1 run of 1 agent span
  1 tool call of 1 tool span
  2 model calls of 2 model spans

"""


def surefoot(home: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SUREFOOT_", "OTEL_"))}
    return subprocess.run(
        [*SUREFOOT, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=home,
        env={**clean, "SUREFOOT_HOME": str(home)},
    )


def command(home: Path, *arguments: str | Path) -> tuple[int, str, str]:
    """The command in this process: exit code, what it said, and what it complained about."""
    done = CliRunner().invoke(app, [*map(str, arguments)], env={"SUREFOOT_HOME": str(home)})
    if isinstance(done.exception, SurefootError):
        return done.exception.exit_code, done.stdout, str(done.exception)
    assert done.exception is None
    return done.exit_code, done.stdout, done.stderr


def of_files(*files: Path, prefix: str = "", most: int = 10) -> Answer:
    records = []
    for file in files:
        signal = Signal.LOGS if ".logs." in file.name else Signal.TRACES
        checked = check(signal, file.read_bytes(), is_json=True)
        records.append(Record(signal, checked.encoding, time.time_ns(), imported(file.name), checked.body))
    return explain_records(records, prefix, most, time.time(), 900.0)


def lines(answer: Answer, width: int) -> list[str]:
    return [line.plain for line in show(answer, width)]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.open(Settings(home=tmp_path).lake_path)


def test_a_terminal_of_100_columns() -> None:
    assert "".join(f"{line}\n" for line in lines(of_files(DOUBLE), 100)) == GOLDEN


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_notes_are_whole_and_lines_keep_to_the_terminal(width: int) -> None:
    answer = of_files(FOLDER / "dup__openai-genai1.3b0+openinference0.1.66.stream.json", DOUBLE)
    told = lines(answer, width)
    assert max(map(len, told)) <= max(width, 100)
    words = " ".join(re.sub(r"[│├└]", "", line)[20:] for line in told)
    assert all(word in words for trace in answer.traces for node in trace.nodes for word in node.note.split())


def test_several_dialects_stand_beside_their_spans() -> None:
    told = lines(of_files(FOLDER / "dup__openai-genai1.3b0+openinference0.1.66.stream.json"), 120)
    assert told[1:3] == [
        "Dialect openinference (scope openinference.instrumentation.openai)",
        "Dialect otel_genai (scope opentelemetry.instrumentation.genai.openai)",
    ]
    assert re.match(r"chat gpt-4o-mini +otel_genai +[\d.]+ms +20\+9  not the model call", told[3])


def test_of_many_traces_the_first_are_shown_and_any_can_be_asked_for() -> None:
    files = [path for path in FOLDER.glob("*.multi_tool.json") if "openlit" in path.name or "native" in path.name]
    whole = of_files(*files, most=1000)
    few = of_files(*files, most=2)
    assert [trace.trace_id for trace in few.traces] == [trace.trace_id for trace in whole.traces][:2]
    assert len(few.others) == len(whole.traces) - 2
    assert lines(few, 100)[-1] == f"{len(few.others)} other traces not shown; --trace ID shows one."
    last = whole.traces[-1]
    assert of_files(*files, prefix=last.trace_id[:12]).traces == [last]


def test_what_is_stored_and_what_would_be_now(lake: Lake, tmp_path: Path) -> None:
    put(lake, run_started("a"), tool("t", "a", 1, 1))
    waiting = explain_stored(lake, TRACE, T0 + 10, 900.0)
    assert lines(waiting, 100)[-1] == "  Not derived yet: the jobs process has not come to it."
    Deriver(lake, Settings(home=tmp_path)).step(T0 + 10)
    same = explain_stored(lake, TRACE, T0 + 10, 900.0)
    assert same.stored is not None
    assert (same.stored.differences, same.stored.rows) == ([], {"runs": 1, "tool_calls": 1, "model_calls": 0})
    assert lines(same, 100)[-2:] == ["Stored: 1 run, 1 tool call, 0 model calls", "  Deriving now gives the same."]
    later = explain_stored(lake, TRACE, T0 + 5000, 900.0)
    assert lines(later, 100)[-1] == "  runs: outcome of 6100000000000000 is stored as running and would be abandoned"


def test_a_trace_of_which_only_the_runs_are_kept(lake: Lake, tmp_path: Path) -> None:
    put(lake, agent("a"))
    Deriver(lake, Settings(home=tmp_path)).step(T0 + 5000)
    rows = lake.read("spans")
    dates = rows["date"].unique().to_pylist()
    replace_dates(lake, "spans", dates, rows.slice(0, 0), "test-erase", 1)
    gone = explain_stored(lake, TRACE, T0 + 5000, 900.0)
    assert gone.traces == []
    assert lines(gone, 100)[-1] == "  No span of it is kept any more: what was derived before stays as it is."


def test_ids_from_the_lake(lake: Lake, tmp_path: Path) -> None:
    other = f"{TRACE[:8]}{'f' * 24}"
    put(lake, agent("a"), agent("b", trace=other))
    Deriver(lake, Settings(home=tmp_path)).step(T0 + 5000)
    for named in (TRACE, TRACE.upper(), TRACE[:9], f"{TRACE}-6100000000000000"):
        code, said, complaint = command(tmp_path, "explain", named)
        assert (code, complaint) == (0, "")
        assert f"Trace {TRACE}" in said
        assert "run 1 of agent a, outcome ok" in said
    code, _, several = command(tmp_path, "explain", TRACE[:8])
    assert (code, several.splitlines()[1:]) == (2, [f"  {TRACE}  a", f"  {other}  b"])
    code, _, wrong = command(tmp_path, "explain", "no-such-file.json")
    assert (code, "it is no file, and no trace id" in wrong) == (2, True)
    unknown = surefoot(tmp_path, "explain", "abc")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert unknown.stderr.startswith("surefoot: There is no trace abc in ")


def test_files_of_every_kind_say_the_same_and_need_no_lake(tmp_path: Path) -> None:
    request = ExportTraceServiceRequest()
    parse(DOUBLE.read_bytes(), request)
    (tmp_path / "a.bin").write_bytes(request.SerializeToString())
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(json.dumps(json.loads(DOUBLE.read_text())).encode()))
    said: list[dict[str, Any]] = []
    for file in (DOUBLE, tmp_path / "a.bin", tmp_path / "b.jsonl.gz"):
        code, printed, complaint = command(tmp_path, "explain", file, "--format", "json")
        assert (code, complaint) == (0, "")
        said.append(json.loads(printed))
    assert said[0] == said[1] == said[2]
    assert [run["outcome"] for run in said[0]["traces"][0]["runs"]] == ["ok"]
    assert not (tmp_path / "lake").exists()


def test_what_cannot_be_read_is_told_and_the_rest_explained(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text(f"{json.dumps(json.loads(DOUBLE.read_text()))}\nnonsense\n")
    code, said, complaint = command(tmp_path, "explain", bad)
    assert (code, complaint) == (0, f"surefoot: left out {bad}, line 2: is not a JSON object\n")
    assert "run 1 of agent weather_agent" in said
    code, _, none = command(tmp_path, "explain", bad, "--trace", "ffff")
    assert (code, "There is no trace ffff in" in none) == (1, True)


def test_the_example_of_the_page(tmp_path: Path) -> None:
    text = PAGE.read_text()
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (console,) = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    command, _, expected = console.partition("\n")
    done = surefoot(tmp_path, *shlex.split(command.removeprefix("$ surefoot ")))
    assert (done.returncode, done.stdout.rstrip("\n")) == (0, expected.rstrip("\n")), done.stderr
