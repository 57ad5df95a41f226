"""The peers' part of ``evidence.py``, for a Python with agentrel and inspect-ai: processor seconds by work, as JSON.

Inputs in each peer's own form are built before the clock starts.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np


def timed(work: Callable[[], Any]) -> float:
    """Processor seconds that it takes."""
    began = time.process_time()
    work()
    return time.process_time() - began


def agentrel_seconds(outcomes: np.ndarray) -> dict[str, float]:
    """Its pass^5 with a bootstrap interval; the default's time from the time of one resample more."""
    from agentrel.metrics import pass_hat_k  # type: ignore[import-not-found]  # in the peers' environment

    scores = {f"task-{number:07d}": row.astype(float) for number, row in enumerate(outcomes)}
    one = timed(lambda: pass_hat_k(scores, 5, n_boot=1, seed=0))
    two = timed(lambda: pass_hat_k(scores, 5, n_boot=2, seed=0))
    return {
        "agentrel: pass^5 with 1 resample": one,
        "agentrel: pass^5 with its 2,000 resamples, reckoned": one + 1999 * max(two - one, 0.0),
    }


def inspect_seconds(outcomes: np.ndarray) -> dict[str, float]:
    """Its reducers over the epochs of each sample, and the standard error of the mean of the reduced scores."""
    from inspect_ai.scorer import SampleScore, Score, mean_score, pass_at, pass_k, stderr

    epochs = [[Score(value=float(value)) for value in row] for row in outcomes]

    standard_error: Any = stderr()  # annotated for one of the two kinds of scores that it takes

    def work() -> None:
        for reducer in (mean_score(), pass_at(3), pass_k(3)):
            reduced = [reducer(scores) for scores in epochs]
        standard_error([SampleScore(score=score) for score in reduced])

    return {"inspect-ai: mean, pass@3, pass^3, standard error": timed(work)}


def main() -> None:
    """Measure both."""
    outcomes = np.load(sys.argv[1])
    print(json.dumps(agentrel_seconds(outcomes) | inspect_seconds(outcomes)))


if __name__ == "__main__":
    main()
