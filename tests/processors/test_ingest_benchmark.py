"""The ingest benchmark runs, and what it acknowledged is there once; how fast it is, is not for a test to say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "ingest.py"


def test_the_benchmark_finds_every_acknowledged_span_once_also_after_kills(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARK), "--rounds", "1", "--seconds", "1", "--folder", str(tmp_path)]
    command += ["--only", "sustained,killed,share"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"([\d,]+) acknowledged, each there once", done.stdout)
    assert len(found) == 4  # sustained and killed, over HTTP and gRPC
    assert all(int(number.replace(",", "")) > 0 for number in found)
    assert "and Parquet, fsync, commit" in done.stdout
