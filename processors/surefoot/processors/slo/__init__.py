"""Judge production: OpenSLO definitions and the lake's runs in, budgets, burn rates and states out."""

from surefoot.processors.slo.burn import Tier, tiers_for
from surefoot.processors.slo.definition import Slo, error_budget
from surefoot.processors.slo.engine import SloEngine
from surefoot.processors.slo.indicator import INDICATORS, Indicator
from surefoot.processors.slo.load import Loaded, load_slos
from surefoot.processors.slo.problems import Problem, Unused
from surefoot.processors.slo.report import StatusReport
from surefoot.processors.slo.windows import WINDOWS

__all__ = [
    "INDICATORS",
    "WINDOWS",
    "Indicator",
    "Loaded",
    "Problem",
    "Slo",
    "SloEngine",
    "StatusReport",
    "Tier",
    "Unused",
    "error_budget",
    "load_slos",
    "tiers_for",
]
