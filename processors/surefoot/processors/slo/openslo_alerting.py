"""Alert policies, their conditions and targets as OpenSLO v1 writes them.

A condition becomes a burn-rate tier. Where a notification goes is Alertmanager's business, so targets are checked and
not used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from surefoot.processors.slo.openslo_schema import (
    Description,
    Duration,
    Metadata,
    Name,
    Part,
    must_be,
    one,
    one_of_two,
    refusal,
)
from surefoot.processors.suggestions import suggestion

OPERATORS = ("gt", "gte", "lt", "lte")


def _operator(value: str) -> str:
    if value not in OPERATORS:
        raise refusal(f"{value!r} is not an operator of OpenSLO", suggestion(value, OPERATORS))
    return value


def _burn_rate(value: str) -> str:
    if value != "burnrate":
        raise refusal(f"{value!r} is not a kind of condition", "write kind: burnrate")
    return value


def _not_empty(value: str) -> str:
    if not value:
        raise refusal("the text is empty", "write it")
    return value


Operator = Annotated[str, AfterValidator(_operator)]
Filled = Annotated[str, AfterValidator(_not_empty)]


class Condition(Part):
    """``condition`` of an AlertCondition."""

    kind: Annotated[str, AfterValidator(_burn_rate)]
    op: Operator
    threshold: float
    lookback_window: Duration
    alert_after: Duration | None = None


class AlertConditionSpec(Part):
    """``spec`` of an AlertCondition."""

    description: Description = ""
    severity: Filled
    condition: Condition


class TargetSpec(Part):
    """``spec`` of an AlertNotificationTarget."""

    description: Description = ""
    target: Filled


class ConditionItem(Part):
    """A condition of a policy: by name, or written out."""

    condition_ref: Name | None = None
    kind: Annotated[str, must_be("AlertCondition")] = "AlertCondition"
    metadata: Metadata | None = None
    spec: AlertConditionSpec | None = None

    @classmethod
    def wrong(cls, data: dict[Any, Any]) -> Iterator[PydanticCustomError]:
        """One of a reference and a whole object."""
        yield from whole(data, "conditionRef")


class TargetItem(Part):
    """A notification target of a policy: by name, or written out."""

    target_ref: Name | None = None
    kind: Annotated[str, must_be("AlertNotificationTarget")] = "AlertNotificationTarget"
    metadata: Metadata | None = None
    spec: TargetSpec | None = None

    @classmethod
    def wrong(cls, data: dict[Any, Any]) -> Iterator[PydanticCustomError]:
        """One of a reference and a whole object."""
        yield from whole(data, "targetRef")


def whole(data: dict[Any, Any], reference: str) -> Iterator[PydanticCustomError]:
    """Refuse an object written out that lacks its kind or metadata, and a reference beside which they stand."""
    yield from one_of_two(data, reference, "spec")
    for name in ("kind", "metadata"):
        if reference in data and name in data:
            yield refusal(f"{name} belongs to an object written out, here is a {reference}", "remove it", name)
        if "spec" in data and reference not in data and name not in data:
            yield refusal("the field is missing", f"add {name}", name)


def _some_targets(items: list[TargetItem]) -> list[TargetItem]:
    if not items:
        raise refusal("at least one notification target is needed", "add one, such as targetRef: on-call")
    return items


def _alerts(value: bool) -> bool:
    if not value:
        what = "a policy that does not alert when its condition is met would never alert here"
        raise refusal(what, "write alertWhenBreaching: true, or remove the policy")
    return value


class AlertPolicySpec(Part):
    """``spec`` of an AlertPolicy."""

    description: Description = ""
    alert_when_no_data: bool = False
    alert_when_resolved: bool = False
    alert_when_breaching: Annotated[bool, AfterValidator(_alerts)] = True
    conditions: Annotated[list[ConditionItem], one("condition", "keep one; write a policy per condition")]
    notification_targets: Annotated[list[TargetItem], AfterValidator(_some_targets)]


class PolicyItem(Part):
    """A policy of an SLO: by name, or written out."""

    alert_policy_ref: Name | None = None
    kind: Annotated[str, must_be("AlertPolicy")] = "AlertPolicy"
    metadata: Metadata | None = None
    spec: AlertPolicySpec | None = None

    @classmethod
    def wrong(cls, data: dict[Any, Any]) -> Iterator[PydanticCustomError]:
        """One of a reference and a whole object."""
        yield from whole(data, "alertPolicyRef")
