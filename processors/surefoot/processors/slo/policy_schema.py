"""The shape of an ErrorBudgetPolicy document.

Rule: what could never hold, would always hold or would end before it begins is refused with what to write instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from surefoot.processors.slo.openslo_schema import Metadata, Name, Part, refusal
from surefoot.processors.slo.refusals import OWN_VERSION
from surefoot.processors.slo.windows import seconds
from surefoot.processors.suggestions import suggestion

ACTIONS: Final = ("notify", "freeze_rollout", "tighten_mode", "require_approval")
TIGHTEN: Final = "tighten_mode"
MODES: Final = ("autonomous", "deterministic_check", "replay", "checkpoint", "human_approval", "refuse")
STATES: Final = ("burning_page", "burning_ticket", "exhausted")


def _one_of(known: Sequence[str]) -> AfterValidator:
    def check(value: str) -> str:
        if value not in known:
            raise refusal(f"{value!r} is not known here", suggestion(value, known))
        return value

    return AfterValidator(check)


def _duration(value: str) -> str:
    try:
        seconds(value)
    except ValueError as error:
        raise refusal(str(error), "write a whole number and one of m h d w, such as 6h") from error
    return value


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class Budget(Part):
    """``when.budget``: shares of the whole budget."""

    below: float
    until: float | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Budget:
        if self.below > 1:
            raise refusal(f"{self.below:g} always holds: 1 is the whole budget", "write a share, such as 0.25", "below")
        if self.until is not None and self.until < self.below:
            raise refusal("it would end before it begins", f"write at least {self.below:g}", "until")
        return self


class Burn(Part):
    """``when.burn``: times the budget's own rate."""

    above: float
    window: Annotated[str, AfterValidator(_duration)]
    until: float | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Burn:
        if self.above <= 0:
            raise refusal(f"{self.above:g} is no burn rate to act on", "write more than 0, such as 6", "above")
        if self.until is not None and not 0 <= self.until <= self.above:
            raise refusal("it would end before it begins, or never", f"write 0 to {self.above:g}", "until")
        return self


class When(Part):
    """The conditions of a rule; all that are there must hold."""

    budget: Budget | None = None
    burn: Burn | None = None
    state: Annotated[list[Annotated[str, _one_of(STATES)]], BeforeValidator(_as_list)] = Field(default_factory=list)

    @model_validator(mode="after")
    def _some(self) -> When:
        if self.budget is None and self.burn is None and not self.state:
            raise refusal("there is no condition", "add budget, burn or state")
        return self


class Rule(Part):
    """One action."""

    action: Annotated[str, _one_of(ACTIONS)]
    mode: Annotated[str, _one_of(MODES)] | None = None
    when: When
    at_least: Annotated[str, AfterValidator(_duration)] | None = None

    @model_validator(mode="after")
    def _mode(self) -> Rule:
        if (self.action == TIGHTEN) != (self.mode is not None):
            if self.mode is None:
                raise refusal("tighten_mode needs the mode that is the most", "add mode: human_approval", "mode")
            raise refusal(f"{self.action} has no mode", "remove it, or write action: tighten_mode", "mode")
        return self


class Spec(Part):
    """Which SLOs, and the rules."""

    description: str = ""
    slos: list[Name] = Field(default_factory=list)
    service: Name | None = None
    strata: Annotated[str, _one_of(("roll_up", "each"))] = "roll_up"
    rules: list[Rule]

    @model_validator(mode="after")
    def _whole(self) -> Spec:
        if bool(self.slos) == (self.service is not None):
            count = "both are there" if self.slos else "neither is there"
            raise refusal(f"exactly one of slos and service is needed, {count}", "name SLOs, or the service of all")
        if not self.rules:
            raise refusal("there is no rule", "add one with action and when", "rules")
        demands = [(rule.action, rule.mode) for rule in self.rules]
        for action, mode in demands:
            if demands.count((action, mode)) > 1:
                what = f"{action}{f' to {mode}' if mode else ''} stands twice: an action has one rule in a policy"
                raise refusal(what, "write a second policy for the other threshold", "rules")
        return self


class Document(Part):
    """A document of kind ErrorBudgetPolicy."""

    api_version: str
    kind: str
    metadata: Metadata
    spec: Spec

    @model_validator(mode="after")
    def _version(self) -> Document:
        if self.api_version != OWN_VERSION:
            raise refusal(f"the version is {self.api_version!r}", f"write apiVersion: {OWN_VERSION}", "apiVersion")
        return self
