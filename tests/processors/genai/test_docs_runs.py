"""The queries of docs/runs.md run on derived tables and say what the page says."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

from support.traces import T0, agent, chat, evaluation, put, tool
from surefoot.instrumentation import semconv
from surefoot.processors.genai.derive import Deriver
from surefoot.processors.lake import Lake
from surefoot.processors.settings import Settings

PAGE = Path(__file__).parents[3] / "docs" / "runs.md"


def test_the_queries_of_the_page(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    lake = Lake.open(settings.lake_path)
    machine = {"score.label": "pass", semconv.EVALUATOR_KIND: "model"}
    person = {"score.label": "fail", semconv.EVALUATOR_KIND: "human"}
    put(
        lake,
        agent("desk"),
        chat("c", "desk", input_tokens=11),
        tool("t", "desk", status="error", error_type="Timeout"),
        agent("helper", "desk", 2, 1),
        evaluation("desk", 20, attributes=person),
        evaluation("c", 30, attributes=machine),
    )
    Deriver(lake, settings).step(T0 + 40)
    runs, best = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    con = lake.connect()
    assert con.execute(runs).fetchall() == [("desk", "ok", 1, 1, 11)]
    order = files("surefoot.processors.genai").joinpath("sql/verdict_precedence.sql").read_text()
    ((_, verdict, grader),) = con.execute(best.replace("/* verdict_precedence.sql */", order)).fetchall()
    assert (verdict, grader) == ("fail", "human")
