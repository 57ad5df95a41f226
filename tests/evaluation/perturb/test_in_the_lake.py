"""The query of docs/perturbation.md tells a fault that was made on purpose from a real one."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path

import pytest

from support.serving import SUREFOOT
from surefoot.instrumentation import semconv

PAGE = Path(__file__).parents[3] / "docs" / "perturbation.md"


def test_the_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time_ns() - 60_000_000_000

    def span(number: int, **attributes: str) -> dict[str, object]:
        names = {semconv.OPERATION_NAME: semconv.EXECUTE_TOOL, semconv.TOOL_NAME: "pay", **attributes}
        return {
            "traceId": "5b8efff798038103d269b633813fc60c",
            "spanId": f"{number:016x}",
            "name": "execute_tool pay",
            "startTimeUnixNano": str(now),
            "endTimeUnixNano": str(now + 1000),
            "status": {"code": 2},
            "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in names.items()],
        }

    spans = [span(1), span(2, **{semconv.FAULT_INJECTED: "timeout"})]
    (tmp_path / "x.json").write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    monkeypatch.setenv("SUREFOOT_HOME", str(tmp_path / "home"))
    (query,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    subprocess.run([*SUREFOOT, "import", "otlp", "x.json"], cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run(
        [*SUREFOOT, "sql", query, "--format", "csv"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert done.stdout == "name,fault,calls\nexecute_tool pay,timeout,1\n"
