"""A real ``surefoot serve`` in a folder of its own, on free ports, stopped by process id."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

from surefoot.errors import SurefootError
from surefoot.processors.lake import Lake

# An SLO for end-to-end tests: 99 % of the runs of the service "desk" end well.
DESK_AVAILABILITY = """
apiVersion: openslo/v1
kind: SLO
metadata: {name: desk-availability}
spec:
  service: desk
  budgetingMethod: Occurrences
  timeWindow: [{duration: 28d, isRolling: true}]
  indicator:
    metadata: {name: availability}
    spec:
      ratioMetric:
        rawType: success
        raw: {metricSource: {type: surefoot, spec: {indicator: availability, where: {service_name: desk}}}}
  objectives: [{target: 0.99}]
"""
SUREFOOT = [sys.executable, "-c", "from surefoot.cli.main import main; main()"]


def eventually(what: str, attempt: Callable[[], Any], seconds: float = 60.0) -> Any:
    """The first true result of ``attempt``; fails with what was awaited and the last thing seen."""
    deadline = time.monotonic() + seconds
    while True:
        result = attempt()
        if result:
            return result
        if time.monotonic() > deadline:
            pytest.fail(f"{what}: not within {seconds:.0f} s; last seen {result!r}")
        time.sleep(0.1)


@dataclass(frozen=True)
class Server:
    home: Path
    grpc: str
    http: str
    web: str
    process: subprocess.Popen[str]
    environment: dict[str, str]

    def rows(self, sql: str) -> list[dict[str, Any]]:
        # Not `console.query`: callers look every 0.1 s, and a process for each look takes the cores from the server.
        try:
            with Lake.open(self.home / "lake", create=False).connect() as con:
                found = con.execute(sql)
                names = [name for name, *_ in found.description or []]
                return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
        except (SurefootError, duckdb.Error):
            return []  # a table that is not there yet; every caller waits for rows that it names

    def command(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*SUREFOOT, *arguments],
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=120,
            check=False,
            **options,
        )

    def pids(self) -> dict[str, int]:
        content = json.loads((self.home / "status" / "supervisor.json").read_text())
        return {name: entry["pid"] for name, entry in content["processes"].items() if entry["pid"]}


@contextlib.contextmanager
def serving(home: Path, **settings: str) -> Iterator[Server]:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("SUREFOOT_", "OTEL_"))},
        "SUREFOOT_HOME": str(home),
        "SUREFOOT_SEGMENT_SECONDS": "0.2",
        "SUREFOOT_JOBS_INTERVAL_SECONDS": "0.3",
        **{f"SUREFOOT_{name.upper()}": value for name, value in settings.items()},
    }
    log = (home.parent / f"{home.name}.log").open("w")
    with (
        log,
        subprocess.Popen(
            [*SUREFOOT, "serve", "--port-grpc", "0", "--port-http", "0", "--port-web", "0", "--ready-json"],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
        ) as process,
    ):
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, f"serve did not start:\n{Path(log.name).read_text()}"
        ready = json.loads(line)
        try:
            yield Server(home, ready["grpc"], ready["http"], ready["web"], process, environment)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                code = process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        assert code == 0, Path(log.name).read_text()
