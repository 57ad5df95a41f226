"""The ingest and query benchmarks run and find every span once; how fast that is, is not for a test to say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_the_benchmark_finds_every_acknowledged_span_once_also_after_kills(tmp_path: Path) -> None:
    command = [
        sys.executable,
        str(BENCHMARKS / "ingest.py"),
        "--rounds",
        "1",
        "--seconds",
        "1",
        "--folder",
        str(tmp_path),
    ]
    command += ["--only", "sustained,killed,share"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"([\d,]+) acknowledged, each there once", done.stdout)
    assert len(found) == 4  # sustained and killed, over HTTP and gRPC
    assert all(int(number.replace(",", "")) > 0 for number in found)
    assert "and Parquet, fsync, commit" in done.stdout


def test_queries_during_ingest_and_compaction_count_right(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "queries.py"), "--million", "0.2", "--rounds", "2"]
    done = subprocess.run(
        [*command, "--folder", str(tmp_path)], capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("| at rest |") == done.stdout.count("| during ingest and compaction |") == 4
