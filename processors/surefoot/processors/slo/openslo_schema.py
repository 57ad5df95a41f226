"""The shape of an OpenSLO v1 SLO document, as far as this engine reads it.

Names, nesting and rules are those of the specification (github.com/OpenSLO/OpenSLO, README of v1) and of its Go SDK.
``metricSource`` is where OpenSLO leaves room: ours has the type ``surefoot`` and names an indicator, conditions and
dimensions. Rule: a field that OpenSLO has and we do not read yet is refused by name with a way out, a field that
OpenSLO does not have is unknown; neither is ignored.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Final, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

T = TypeVar("T")

API_VERSION: Final = "openslo/v1"
SLO_KIND: Final = "SLO"
UNUSED_KINDS: Final = ("AlertCondition", "AlertNotificationTarget", "AlertPolicy", "DataSource", "Service", "SLI")
REFUSED: Final = "surefoot_refused"
_LONGEST_DESCRIPTION: Final = 1050


def refusal(what: str, remedy: str, field: str | None = None) -> PydanticCustomError:
    """An error that says what is wrong and what to do, at ``field`` of the model or value that raises it."""
    return PydanticCustomError(REFUSED, "{what}", {"what": what, "remedy": remedy, "field": field})


def _name(value: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", value):
        allowed = re.sub(r"[^a-z0-9]+", "-", value.lower()).strip("-")[:63].strip("-") or "support-desk-availability"
        raise refusal(
            f"{value!r} is not a name: lower-case letters, digits and hyphens, 63 at most (RFC 1123)",
            f"write {allowed}",
        )
    return value


def _description(value: str) -> str:
    if len(value) > _LONGEST_DESCRIPTION:
        raise refusal(f"{len(value)} characters, OpenSLO allows {_LONGEST_DESCRIPTION}", "shorten it")
    return value


def _one(kind: str, remedy: str) -> AfterValidator:
    def check(items: list[T]) -> list[T]:
        if len(items) != 1:
            raise refusal(f"exactly one {kind} is needed, there are {len(items)}", remedy)
        return items

    return AfterValidator(check)


def _some(items: list[str]) -> list[str]:
    if not items:
        raise refusal("an empty list matches nothing", "name at least one value, or remove the condition")
    return items


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Name = Annotated[str, AfterValidator(_name)]
Description = Annotated[str, AfterValidator(_description)]
Texts = Annotated[list[str], BeforeValidator(_as_list)]


class Part(BaseModel):
    """A mapping of the document: nothing unknown, nothing converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_camel, allow_inf_nan=False)
    # Fields that OpenSLO has and we do not read: what to say, and the way out.
    refused: ClassVar[dict[str, tuple[str, str]]] = {}

    @model_validator(mode="before")
    @classmethod
    def _refuse(cls, data: Any) -> Any:
        for name, (what, remedy) in cls.refused.items():
            if isinstance(data, dict) and name in data:
                raise refusal(what, remedy, name)
        return data


class Metadata(Part):
    """``metadata`` of any document."""

    name: Name
    display_name: str = ""
    labels: dict[str, Texts] = {}
    annotations: dict[str, str] = {}


class Selection(Part):
    """``metricSource.spec`` of type surefoot: which indicator, of which events, divided by what."""

    indicator: str
    where: dict[str, Annotated[Texts, AfterValidator(_some)]] = {}
    by: list[str] = []


class MetricSource(Part):
    """Where the events come from: always the lake."""

    refused = {
        "metricSourceRef": (
            "references to a DataSource are not read: the data is always the lake",
            "remove it and write type: surefoot",
        )
    }
    type: str
    spec: Selection

    @model_validator(mode="before")
    @classmethod
    def _only_surefoot(cls, data: Any) -> Any:
        found = data.get("type") if isinstance(data, dict) else None
        if isinstance(found, str) and found != "surefoot":
            raise refusal(
                f"metrics of type {found!r} are not read here",
                "write type: surefoot and name an indicator in spec",
                "type",
            )
        return data


