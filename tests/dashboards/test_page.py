"""What the pages read from the lake, how they say it, and the charts."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path

import markupsafe
import pytest

from support.reports import every_state
from support.slo_events import Row, Tables
from surefoot.dashboards.page import charts, records, text
from surefoot.dashboards.page.pages import Pages
from surefoot.processors import status
from surefoot.processors.lake import Lake
from surefoot.processors.settings import Settings
from surefoot.processors.slo import Slo, SloEngine, load_slos
from surefoot.processors.slo.report import BudgetPoint, Counts, SloReport

NOW = 1_773_144_000.0  # 2026-03-10 12:00:00 UTC

SLO = """\
apiVersion: openslo/v1
kind: SLO
metadata: {name: desk}
spec:
  service: desk
  budgetingMethod: Occurrences
  timeWindow: [{duration: 28d, isRolling: true}]
  indicator:
    metadata: {name: mine}
    spec:
      ratioMetric:
        rawType: success
        raw:
          metricSource:
            type: surefoot
            spec: {indicator: availability, where: {service_name: desk}, by: [task_class]}
  objectives: [{target: 0.9}]
"""


def run(number: int, ago: float, outcome: str = "ok", **other: object) -> Row:
    return {
        "run_id": f"r{number}",
        "trace_id": f"t{number}",
        "parent_run_id": None,
        "service_name": "desk",
        "task_class": "refund",
        "outcome": outcome,
        "ended_us": int((NOW - ago) * 1_000_000),
        **other,
    }


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "slos").mkdir()
    (tmp_path / "slos/desk.yaml").write_text(SLO)
    return Settings(home=tmp_path)


def judged(settings: Settings, *runs: Row) -> tuple[SloReport, Slo]:
    """The runs in a lake, and what the engine says of them; the report is published too."""
    lake = Lake.open(settings.lake_path)
    Tables(lake).hold(runs=list(runs))
    report = SloEngine(lake, settings).step(NOW, set())
    status.publish(settings.status_path, "slo", report.to_json())
    (slo,) = load_slos(settings.slos_path).slos
    return report.slos[0], slo


def test_the_burn_chart_ends_with_the_numbers_of_the_report(settings: Settings) -> None:
    report, slo = judged(settings, run(0, 30, "error"), run(1, 600), run(2, 4000), run(3, 9000), run(4, 9100, "error"))
    rates = {window.window: window.burn_rate for window in report.strata[0].windows}

    past = records.past(settings, report, slo, NOW)

    assert {point.window: point.burn_rate for point in past.burn if point.at == NOW} == {
        "1h": pytest.approx(5),
        "6h": pytest.approx(4),
    }
    assert all(point.burn_rate == rates[point.window] for point in past.burn if point.at == NOW)


def test_the_burn_chart_looks_back_from_each_of_its_times(settings: Settings) -> None:
    report, slo = judged(settings, run(0, 12 * 3600, "error"), run(1, 30 * 3600, "error"))

    burn = records.past(settings, report, slo, NOW).burn

    defined = {name: [(NOW - p.at) / 3600 for p in burn if p.window == name and p.burn_rate] for name in ("1h", "6h")}
    # The one of 30 h ago is in no window of the day; the other is in those that end up to their length after it.
    assert [max(defined["1h"]), min(defined["1h"])] == pytest.approx([12, 11], abs=0.1)
    assert [max(defined["6h"]), min(defined["6h"])] == pytest.approx([12, 6], abs=0.1)
    assert [point.burn_rate for point in burn if point.at == NOW] == [None, None]


def test_bad_events_are_those_that_the_slo_counts_with_their_run(settings: Settings) -> None:
    failed = run(0, 30, "error", error_type="Timeout", agent_name="desk-agent")
    others = run(3, 10, "error", service_name="shop"), run(4, 5 * 86_400, "error"), run(5, 60)
    report, slo = judged(settings, failed, run(1, 20, "abandoned", task_class="a,b"), *others)
    assert report.strata[0].windows[-1].counts == Counts(good=1, bad=3)

    found = records.past(settings, report, slo, NOW).bad_events

    assert [row["trace_id"] for row in found] == ["t1", "t0"]  # not the shop's, not that of five days ago
    assert [row["stratum_key"] for row in found] == ["task_class=a%2Cb", "task_class=refund"]
    assert (found[1]["agent_name"], found[1]["error_type"]) == ("desk-agent", "Timeout")


def test_a_bad_tool_call_outside_of_any_run_is_shown_without_one(settings: Settings) -> None:
    path = settings.slos_path / "desk.yaml"
    path.write_text(SLO.replace("availability", "tool_success"))
    Tables(Lake.open(settings.lake_path)).hold(
        tool_calls=[{**run(0, 30, "error"), "run_id": None, "parent_run_id": None}]
    )
    report = SloEngine(Lake.open(settings.lake_path), settings).step(NOW, set()).slos[0]
    (slo,) = load_slos(settings.slos_path).slos

    (row,) = records.past(settings, report, slo, NOW).bad_events

    assert (row["trace_id"], row["outcome"]) == ("t0", None)


def test_the_page_of_an_slo_shows_its_past(settings: Settings) -> None:
    judged(settings, run(0, 30, "error", error_type="desk.Timeout"), run(1, 600))

    shown = Pages(settings).detail("desk")

    assert shown is not None
    assert shown.count("<svg") == 3
    assert ">t0<" in shown
    assert "Timeout</span>" in shown
    assert ">t1<" not in shown  # it ended well


def test_a_definition_that_changed_since_is_not_taken_for_the_report_s(settings: Settings) -> None:
    judged(settings, run(0, 30, "error"))
    path = settings.slos_path / "desk.yaml"
    path.write_text(SLO.replace("service_name: desk", "service_name: shop"))

    shown = Pages(settings).detail("desk")

    assert shown is not None
    assert ">t0<" not in shown


def test_a_lake_that_cannot_be_read_is_a_sentence_on_the_page(settings: Settings) -> None:
    judged(settings, run(0, 30, "error"))
    for file in (settings.lake_path / "runs").rglob("*.parquet"):
        file.write_bytes(b"not parquet")

    found = records.latest_runs(settings)

    assert (found.latest, found.failed) == ([], [])
    assert found.trouble
    assert str(markupsafe.escape(found.trouble)) in Pages(settings).overview()


def test_latest_runs_leave_sub_runs_out_and_failures_are_apart(settings: Settings) -> None:
    rows = [
        run(number, 1000 - number, "error" if number % 2 else "ok", started_at=int((NOW - 2000 + number) * 1e6))
        for number in range(20)
    ]
    judged(settings, *rows, run(99, 1, parent_run_id="r1", started_at=int(NOW * 1e6)))

    found = records.latest_runs(settings)

    assert [row["trace_id"] for row in found.latest] == [f"t{number}" for number in range(19, 11, -1)]
    assert [row["trace_id"] for row in found.failed] == [f"t{number}" for number in range(19, 3, -2)]


def test_the_most_urgent_slo_comes_first(settings: Settings) -> None:
    status.publish(settings.status_path, "slo", every_state(NOW).to_json())

    shown = Pages(settings).overview()

    # tickets has a stratum that pages, so it comes before what has only spent its budget.
    assert re.findall(r'href="/slo/(\w+)"', shown) == ["pages", "tickets", "late", "spent", "silent", "fine"]


def test_an_slo_with_two_views_stands_once_and_shows_both(settings: Settings) -> None:
    status.publish(settings.status_path, "slo", every_state(NOW).to_json())
    pages = Pages(settings)

    overview, detail = pages.overview(), pages.detail("late")

    assert overview.count('href="/slo/late"') == 1
    assert re.search(r'fast view: <span class="ok">OK</span>', overview)
    assert re.search(r'matured view: <span class="frozen">Frozen</span>', overview)
    assert detail is not None
    assert "Error budget left: 17.8 %" in detail  # the matured view holds the budget
    assert detail.count("<h2>Windows, ") == 2
    # Pages come from the fast view and tickets from the matured one, each tier once.
    assert re.findall(r"<tr><td>(page|ticket)</td>", detail) == ["page", "page", "ticket", "ticket"]


def test_a_stratum_that_pages_is_shown_in_its_view_with_the_reason(settings: Settings) -> None:
    status.publish(settings.status_path, "slo", every_state(NOW).to_json())

    shown = Pages(settings).detail("late")

    assert shown is not None
    assert shown.count("<h2>Strata, fast view</h2>") == 1
    assert "<h2>Strata, matured view</h2>" not in shown
    cell = re.search(r'<tr><td>task_class=refund</td><td class="burning_page">Paging(.*?)</td>', shown)
    assert cell is not None
    assert "40 bad of n 100, p 1e-09" in cell[1]


def test_frozen_is_visible_with_its_reason_its_bounds_and_its_watermark(settings: Settings) -> None:
    status.publish(settings.status_path, "slo", every_state(NOW).to_json())

    shown = Pages(settings).detail("late")

    assert shown is not None
    assert '<span class="pill frozen">Frozen</span>' in shown
    assert "The matured view is frozen:</b> no label came for 9 h" in shown
    assert "with the 500 missing labels good it does not burn, with them bad it does" in shown
    assert "3.06 % to 28.57 %" in shown  # bad / total to (bad + unlabelled) / total
    assert "74.5 %" in shown  # label coverage
    assert "−471.4 % were all missing labels bad" in shown
    assert "10 Mar 06:00 UTC" in shown  # the watermark
    assert "6.0 h back, for labels; learnt from n 812" in shown

    unknown = every_state(NOW)
    unknown = replace(unknown, slos=[replace(slo, label_delay_n=0) for slo in unknown.slos])
    status.publish(settings.status_path, "slo", unknown.to_json())
    shown = Pages(settings).detail("late")
    assert shown is not None
    assert "6.0 h back, the longest wait for labels, until live runs have shown how late they come" in shown


def test_what_a_policy_demands_and_what_was_taken_out_stand_on_the_page(settings: Settings) -> None:
    status.publish(settings.status_path, "slo", every_state(NOW).to_json())
    pages = Pages(settings)

    shown = pages.detail("late")

    assert shown is not None
    assert "Policy desk-policy demands tighten mode to human approval" in shown
    assert "budget left is 17.8 %, n 1,460" in shown
    assert "the ledger moves (Ada)" in shown
    assert "policy desk-policy demands tighten mode to human approval" in pages.overview()


def test_silence_and_clusters_of_failures_are_told_with_their_sample_size(settings: Settings) -> None:
    status.publish(settings.status_path, "slo", every_state(NOW).to_json())

    shown = Pages(settings).detail("fine")

    assert shown is not None
    assert "longer than 2.0 h is unusual" in shown
    assert "correlation within an hour, n 600 hours" in shown


def test_the_example_for_newcomers_is_a_valid_slo(settings: Settings) -> None:
    (settings.slos_path / "desk.yaml").unlink()

    shown = Pages(settings).overview()

    (example,) = re.findall(r"<pre[^>]*>(apiVersion.*?)</pre>", shown, re.DOTALL)
    (settings.slos_path / "answers.yaml").write_text(html.unescape(example))
    loaded = load_slos(settings.slos_path)
    assert loaded.problems == []
    assert [slo.name for slo in loaded.slos] == ["answers"]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (text.percent(None), "–"),
        (text.percent(0.98765), "98.8 %"),
        (text.percent(0.98765, 2), "98.77 %"),
        (text.percent(-29.0), "−2,900 %"),
        (text.percent(-0.0001), "0.0 %"),
        (text.objective(0.9995), "99.95 %"),
        (text.objective(0.95), "95 %"),
        (text.number(1234.56), "1,234.6"),
        (text.compact(99_999), "99,999"),
        (text.compact(123_456), "123 k"),
        (text.compact(999_999), "1.0 M"),
        (text.compact(12_345_678), "12.3 M"),
        (text.duration(None), "–"),
        (text.duration(2.5e7), "25 ms"),
        (text.duration(90e9), "1.5 min"),
        (text.ago(NOW - 14.2, NOW), "14 s ago"),
        (text.ago(NOW - 90, NOW), "1.5 min ago"),
        (text.ago(NOW + 5, NOW), "0 s ago"),
        (text.clock(None), "–"),
    ],
)
def test_numbers_are_written_for_people(shown: str, expected: str) -> None:
    assert shown == expected


def test_a_gap_in_the_burn_rate_is_a_gap_in_its_line() -> None:
    rates = [1.0, 2.0, None, None, 3.0, 4.0]
    points = [records.BurnPoint(NOW + 300 * i, "1h", rate) for i, rate in enumerate(rates)]

    lines = re.findall(r'aria-roledescription="line mark".*? d="(M[^"]*)"', charts.burn_chart(points, [], 300, 100))

    assert [line.count("M") for line in lines] == [2]


def test_without_numbers_there_is_no_chart() -> None:
    nothing = [BudgetPoint("2026-03-01", None, Counts())]

    assert charts.budget_chart(nothing, 300, 100) == ""
    assert charts.events_chart(nothing, 300, 100) == ""
    assert charts.burn_chart([records.BurnPoint(NOW, "1h", None)], [], 300, 100) == ""


def test_colours_are_those_of_the_page() -> None:
    history = [BudgetPoint(date(2026, 3, day).isoformat(), 1 - day / 10, Counts(9, 1)) for day in range(1, 9)]
    points = [records.BurnPoint(NOW + 300 * i, name, 1.0) for i in range(9) for name in records.BURN_WINDOWS]
    drawn = [
        charts.budget_chart(history, 300, 100),
        charts.events_chart(history, 300, 100),
        charts.burn_chart(points, every_state(NOW).slos[0].strata[0].tiers, 300, 100),
    ]
    base = (Path(charts.__file__).parent / "templates/base.html").read_text()

    assert not re.search(r"#0102\d\d", "".join(drawn))
    for variable in set(re.findall(r"var\((--\w+)\)", "".join(drawn))):
        assert base.count(f"{variable}:") == 2, f"{variable} needs a light and a dark value"


def test_axes_of_time_do_not_follow_the_machine_s_zone() -> None:
    code = (
        "from surefoot.dashboards.page import charts;"
        "from surefoot.processors.slo.report import BudgetPoint, Counts;"
        "days = [BudgetPoint(f'2026-03-{d:02d}', 0.5, Counts(1)) for d in range(1, 9)];"
        "print(charts.budget_chart(days, 300, 100))"
    )
    environment = {**os.environ, "TZ": "Pacific/Auckland"}

    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)

    assert re.findall(r">([^<]+)</text>", ended.stdout)[:4] == ["1 Mar", "2 Mar", "3 Mar", "4 Mar"]
