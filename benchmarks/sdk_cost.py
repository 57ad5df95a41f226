"""What the SDK costs beside bare OpenTelemetry: time to import, and time per span, as ratios of the same run.

Both sides are measured in turn, over and over, so that a busy machine slows both alike; each round gives one ratio.
Printed are the median of these ratios, their quartiles, and the number of rounds. Bare OpenTelemetry means: for the
import, its trace and logs API, which is what the SDK stands on; for a span, ``start_as_current_span`` with the same
name and the same attributes, on the same provider, which has no exporter.

    python benchmarks/sdk_cost.py [--rounds 31] [--spans 2000]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from surefoot.instrumentation import tool

BARE_IMPORT = "import opentelemetry.trace, opentelemetry._logs"
OUR_IMPORT = "import surefoot.instrumentation"
ATTRIBUTES = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "look",
    "surefoot.tool.effect": "read",
}


@dataclass(frozen=True, slots=True)
class Ratios:
    """One comparison: ``values`` has a ratio (ours / bare) per round; times are medians in seconds."""

    what: str
    values: Sequence[float]
    ours: float
    bare: float

    def line(self, unit: str, factor: float) -> str:
        """Median, quartiles, number of rounds, and the two times behind them."""
        low, middle, high = statistics.quantiles(self.values, n=4)
        return (
            f"{self.what}: {middle:.2f} times bare OpenTelemetry (quartiles {low:.2f} to {high:.2f}, "
            f"n = {len(self.values)} rounds; {self.ours * factor:.1f} and {self.bare * factor:.1f} {unit})"
        )


def compare(what: str, ours: Callable[[], float], bare: Callable[[], float], rounds: int) -> Ratios:
    """Measure both in turn, ``rounds`` times; which one goes first alternates. Both return seconds."""
    ours(), bare()  # warm file caches and code paths
    pairs = []
    for number in range(rounds):
        if number % 2:
            second, first = ours(), bare()
        else:
            first = bare()
            second = ours()
        pairs.append((second, first))
    return Ratios(
        what,
        [mine / theirs for mine, theirs in pairs],
        statistics.median(mine for mine, _ in pairs),
        statistics.median(theirs for _, theirs in pairs),
    )


def import_seconds(statement: str, cache: str) -> float:
    """Time of an import in a fresh interpreter, without its own start, with compiled files kept in ``cache``."""
    code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    # Installed packages come compiled; a checkout must not pay for being compiled anew each time.
    environ = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ)
    return float(done.stdout)


def bare_spans(count: int) -> float:
    """Seconds per span of OpenTelemetry alone."""
    tracer = trace.get_tracer("bare")
    start = time.perf_counter()
    for _ in range(count):
        with tracer.start_as_current_span("execute_tool look", attributes=ATTRIBUTES):
            pass
    return (time.perf_counter() - start) / count


def our_spans(count: int) -> float:
    """Seconds per span of the SDK."""
    start = time.perf_counter()
    for _ in range(count):
        with tool("look", effect="read"):
            pass
    return (time.perf_counter() - start) / count


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=31, help="times that each side is measured (at least 2)")
    parser.add_argument("--spans", type=int, default=2000, help="spans per measurement")
    options = parser.parse_args(arguments)
    rounds, count = options.rounds, options.spans
    with tempfile.TemporaryDirectory() as cache:
        imports = compare(
            "import", lambda: import_seconds(OUR_IMPORT, cache), lambda: import_seconds(BARE_IMPORT, cache), rounds
        )
    idle = compare("span, nothing set up", lambda: our_spans(count), lambda: bare_spans(count), rounds)
    trace.set_tracer_provider(TracerProvider())
    spans = compare("span, recorded", lambda: our_spans(count), lambda: bare_spans(count), rounds)
    print(imports.line("ms", 1e3))
    print(idle.line("us", 1e6))
    print(spans.line("us", 1e6))


if __name__ == "__main__":
    main()