class Metric(Part):
    """``raw`` and ``thresholdMetric``."""

    metric_source: MetricSource


_RAW = ("good, bad and total queries are not read: an indicator counts all of them", "write rawType: success and raw")


class RatioMetric(Part):
    """Good events over good and bad ones."""

    refused = dict.fromkeys(("good", "bad", "total"), _RAW)
    counter: bool = False
    raw_type: str
    raw: Metric

    @model_validator(mode="after")
    def _success(self) -> RatioMetric:
        if self.raw_type != "success":
            raise refusal(
                f"{self.raw_type!r} is not read: an indicator gives the share of good events",
                "write rawType: success",
                "rawType",
            )
        return self


class IndicatorSpec(Part):
    """One of a ratio and a threshold."""

    description: Description = ""
    ratio_metric: RatioMetric | None = None
    threshold_metric: Metric | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_of_two(cls, data: Any) -> Any:
        if isinstance(data, dict) and ("ratioMetric" in data) == ("thresholdMetric" in data):
            count = "two indicators" if "ratioMetric" in data else "no indicator"
            raise refusal(
                f"{count}: exactly one of ratioMetric and thresholdMetric is needed",
                "keep one; write an SLO per indicator",
            )
        return data


class Indicator(Part):
    """An SLI written into the SLO."""

    metadata: Metadata | None = None
    spec: IndicatorSpec


class TimeWindow(Part):
    """``duration`` is checked where it is turned into seconds."""

    refused = {
        "calendar": (
            "calendar-aligned windows come with a later version",
            "use a rolling one: duration: 28d, isRolling: true",
        )
    }
    duration: str
    is_rolling: bool = False


_NO_SLICES = ("time slices are not supported yet", "remove it and use budgetingMethod: Occurrences")
_NO_COMPOSITE = ("composite SLOs are not supported yet", "write an SLO per indicator, with spec.indicator")


class Objective(Part):
    """Its target, and what a duration is compared with."""

    refused = {
        **dict.fromkeys(("timeSliceTarget", "timeSliceWindow"), _NO_SLICES),
        **dict.fromkeys(("indicator", "indicatorRef", "compositeWeight"), _NO_COMPOSITE),
    }
    display_name: str = ""
    op: str | None = None
    value: float | None = None
    target: float | None = None
    target_percent: float | None = None

    @model_validator(mode="after")
    def _one_target(self) -> Objective:
        if (self.target is None) == (self.target_percent is None):
            count = "both are there" if self.target is not None else "neither is there"
            raise refusal(
                f"exactly one of target and targetPercent is needed, {count}", "keep one, such as target: 0.99"
            )
        return self


class SloSpec(Part):
    """``spec`` of an SLO."""

    refused = {
        "indicatorRef": (
            "references to an SLI document are not supported yet",
            "write the indicator into the SLO, as spec.indicator",
        )
    }
    description: Description = ""
    service: Name
    indicator: Indicator
    time_window: Annotated[list[TimeWindow], _one("time window", "keep one; write an SLO per window")]
    budgeting_method: str
    objectives: Annotated[list[Objective], _one("objective", "keep one; write an SLO per objective")]
    alert_policies: list[Any] = []

    @model_validator(mode="after")
    def _occurrences(self) -> SloSpec:
        if self.budgeting_method in {"Timeslices", "RatioTimeslices"}:
            what = f"{self.budgeting_method} is not supported yet"
        elif self.budgeting_method != "Occurrences":
            what = f"{self.budgeting_method!r} is not a budgeting method of OpenSLO"
        else:
            return self
        raise refusal(what, "write Occurrences", "budgetingMethod")


class SloDocument(Part):
    """A document of kind SLO."""

    api_version: str
    kind: str
    metadata: Metadata
    spec: SloSpec


class OtherDocument(Part):
    """A document of another kind, which is only looked at enough to name it."""

    api_version: str
    kind: str
    metadata: Metadata
    spec: Any = None
