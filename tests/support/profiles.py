"""Profiles and boundaries for tests, made as users make them: from text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from surefoot.processors.boundary.definition import Boundary
from surefoot.processors.evidence.build import build_published
from surefoot.processors.evidence.profile import Profile
from surefoot.processors.evidence.template import Spec
from surefoot.processors.yaml_models import parse_model

NOW = 1_790_000_000.0  # 2026-09-21

SPEC = """
profile_id: reconcile
version: 3
owner: ops
review_date: 2027-01-31
system:
  agent_architecture: one loop with tools
  model_and_serving_configuration: {model: m-1, temperature: "0"}
  tool_and_schema_versions: {ledger: 4, mail: 2}
task_population:
  task_class: reconcile
  consequence_class: reversible
outcome_contract:
  outcome_equivalence_rule: same ledger balance
  grader_and_version: ledger-check 7
repeat_protocol:
  k: {value: 3, why: three posts a day}
published:
  source: a test
  grader_kind: executable
  counts: []
"""

BOUNDARY = """
boundary_id: reconcile
version: 1
owner: ops
allowed_mode: autonomous
if_failed: human_approval
validity:
  system:
    agent_architecture: one loop with tools
    model_and_serving_configuration: {model: m-1, temperature: "0"}
    tool_and_schema_versions: {ledger: 4, mail: 2}
  task_population:
    task_class: reconcile
    consequence_class: reversible
  grader_and_version: ledger-check 7
  outcome_equivalence_rule: same ledger balance
  expires: 2026-12-31
minimum_evidence: {groups: 30, runs: 90, k: 3, verdict_coverage: 0.95, cited_runs: false}
joint_rule:
  rule: all
  multiplicity: intersection_union
  purpose: a false approval at most once in twenty
  declared: 2026-09-01
gates:
  - {indicator: outcome_yield, comparison: ">=", bound: 0.9}
"""


def count(n: int, c: int, groups: int, equivalent: bool | None = None, **more: Any) -> dict[str, Any]:
    """A row of published counts."""
    told = {} if equivalent is None else {"equivalent": equivalent}
    return {
        "n": n,
        "c": c,
        "groups": groups,
        "task_class": "reconcile",
        "consequence_class": "reversible",
        **told,
        **more,
    }


def profile(counts: Iterable[dict[str, Any]], **changes: Any) -> Profile:
    """The profile of these counts; ``changes`` replace top-level fields of the spec."""
    data = {**yaml.safe_load(SPEC), **changes}
    data["published"] = {**data["published"], "counts": list(counts)}
    return build_published(parse_model(yaml.safe_dump(data), Spec, "spec.yaml"), NOW)


def boundary(**changes: Any) -> Boundary:
    """The boundary; ``changes`` replace top-level fields."""
    return parse_model(yaml.safe_dump({**yaml.safe_load(BOUNDARY), **changes}), Boundary, "boundary.yaml")
