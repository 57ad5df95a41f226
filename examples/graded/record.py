"""Writes runs.jsonl: 200 refund tasks, three runs each, judged by a model, as OpenTelemetry would have sent them.

A stand-in for an agent that you repeat and for a model as judge: what both do is a rule of the run's number.
"""

import json
import time
from pathlib import Path
from typing import Any

from truth import judged_acceptable

START = time.time_ns() - 3_600_000_000_000
SECOND = 1_000_000_000


def attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Attributes as OTLP/JSON has them."""
    kinds = {int: "intValue", str: "stringValue"}
    return [{"key": key, "value": {kinds[type(value)]: value}} for key, value in values.items()]


def run(number: int) -> dict[str, Any]:
    """A run's span with the judge's verdict on it."""
    begin, end = START + number * SECOND, START + number * SECOND + SECOND // 2
    agent = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "refunds",
        "surefoot.task.id": f"refund-{number // 3:03}",
        "surefoot.task.class": "refund",
        "surefoot.consequence.class": "reversible",
        "surefoot.run_group": "release-9",
        "surefoot.repetition": number % 3,
        "surefoot.mode": "autonomous",
        "surefoot.versions.model": "m-1",
    }
    judge = {
        "gen_ai.evaluation.name": "outcome",
        "gen_ai.evaluation.score.label": "pass" if judged_acceptable(number) else "fail",
        "surefoot.evaluator.name": "refund-judge",
        "surefoot.evaluator.version": "3",
        "surefoot.evaluator.kind": "model",
    }
    return {
        "traceId": f"{number + 1:032x}",
        "spanId": f"{number + 1:016x}",
        "name": "invoke_agent refunds",
        "startTimeUnixNano": str(begin),
        "endTimeUnixNano": str(end),
        "attributes": attributes(agent),
        "events": [{"name": "gen_ai.evaluation.result", "timeUnixNano": str(end), "attributes": attributes(judge)}],
    }


resource = {"attributes": attributes({"service.name": "refunds", "deployment.environment.name": "staging"})}
with Path("runs.jsonl").open("w", encoding="utf-8") as file:
    for task in range(200):
        spans = [run(3 * task + repetition) for repetition in range(3)]
        print(json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}), file=file)
