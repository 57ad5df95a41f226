"""Disturbs an agent's surroundings on purpose, and says how much of that arrived.

    from surefoot.evaluation.perturb import Environment, Faults, Prompts

Each is a hook of an attempt: it stands in ``Variant.perturb``, the innermost first. ``usual_faults`` is the usual
dose, for suites in YAML: ``perturb: ["surefoot.evaluation.perturb:usual_faults"]``. What came of it is computed by
``perturb.dose`` and ``perturb.ratios``, which are not imported here: every worker would load the estimators.
"""

from __future__ import annotations

from surefoot.evaluation.perturb.calls import PerturbError
from surefoot.evaluation.perturb.environment import Environment, Unit
from surefoot.evaluation.perturb.fault_errors import injected
from surefoot.evaluation.perturb.faults import KINDS, FaultInjector, Faults, Injection
from surefoot.evaluation.perturb.prompts import Prompts
from surefoot.evaluation.perturb.world import ConcurrentUpdate, Interrupted

__all__ = [
    "KINDS",
    "ConcurrentUpdate",
    "Environment",
    "FaultInjector",
    "Faults",
    "Injection",
    "Interrupted",
    "PerturbError",
    "Prompts",
    "Unit",
    "injected",
    "usual_faults",
]

usual_faults = Faults()
