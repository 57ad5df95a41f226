"""A commented starter of SLO files, made from what the lake has seen.

Contract: :func:`look` says which services ran and how, :func:`scaffold` turns that into files, by name. A service that
nobody has seen gets an example whose places to fill in are marked. Targets are round numbers to begin with; what was
observed stands beside them as a comment with its sample size, because a target is a promise and not a measurement.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

import duckdb
import yaml

from surefoot.processors.slo.definition import Slo
from surefoot.processors.slo.minutes import MAX_STRATA

MOST_SERVICES: Final = 10
_SHOWN_VALUES: Final = 8
_FEW: Final = 30  # a share seen in fewer is anywhere within some 20 points
EXAMPLE_SERVICE: Final = "my-agent"


@dataclass(frozen=True, slots=True)
class Service:
    """What the lake knows of a service's runs as users saw them."""

    name: str
    runs: int
    ended_well: int  # outcome ok
    ended_badly: int  # error or abandoned
    agents: tuple[str, ...]
    task_classes: tuple[str, ...]  # most frequent first
    p95_seconds: float | None
    tool_calls: int
    tool_errors: int
    outcome_verdicts: int
    process_verdicts: int


_RUNS: Final = """
    WITH seen AS (
        SELECT service_name, agent_name, task_class, outcome, duration_ns, run_id, trace_id
        FROM runs
        WHERE parent_run_id IS NULL AND ended_at IS NOT NULL AND service_name IS NOT NULL AND date >= $since
    )
    SELECT
        service_name,
        count(*),
        count(*) FILTER (WHERE outcome = 'ok'),
        count(*) FILTER (WHERE outcome IN ('error', 'abandoned')),
        list(DISTINCT agent_name ORDER BY agent_name) FILTER (WHERE agent_name IS NOT NULL),
        quantile_cont(duration_ns, 0.95) FILTER (WHERE outcome = 'ok' AND duration_ns >= 0) / 1e9
    FROM seen
    GROUP BY service_name
    ORDER BY count(*) DESC, service_name
"""
_TASKS: Final = """
    SELECT service_name, task_class
    FROM runs
    WHERE parent_run_id IS NULL AND ended_at IS NOT NULL AND task_class IS NOT NULL AND date >= $since
    GROUP BY service_name, task_class
    ORDER BY service_name, count(*) DESC, task_class
"""
_TOOLS: Final = """
    SELECT service_name, count(*) FILTER (WHERE outcome IN ('ok', 'error')), count(*) FILTER (WHERE outcome = 'error')
    FROM tool_calls
    WHERE date >= $since
    GROUP BY service_name
"""
_VERDICTS: Final = """
    SELECT runs.service_name,
        count(*) FILTER (WHERE verdicts.kind = 'outcome'), count(*) FILTER (WHERE verdicts.kind = 'process')
    FROM verdicts
    JOIN runs ON verdicts.run_id = runs.run_id
    WHERE runs.date >= $since AND verdicts.date >= $since
    GROUP BY runs.service_name
"""


def look(con: duckdb.DuckDBPyConnection, since: date) -> list[Service]:
    """The services whose runs ended on ``since`` or later, those with most runs first."""
    asked = {"since": since}
    tasks: dict[str, list[str]] = {}
    for service, task in con.execute(_TASKS, asked).fetchall():
        tasks.setdefault(service, []).append(task)
    tools = {name: counts for name, *counts in con.execute(_TOOLS, asked).fetchall()}
    verdicts = {name: counts for name, *counts in con.execute(_VERDICTS, asked).fetchall()}
    return [
        Service(
            name,
            runs,
            well,
            badly,
            tuple(agents or ()),
            tuple(tasks.get(name, ())),
            p95,
            *tools.get(name, (0, 0)),
            *verdicts.get(name, (0, 0)),
        )
        for name, runs, well, badly, agents, p95 in con.execute(_RUNS, asked).fetchall()
    ]


def without_slo(services: Sequence[Service], slos: Iterable[Slo]) -> list[Service]:
    """The services that no SLO is about by name."""
    covered = {name for slo in slos for column, names in slo.where if column == "service_name" for name in names}
    return [service for service in services if service.name not in covered]


def scaffold(services: Sequence[Service]) -> dict[str, str]:
    """Files by name: one a service, with an SLO for each thing that its runs show. An example without services."""
    if not services:
        nothing = Service(EXAMPLE_SERVICE, 0, 0, 0, (), (), None, 0, 0, 0, 0)
        return {f"{EXAMPLE_SERVICE}.yaml": _file(nothing, EXAMPLE_SERVICE)}
    files: dict[str, str] = {}
    for service in services[:MOST_SERVICES]:
        name = slug = _slug(service.name)
        number = 2
        while f"{name}.yaml" in files:  # two services that differ in what a name cannot hold
            name, number = f"{slug}-{number}", number + 1
        files[f"{name}.yaml"] = _file(service, name)
    return files


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40].strip("-") or "service"


def _file(service: Service, name: str) -> str:
    parts = [_service(service, name), _availability(service, name)]
    if service.outcome_verdicts or not service.runs:
        parts.append(_outcome(service, name))
    if service.process_verdicts:
        parts.append(_policy(service, name))
    if service.tool_calls:
        parts.append(_tools(service, name))
    if service.p95_seconds is not None:
        parts.append(_latency(service, name))
    return "---\n".join(parts)


