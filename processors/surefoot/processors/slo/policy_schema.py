"""The shape of an ErrorBudgetPolicy document.

Rule: what could never hold, would always hold or would end before it begins is refused with what to write instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from surefoot.processors.slo.openslo_schema import Metadata, Name, Part, given, refusal
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


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _share(value: float) -> float:
    if value > 1:
        raise refusal(f"{value:g} always holds: 1 is the whole budget", "write a share, such as 0.25")
    return value


def _burn_rate(value: float) -> float:
    if value <= 0:
        raise refusal(f"{value:g} is no burn rate to act on", "write more than 0, such as 6")
    return value


class Budget(Part):
    """``when.budget``: shares of the whole budget."""

    below: Annotated[float, AfterValidator(_share)]
    until: float | None = None

    @classmethod
    def wrong(cls, data: dict[Any, Any]) -> Iterator[PydanticCustomError]:
        """It begins before it ends."""
        below, until = _number(data.get("below")), _number(data.get("until"))
        if below is not None and until is not None and until < below:
            yield refusal("it would end before it begins", f"write at least {below:g}", "until")
        if until is not None and until > 1:
            yield refusal("it would never end: 1 is the whole budget", "write 1 or less", "until")


class Burn(Part):
    """``when.burn``: times the budget's own rate."""

    above: Annotated[float, AfterValidator(_burn_rate)]
    window: Annotated[str, AfterValidator(_duration)]
    until: float | None = None

    @classmethod
    def wrong(cls, data: dict[Any, Any]) -> Iterator[PydanticCustomError]:
        """It begins before it ends."""
        above, until = _number(data.get("above")), _number(data.get("until"))
        if above is not None and above > 0 and until is not None and not 0 <= until <= above:
            yield refusal("it would end before it begins, or never", f"write 0 to {above:g}", "until")


class When(Part):
    """The conditions of a rule; all that are there must hold."""

    budget: Budget | None = None
    burn: Burn | None = None
    state: Annotated[list[Annotated[str, _one_of(STATES)]], BeforeValidator(_as_list)] = Field(default_factory=list)

    @classmethod
    def wrong(cls, data: dict[Any, Any]) -> Iterator[PydanticCustomError]:
        """Some condition."""
        if not any(data.get(name) for name in ("budget", "burn", "state")):
            yield refusal("there is no condition", "add budget, burn or state")


class Rule(Part):
    """One action."""

    action: Annotated[str, _one_of(ACTIONS)]
    mode: Annotated[str, _one_of(MODES)] | None = None
    when: When
    at_least: Annotated[str, AfterValidator(_duration)] | None = None

    @classmethod
    def wrong(cls, data: dict[Any, Any]) -> Iterator[PydanticCustomError]:
        """A mode where one is needed and nowhere else."""
        action, mode = data.get("action"), data.get("mode")
        if action == TIGHTEN and mode is None:
            yield refusal("tighten_mode needs the mode that is the most", "add mode: human_approval", "mode")
        if action in ACTIONS and action != TIGHTEN and mode is not None:
            yield refusal(f"{action} has no mode", "remove it, or write action: tighten_mode", "mode")


def _once(rules: list[Rule]) -> list[Rule]:
    if not rules:
        raise refusal("there is no rule", "add one with action and when")
    demands = [(rule.action, rule.mode) for rule in rules]
    for action, mode in demands:
        if demands.count((action, mode)) > 1:
            what = f"{action}{f' to {mode}' if mode else ''} stands twice: an action has one rule in a policy"
            raise refusal(what, "write a second policy for the other threshold")
    return rules


class Spec(Part):
    """Which SLOs, and the rules."""

    description: str = ""
    slos: list[Name] = Field(default_factory=list)
    service: Name | None = None
    strata: Annotated[str, _one_of(("roll_up", "each"))] = "roll_up"
    rules: Annotated[list[Rule], AfterValidator(_once)]

    @classmethod
    def wrong(cls, data: dict[Any, Any]) -> Iterator[PydanticCustomError]:
        """SLOs by name, or by their service."""
        named, service = bool(data.get("slos")), bool(given(data, "service"))
        if named == service:
            count = "both are there" if named else "neither is there"
            yield refusal(f"exactly one of slos and service is needed, {count}", "name SLOs, or the service of all")


class Document(Part):
    """A document of kind ErrorBudgetPolicy."""

    api_version: str
    kind: str
    metadata: Metadata
    spec: Spec
