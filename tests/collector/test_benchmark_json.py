"""The JSON benchmark runs and its figures are figures; how large they are is not for a test to say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "otlp_json.py"


def test_the_benchmark_reports_ratios_with_their_spread_and_number() -> None:
    command = [sys.executable, str(BENCHMARK), "--rounds", "3", "--traces", "20"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    number = r"(\d+\.\d+)"
    lines = re.findall(
        rf"^(.+?) +{number} x protobuf \(quartiles {number} to {number}, 3 rounds\)", done.stdout, re.MULTILINE
    )
    names = ["check protobuf", "check JSON", "check JSON, exact", "decode protobuf", "decode JSON"]
    assert [line[0] for line in lines] == names
    assert all(float(figure) > 0 for line in lines for figure in line[1:])