def _comment(*sentences: str) -> str:
    return "".join(f"# {sentence}\n" for sentence in sentences if sentence)


def _service(service: Service, name: str) -> str:
    if service.runs:
        said = _comment(
            f"Written by `surefoot slo init` from {service.runs:,} runs of {_one_line(service.name)}. It is yours:",
            "change what does not fit, and check it with `surefoot slo validate`. docs/slo-files.md has every field.",
            f"Agents: {_some(service.agents)}.",
            f"Task classes: {_some(service.task_classes)}.",
            "The targets are round numbers to begin with; what was seen stands beside them, and is no promise.",
        )
    else:
        said = _comment(
            "Written by `surefoot slo init` before there was any run. Write your service's name (OTEL_SERVICE_NAME)",
            f"instead of {EXAMPLE_SERVICE}, or remove this file, run your agent and call `surefoot slo init` again.",
        )
    return f"""{said}apiVersion: openslo/v1
kind: Service
metadata:
  name: {name}
  displayName: {_quoted(service.name[:63])}
"""


def _availability(service: Service, name: str) -> str:
    known = service.ended_well + service.ended_badly
    said = _comment(
        "Do runs end without an error, and do they end at all?",
        _observed(service.ended_well, known, "ended ok"),
    )
    return _slo(said, service, f"{name}-availability", "availability", 0.99)


def _outcome(service: Service, name: str) -> str:
    said = _comment(
        "Was what the agent left acceptable? Verdicts may come hours later; until then the fast view shows what is",
        "known to be bad at once, and the matured view ends where most verdicts have arrived.",
        _verdicts(service.outcome_verdicts, "outcome") if service.runs else "It needs outcome verdicts.",
    )
    return _slo(said, service, f"{name}-acceptable-outcome", "acceptable_outcome", 0.95)


def _policy(service: Service, name: str) -> str:
    said = _comment("Did the agent keep the rules?", _verdicts(service.process_verdicts, "process"))
    return _slo(said, service, f"{name}-policy-compliance", "policy_compliance", 0.99)


def _tools(service: Service, name: str) -> str:
    said = _comment(
        "Do its tools answer?",
        _observed(service.tool_calls - service.tool_errors, service.tool_calls, "calls of tools were ok"),
    )
    return _slo(said, service, f"{name}-tool-success", "tool_success", 0.97)


def _latency(service: Service, name: str) -> str:
    seconds = service.p95_seconds or 0.0
    value = max(1, round(1.5 * seconds))
    n = service.ended_well
    took = f"95 % of the {n:,} good runs took at most {seconds:.3g} s; {value} s leaves room."
    if n < _FEW:
        took = f"95 % of {n:,} good runs took at most {seconds:.3g} s. So few say little: {value} s is a guess."
    said = _comment("Do good runs end in time?", took)
    return _slo(said, service, f"{name}-latency", "latency", 0.95, value)


def _observed(good: int, of: int, words: str) -> str:
    if not of:
        return ""
    if of < _FEW:
        return f"Observed: {good:,} of {of:,} {words}, which is too few to go by: the target is not learnt from them."
    return f"Observed: {100 * good / of:.2f} % {words} (n {of:,})."


def _verdicts(count: int, kind: str) -> str:
    few = "; too few to go by" if count < _FEW else ""
    return f"{count:,} {kind} verdict{'s were' if count != 1 else ' was'} seen{few}."


def _slo(said: str, service: Service, name: str, indicator: str, target: float, value: int | None = None) -> str:
    where = f"{{service_name: {_quoted(service.name)}}}"
    by = "\n              by: [task_class]  # a line for each, beside all together" * (
        1 < len(service.task_classes) <= MAX_STRATA and indicator != "tool_success"
    )
    source = f"""metricSource:
            type: surefoot
            spec:
              indicator: {indicator}
              where: {where}{by}"""
    if value is None:
        metric = f"      ratioMetric:\n        rawType: success\n        raw:\n          {source}"
        objective = f"    - target: {target:g}"
    else:
        metric = f"      thresholdMetric:\n        {source.replace(chr(10) + '  ', chr(10))}"
        objective = f"    - target: {target:g}\n      op: lte\n      value: {value}  # seconds"
    return f"""{said}apiVersion: openslo/v1
kind: SLO
metadata:
  name: {name}
spec:
  service: {name.removesuffix(f"-{indicator.replace('_', '-')}")}
  budgetingMethod: Occurrences
  timeWindow:
    - duration: 28d  # four weeks hold the same days of the week, always
      isRolling: true
  indicator:
    metadata:
      name: {indicator.replace("_", "-")}
    spec:
{metric}
  objectives:
{objective}
"""


def _some(values: Sequence[str]) -> str:
    if not values:
        return "none named"
    shown = ", ".join(_one_line(value) for value in values[:_SHOWN_VALUES])
    return shown + (f" and {len(values) - _SHOWN_VALUES} more" if len(values) > _SHOWN_VALUES else "")


def _one_line(text: str) -> str:
    """A name that cannot end the comment that it stands in."""
    return _quoted(text).strip('"')[:80]


def _quoted(text: str) -> str:
    return yaml.safe_dump(text, default_style='"', allow_unicode=True, width=math.inf).strip()
