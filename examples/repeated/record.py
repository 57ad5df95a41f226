"""Writes runs.jsonl: 150 reconciliation tasks, three runs each, with verdicts, as OpenTelemetry would have sent them.

A stand-in for an agent that you repeat: no model is called, and what each run does is a rule of its number.
"""

import json
import time
from pathlib import Path
from typing import Any

START = time.time_ns() - 3_600_000_000_000
SECOND = 1_000_000_000


def attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Attributes as OTLP/JSON has them."""
    kinds = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}
    return [{"key": key, "value": {kinds[type(value)]: value}} for key, value in values.items()]


def verdict(name: str, label: str, grader: str, at: int) -> dict[str, Any]:
    """An evaluation on the run's span, by a program."""
    told = {
        "gen_ai.evaluation.name": name,
        "gen_ai.evaluation.score.label": label,
        "surefoot.evaluator.name": grader,
        "surefoot.evaluator.version": "7",
        "surefoot.evaluator.kind": "executable",
    }
    return {"name": "gen_ai.evaluation.result", "timeUnixNano": str(at), "attributes": attributes(told)}


def run(task: int, repetition: int) -> list[dict[str, Any]]:
    """The spans of a run: the agent, and one call that writes into a copy of the ledger."""
    number = 3 * task + repetition
    begin, end = START + number * SECOND, START + number * SECOND + SECOND // 2
    identity = 0x42_0000_0001 + number  # of no other example, so that a lake can hold both
    trace, span = f"{identity:032x}", f"{identity:016x}"
    acceptable = task != 7 and not (task in {20, 61} and repetition == 1)
    irreversible = task % 5 == 0
    agent = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "reconciler",
        "surefoot.task.id": f"ledger-{task:03}",
        "surefoot.task.class": "reconcile",
        "surefoot.consequence.class": "irreversible" if irreversible else "reversible",
        "surefoot.run_group": "release-42",
        "surefoot.repetition": repetition,
        "surefoot.mode": "autonomous",
        "surefoot.versions.model": "m-1",
        "surefoot.versions.prompt": "9",
    }
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "post_entry",
        "surefoot.tool.effect": "irreversible" if irreversible else "write",
        "surefoot.tool.dependency": "ledger",
    }
    events = [
        verdict("outcome", "pass" if acceptable else "fail", "ledger-check", end),
        verdict("policy compliance", "pass", "rule-check", end),
        verdict("outcome signature", "balanced" if acceptable else "off by one cent", "ledger-check", end),
    ]
    return [
        {
            "traceId": trace,
            "spanId": span,
            "name": "invoke_agent reconciler",
            "startTimeUnixNano": str(begin),
            "endTimeUnixNano": str(end),
            "attributes": attributes(agent),
            "events": events,
        },
        {
            "traceId": trace,
            "spanId": f"{number + 1:015x}f",
            "parentSpanId": span,
            "name": "execute_tool post_entry",
            "startTimeUnixNano": str(begin + 1),
            "endTimeUnixNano": str(end - 1),
            "attributes": attributes(tool),
        },
    ]


resource = {"attributes": attributes({"service.name": "reconciler", "deployment.environment.name": "staging"})}
with Path("runs.jsonl").open("w", encoding="utf-8") as file:
    for task in range(150):
        spans = [span for repetition in range(3) for span in run(task, repetition)]
        print(json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}), file=file)
