"""``surefoot slo`` as people use it, over a real lake and a real report."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from support.openslo_documents import FILES, GOOD, write
from support.reports import every_state, slo, stratum
from support.slo_events import Row, Tables
from surefoot.cli import slo_status
from surefoot.cli.main import app
from surefoot.cli.output import lasting, objective_percent
from surefoot.cli.slo_explain import UnknownSloError
from surefoot.cli.slo_history import HistoryError
from surefoot.errors import UnreachableError
from surefoot.processors import status
from surefoot.processors.lake import Lake
from surefoot.processors.settings import Settings
from surefoot.processors.slo import SloEngine, load_slos
from surefoot.processors.slo.report import Counts, StatusReport, StratumReport

Command = Callable[..., Result]


@pytest.fixture
def surefoot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command with a home folder of its own."""
    monkeypatch.setenv("SUREFOOT_HOME", str(tmp_path))

    def call(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["slo", *arguments])

    return call


def run(number: int, ago: float, outcome: str = "ok", service: str = "shop") -> Row:
    ended = int((time.time() - ago) * 1_000_000)
    said = {"run_id": f"r{number}", "trace_id": f"t{number}", "parent_run_id": None, "task_class": "refund"}
    return {**said, "service_name": service, "outcome": outcome, "ended_us": ended, "duration_ns": 10**9}


def judged(home: Path) -> SloEngine:
    """A lake with 40 runs of a shop, one of them bad, judged by one SLO."""
    settings = Settings(home=home)
    tables = Tables(Lake.open(settings.lake_path))
    tables.hold(runs=[run(number, number * 3600 + 5, "error" if number == 7 else "ok") for number in range(40)])
    write(settings.slos_path, {"good": GOOD})
    engine = SloEngine(tables.lake, settings)
    status.publish(settings.status_path, "slo", engine.step(time.time(), set()).to_json())
    return engine


# init and validate


def test_init_writes_what_it_found_once_and_validate_accepts_it(surefoot: Command, tmp_path: Path) -> None:
    tables = Tables(Lake.open(tmp_path / "lake"))
    tables.hold(runs=[run(number, 60, service="Web Shop") for number in range(3)])
    done = surefoot("init")
    assert done.exit_code == 0, done.output
    assert f"Wrote {tmp_path}/slos/web-shop.yaml: 2 SLOs." in done.output.replace("\n", "")
    assert surefoot("validate").exit_code == 0
    assert "2 valid, 0 problems" in surefoot("validate").output
    before = (tmp_path / "slos" / "web-shop.yaml").read_text()
    again = surefoot("init")
    assert "has an SLO in" in again.output
    assert (tmp_path / "slos" / "web-shop.yaml").read_text() == before


def test_init_never_overwrites_a_file(surefoot: Command, tmp_path: Path) -> None:
    write(tmp_path / "slos", {"my-agent": "# mine\n"})
    done = surefoot("init")
    assert "was left as it is" in done.output.replace("\n", " ")
    assert (tmp_path / "slos" / "my-agent.yaml").read_text() == "# mine\n"


def test_init_without_a_lake_writes_an_example_where_it_is_told_to(surefoot: Command, tmp_path: Path) -> None:
    done = surefoot("init", str(tmp_path / "here"))
    assert "No run of the last 28 days" in done.output
    assert [slo.name for slo in load_slos(tmp_path / "here").slos] == [
        "my-agent-acceptable-outcome",
        "my-agent-availability",
    ]
    assert not (tmp_path / "lake").exists()


def test_validate_tells_what_does_nothing(surefoot: Command, tmp_path: Path) -> None:
    write(tmp_path / "slos", {name: text for name, text in FILES.items() if name != "slo"})
    done = surefoot("validate")
    assert done.exit_code == 0
    assert "condition.yaml:4: nothing refers to" not in done.output  # the policy does
    assert "policy.yaml:4: nothing refers to the AlertPolicy 'fast-page' (no problem)" in done.output
    assert "0 valid, 0 problems" in done.output
    told = json.loads(surefoot("validate", "--json").output)
    assert len(told["unused"]) == 5
    assert (told["valid"], told["policies"], told["adjustments"]) == ([], [], [])


