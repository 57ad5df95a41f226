"""An indicator as OpenSLO v1 writes it, and what stands in ``metricSource`` where OpenSLO leaves room.

Ours has the type ``surefoot`` and names an indicator, conditions and dimensions, and how long to wait for labels and
when burn is news. Those fields are written like the lake's columns, with underscores.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from surefoot.processors.slo.definition import Alerting, Labels
from surefoot.processors.slo.openslo_schema import Description, Duration, Metadata, Part, SomeTexts, not_null, refusal


def _share(value: float) -> float:
    if not 0 < value < 1:
        raise refusal(f"{value:g} is not a share between 0 and 1", "write one such as 0.95")
    return value


def _probability(value: float) -> float:
    if not 0 < value <= 0.1:
        raise refusal(f"{value:g} is not a probability to alert at: above 0, at most 0.1", "write one such as 0.00001")
    return value


def _correlation(value: float) -> float:
    if not 0 <= value < 1:
        raise refusal(f"{value:g} is not a correlation from 0 to below 1", "write one such as 0.02, or 0 for none")
    return value


def _reach(value: float) -> float:
    if not 0 < value < 1:  # at 1 a tier could never burn
        raise refusal(f"{value:g} is not an error ratio above 0 and below 1", "write one such as 0.5")
    return value


def _at_least(least: int) -> AfterValidator:
    def check(value: int) -> int:
        if value < least:
            raise refusal(f"{value} is less than {least}", f"write {least} or more")
        return value

    return AfterValidator(check)


class Own(Part):
    """A mapping of ours inside of OpenSLO."""

    model_config = ConfigDict(alias_generator=None)


class LabelsPart(Own):
    """How long to wait for labels that arrive late."""

    quantile: Annotated[float, AfterValidator(_share)] = Labels().quantile
    max_delay: Duration | None = None
    min_labelled: Annotated[int, _at_least(1)] = Labels().min_labelled


class AlertingPart(Own):
    """When burn is news."""

    alpha: Annotated[float, AfterValidator(_probability)] = Alerting().alpha
    reach: Annotated[float, AfterValidator(_reach)] = Alerting().reach
    consecutive: Annotated[int, _at_least(0)] | None = None
    min_bad_events: Annotated[int, _at_least(1)] = Alerting().min_bad_events
    correlation: Annotated[float, AfterValidator(_correlation)] = Alerting().correlation


class Selection(Own):
    """``metricSource.spec`` of type surefoot: which indicator, of which events, divided by what."""

    indicator: str
    file: str | None = None  # of the indicator `sql`
    where: dict[str, SomeTexts] = Field(default_factory=dict)
    selected: dict[str, SomeTexts] = Field(default_factory=dict)
    by: list[str] = Field(default_factory=list)
    labels: LabelsPart | None = None
    alerting: AlertingPart = Field(default_factory=AlertingPart)
    max_age: Duration | None = None


class MetricSource(Part):
    """Where the events come from: always the lake."""

    refused: ClassVar = {
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


def _raw_type(value: str) -> str:
    if value != "success":
        known = value == "failure"
        what = "is not read: an indicator gives the share of good events" if known else "is not a type of OpenSLO"
        raise refusal(f"{value!r} {what}", "write rawType: success")
    return value


class RatioMetric(Part):
    """Good events over good and bad ones."""

    refused: ClassVar = dict.fromkeys(("good", "bad", "total"), _RAW)
    counter: bool = False
    raw_type: Annotated[str, AfterValidator(_raw_type)]
    raw: Metric


class IndicatorSpec(Part):
    """One of a ratio and a threshold."""

    description: Description = ""
    ratio_metric: RatioMetric | None = None
    threshold_metric: Metric | None = None

    @classmethod
    def wrong(cls, data: dict[Any, Any]) -> Iterator[PydanticCustomError]:
        """One of the two metrics."""
        if ("ratioMetric" in data) == ("thresholdMetric" in data):
            count = "two indicators" if "ratioMetric" in data else "no indicator"
            yield refusal(
                f"{count}: exactly one of ratioMetric and thresholdMetric is needed",
                "keep one; write an SLO per indicator",
            )
        yield from not_null(data, "ratioMetric", "thresholdMetric")

    @property
    def selection(self) -> Selection:
        """What the metric counts."""
        metric = self.threshold_metric or (self.ratio_metric.raw if self.ratio_metric else None)
        assert metric is not None  # noqa: S101 - exactly one was let through
        return metric.metric_source.spec

    @property
    def path(self) -> tuple[str, ...]:
        """Where ``selection`` stands in it."""
        metric = ("thresholdMetric",) if self.threshold_metric is not None else ("ratioMetric", "raw")
        return (*metric, "metricSource", "spec")


class Indicator(Part):
    """An SLI written into an SLO."""

    metadata: Metadata
    spec: IndicatorSpec