def test_validate_counts_policies_and_adjustments(surefoot: Command, tmp_path: Path) -> None:
    policy = """\
apiVersion: surefoot/v1
kind: ErrorBudgetPolicy
metadata: {name: freeze}
spec:
  slos: [good]
  rules: [{action: freeze_rollout, when: {budget: {below: 0.1}}}]
"""
    adjustment = """\
apiVersion: surefoot/v1
kind: BudgetAdjustment
metadata: {name: move}
spec: {slo: good, from: 2026-11-24T18:00:00Z, to: 2026-11-24T20:00:00Z, author: Ada, reason: the ledger moves}
"""
    write(tmp_path / "slos", {"good": GOOD, "policy": policy, "move": adjustment})
    assert "1 valid, 1 error-budget policies, 1 adjustments, 0 problems" in surefoot("validate").output
    wrong = {"policy": policy.replace("[good]", "[godo]"), "move": adjustment.replace("slo: good", "slo: x")}
    write(tmp_path / "slos", wrong)
    done = surefoot("validate")
    assert done.exit_code == 2
    assert "policy.yaml:5: spec.slos[0]: there is no SLO 'godo'; did you mean good?" in done.output
    assert "move.yaml:4: spec.slo: there is no SLO 'x'" in done.output
    write(tmp_path / "slos", {"policy": policy.replace("surefoot/v1", "openslo/v1")})
    told = surefoot("validate").output
    assert "policy.yaml:1: apiVersion: the version is 'openslo/v1'; write apiVersion: surefoot/v1" in told


def test_two_policies_of_one_name_are_told(tmp_path: Path) -> None:
    policy = """\
apiVersion: surefoot/v1
kind: ErrorBudgetPolicy
metadata: {name: freeze}
spec: {slos: [good], rules: [{action: notify, when: {budget: {below: 0.1}}}]}
"""
    write(tmp_path, {"good": GOOD, "a": policy, "b": policy})
    loaded = load_slos(tmp_path)
    assert [found.file for found in loaded.policies] == [str(tmp_path / "a.yaml")]
    (problem,) = loaded.problems
    assert f"another ErrorBudgetPolicy 'freeze', in {tmp_path}/a.yaml:3" in problem.what


# status


@pytest.mark.parametrize("width", [60, 80, 120, 156, 200])
def test_status_leaves_columns_out_before_it_breaks_a_name(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "support-desk-acceptable-outcome"
    report = every_state(1_000_000.0)
    report = replace(report, slos=[replace(found, slo=f"{name}-{place}") for place, found in enumerate(report.slos)])
    text = shown(report, width, monkeypatch)
    assert "…" not in text
    assert all(f"{found.slo} " in text for found in report.slos)
    assert ("95 % interval" in text) == (width == 200)


def shown(report: StatusReport, width: int, monkeypatch: pytest.MonkeyPatch) -> str:
    out = Console(width=width, file=io.StringIO(), highlight=False)
    monkeypatch.setattr(slo_status, "console", lambda: out)
    slo_status.print_table(report, report.computed_at)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100, 130, 160])
def test_status_is_readable_at_any_width(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(every_state(1_000_000.0), width, monkeypatch)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text  # a cut number would mislead
    lines = {line[:30].strip().split("  ")[0]: line for line in text.splitlines()}
    assert "burning page" in lines["pages"]
    assert "-2900.0 %" in lines["pages"]
    assert "1,460" in lines["late (matured)"] or width < 80
    assert "frozen" in lines["late (matured)"]
    assert "ok" in lines["late (fast)"]
    flat = re.sub(r"\s+", " ", text)
    assert "late (matured): its numbers end 6 h ago, when most labels have come (learnt from 812 labels)" in flat
    assert "frozen, no label came for 9 h, and 1 h is usual" in flat
    assert "late (matured): for 2 h the policy desk-policy demands: tighten mode to human_approval: budget left" in flat
    assert "not counted, 2026-11-24 18:00 to 2026-11-24 20:00 UTC: the ledger moves (Ada)" in flat
    assert ("lasts" in text) == (width >= 156)


def test_check_ends_with_1_for_a_stratum_and_with_3_for_numbers_of_long_ago(surefoot: Command, tmp_path: Path) -> None:
    def check(at: float, *strata: StratumReport) -> Result:
        report = StatusReport(at, [slo("desk", "ok", Counts(500, 1), 0.99, strata)], [])
        status.publish(Settings(home=tmp_path).status_path, "slo", report.to_json())
        return surefoot("status", "--check")

    now = time.time()
    assert check(now).exit_code == 0
    refund = stratum("burning_page", Counts(60, 40), 0.99, "task_class=refund", {"task_class": "refund"})
    assert check(now, refund).exit_code == 1
    assert check(now - 3600, refund).exit_code == 1
    late = check(now - 3600)
    assert isinstance(late.exception, UnreachableError)
    assert "of now nothing is known" in str(late.exception)


def test_nine_nines_are_not_one_hundred_per_cent(monkeypatch: pytest.MonkeyPatch) -> None:
    """slok/sloth#131: 99.99 was shown as 100 %."""
    objectives = {0.999: "99.9 %", 0.9999: "99.99 %", 0.99995: "99.995 %", 0.9999999: "99.99999 %", 0.9: "90 %"}
    for objective, words in objectives.items():
        assert objective_percent(objective) == words
        report = StatusReport(0.0, [slo("one", "ok", Counts(10, 0), objective)], [])
        assert f"{words} / 28d" in shown(report, 160, monkeypatch)


def test_lengths_of_time_are_in_the_unit_that_people_use() -> None:
    told = [lasting(seconds) for seconds in (None, 0, 59, 60, 5400, 86_400, 20 * 86_400)]
    assert told == ["–", "0 s", "59 s", "1 min", "1.5 h", "1 d", "20 d"]


# explain


def test_explain_says_in_words_what_a_real_engine_found(surefoot: Command, tmp_path: Path) -> None:
    judged(tmp_path)
    done = surefoot("explain", "good")
    assert done.exit_code == 0, done.output
    text = done.output
    assert "good: 99 % good over the last 28d" in text
    assert f"It counts runs. Defined in {tmp_path}/slos/good.yaml:3." in text
    assert "View fast: exhausted" in text
    assert re.search(r"^28d +39 +1 +0 +0 +2\.50 % +2\.50–2\.50 % +2\.50$", text, re.MULTILINE)
    assert "Budget: -150.0 % is left. 1 events were bad, 0.4 of 40 may be." in text
    for tier in ("page_fast", "page_slow", "ticket_fast", "ticket_slow"):
        assert re.search(rf"^{tier}: quiet\. A (page|ticket) where \w+ and \w+ burn faster than ", text, re.MULTILINE)
    assert "(Wilson, n 40)" in text


def test_explain_says_what_the_budget_was_spent_on(surefoot: Command, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    tables = Tables(Lake.open(settings.lake_path))
    good = [run(number, number * 3600 + 5) | {"agent_version": "v1"} for number in range(40)]
    bad = [run(100 + number, 7200 + number * 60, "error") | {"agent_version": "v2"} for number in range(8)]
    tables.hold(runs=[*good, *bad])
    write(settings.slos_path, {"good": GOOD})
    engine = SloEngine(tables.lake, settings)
    status.publish(settings.status_path, "slo", engine.step(time.time(), set()).to_json())
    text = surefoot("explain", "good").output
    assert re.search(r"^20\d\d-\d\d-\d\d \d\d:\d\d to .* UTC +8 +\d+ +100\.0 % +1666\.7 %$", text, re.MULTILINE)
    assert re.search(r"^v2 +8 +8 +100\.0 % +1666\.7 %$", text, re.MULTILINE)
    assert re.search(r"^v1 +0 +40 +0\.0 % +0\.0 %$", text, re.MULTILINE)
    assert "spent by stratum" not in text  # it has none
    told = json.loads(surefoot("explain", "good", "--json").output)["spent"]
    assert [part["name"] for part in told["releases"]] == ["v2", "v1"]
    write(settings.slos_path, {"good": GOOD.replace("28d", "30d")})
    assert "the file is another one than that of the report" in surefoot("explain", "good").output


def test_explain_tells_views_frozen_tiers_and_policies_apart(surefoot: Command, tmp_path: Path) -> None:
    status.publish(tmp_path / "status", "slo", every_state(time.time()).to_json())
    text = surefoot("explain", "late").output
    fast, matured = text.split("View matured: frozen")
    assert "View fast: ok" in fast
    assert "bad is a lower bound" in fast
    assert "page_fast: quiet" in fast
    assert "The watermark cannot be trusted: no label came for 9 h" in matured
    assert "Were all 500 missing labels bad, -471.4 % would be left." in matured
    assert "frozen. A ticket where 1d and 2h burn faster than 2.8. With the 500 missing labels good" in matured
    assert "demands: tighten mode to human_approval: budget left is 17.8 %, n 1,460." in matured
    assert "Not counted: 2026-11-24" in matured
    assert "Its file is gone, or has problems" in fast
    assert "task_class=refund: burning page" in surefoot("explain", "tickets", "--stratum", "task_class=refund").output
    told = json.loads(surefoot("explain", "late", "--json").output)
    assert [view["view"] for view in told["views"]] == ["fast", "matured"]


def test_explain_of_an_slo_without_events_says_so_and_names_no_number(surefoot: Command, tmp_path: Path) -> None:
    status.publish(tmp_path / "status", "slo", every_state(time.time()).to_json())
    text = surefoot("explain", "silent").output
    assert "Budget: undefined" in text
    assert "0.0 %" not in text
    assert "nan" not in text


def test_explain_knows_which_slo_was_meant(surefoot: Command, tmp_path: Path) -> None:
    status.publish(tmp_path / "status", "slo", every_state(time.time()).to_json())
    assert_fails(surefoot("explain", "page"), UnknownSloError, "did you mean pages?")
    assert_fails(surefoot("explain", "tickets", "--stratum", "refund"), UnknownSloError, "task_class=refund")


def assert_fails(done: Result, kind: type[Exception], words: str) -> None:
    assert isinstance(done.exception, kind)
    assert words in str(done.exception)


def test_explain_names_a_calendar_and_the_runs_that_are_graded(surefoot: Command, tmp_path: Path) -> None:
    write(tmp_path / "slos", FILES)
    report = slo("desk-outcome", "ok", Counts(10, 0), 0.995)
    status.publish(tmp_path / "status", "slo", StatusReport(time.time(), [report], []).to_json())
    text = surefoot("explain", "desk-outcome").output
    assert "99.5 % good over calendar periods of 28d in Europe/Berlin" in text
    assert "Only runs whose variant is graded or audited are selected for grading" in text
    assert "Divided by task_class." in text


# history


def test_history_is_what_the_engine_counted_as_table_csv_and_parquet(surefoot: Command, tmp_path: Path) -> None:
    judged(tmp_path)
    table = surefoot("history", "good")
    assert table.exit_code == 0, table.output
    assert "objective 99 %, since" in table.output
    rows = list(csv.DictReader(io.StringIO(surefoot("history", "good", "--format", "csv", "--every", "hour").output)))
    assert (sum(int(row["good"]) for row in rows), sum(int(row["bad"]) for row in rows)) == (39, 1)
    assert len(rows) == 40
    assert rows[0]["start"].endswith(":00:00Z") or "00:00" in rows[0]["start"]
    out = tmp_path / "history.parquet"
    assert surefoot("history", "good", "--format", "parquet", "--every", "minute", "--out", str(out)).exit_code == 0
    found = pq.read_table(out)
    assert (found.num_rows, sum(found["bad"].to_pylist())) == (40, 1)
    assert surefoot("history", "good", "--out", str(tmp_path / "history.csv")).exit_code == 0
    assert (tmp_path / "history.csv").read_text().startswith('"slo","generation","view"')


def test_history_says_what_it_cannot_give(surefoot: Command, tmp_path: Path) -> None:
    judged(tmp_path)
    assert_fails(surefoot("history", "godo"), HistoryError, "did you mean good?")
    assert_fails(surefoot("history", "good", "--view", "matured"), HistoryError, "no such view")
    assert_fails(surefoot("history", "good", "--format", "parquet"), HistoryError, "--out")
