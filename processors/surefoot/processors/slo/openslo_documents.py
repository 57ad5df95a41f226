"""The documents of OpenSLO v1, one model per kind."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from functools import cache
from typing import Annotated, Any, ClassVar, Final
from zoneinfo import available_timezones

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from surefoot.processors.slo.definition import OCCURRENCES, RATIO_TIMESLICES, TIMESLICES
from surefoot.processors.slo.openslo_alerting import (
    AlertConditionSpec,
    AlertPolicySpec,
    Operator,
    PolicyItem,
    TargetSpec,
)
from surefoot.processors.slo.openslo_schema import (
    Description,
    Duration,
    Metadata,
    Name,
    Part,
    given,
    one,
    refusal,
)
from surefoot.processors.slo.openslo_source import Indicator, IndicatorSpec
from surefoot.processors.slo.periods import START_FORMAT
from surefoot.processors.suggestions import close

METHODS: Final = (OCCURRENCES, TIMESLICES, RATIO_TIMESLICES)


def _start_time(value: Any) -> Any:
    """YAML reads an unquoted time as one; the text of a quoted one is checked here."""
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            raise refusal("the start time has a zone of its own", "write it without, the zone stands in timeZone")
        value = value.isoformat(sep=" ")
    elif isinstance(value, date):
        value = value.isoformat()
    if isinstance(value, str):
        try:
            parsed = datetime.strptime(value, START_FORMAT)  # noqa: DTZ007 - a wall clock's time has no zone yet
        except ValueError as error:
            what = f"{value!r} is not a date with a time"
            raise refusal(what, "write it like '2026-01-01 00:00:00'") from error
        if not 1970 <= parsed.year <= 2200:
            raise refusal(f"{value!r} is not between 1970 and 2200", "write it like '2026-01-01 00:00:00'")
        return parsed.strftime(START_FORMAT)
    return value


def _time_zone(value: str) -> str:
    if value not in _zones():
        what = f"{value!r} is not a name in the IANA time zone database"
        raise refusal(what, close(value, _zones(), "Europe/Berlin"))
    return value


@cache  # it reads a folder of 600 files
def _zones() -> frozenset[str]:
    return frozenset(available_timezones() - {"localtime"})  # which is another one on each machine


def _minutes(value: Any) -> Any:
    """The specification reads a bare number as minutes."""
    return f"{value}m" if isinstance(value, int) and not isinstance(value, bool) else value


class CalendarPart(Part):
    """Where calendar windows begin."""

    start_time: Annotated[str, BeforeValidator(_start_time)]
    time_zone: Annotated[str, AfterValidator(_time_zone)]


class TimeWindow(Part):
    """Rolling, or along a calendar."""

    duration: Duration
    is_rolling: bool = False
    calendar: CalendarPart | None = None

    @classmethod
    def wrong(cls, data: dict[Any, Any]) -> Iterator[PydanticCustomError]:
        """One of rolling and a calendar."""
        rolls, calendar = data.get("isRolling", False), data.get("calendar") is not None
        if rolls is True and calendar:
            yield refusal("a window that rolls has no calendar", "remove it, or write isRolling: false", "calendar")
        if rolls is False and not calendar:
            what = "a window that does not roll needs a calendar"
            yield refusal(what, "write isRolling: true, or add calendar with startTime and timeZone", "isRolling")


_NO_COMPOSITE: Final = ("composite SLOs are not supported", "write an SLO per indicator, with spec.indicator")


def _below(whole: int, name: str) -> AfterValidator:
    """A target of which something is left as error budget."""

    def check(value: float) -> float:
        example = f"such as {name}: {0.99 * whole:g}"
        if whole == 1 and 1 < value < 100:
            raise refusal(f"{value:g} is not a share between 0 and 1", f"write targetPercent: {value:g}")
        if value >= whole:
            what = "leaves no error budget: nothing could ever fail, and any failure would burn infinitely fast"
            raise refusal(f"{value:g} {what}", f"write less than {whole}, {example}")
        if value <= 0:
            raise refusal(f"{value:g} asks for nothing", f"write more than 0, {example}")
        return value

    return AfterValidator(check)


class Objective(Part):
    """Its target, what a number is compared with, and what makes a time slice good."""

    refused: ClassVar = dict.fromkeys(("indicator", "indicatorRef", "compositeWeight"), _NO_COMPOSITE)
    display_name: str = ""
    op: Operator | None = None
    value: float | None = None
    target: Annotated[float, _below(1, "target")] | None = None
    target_percent: Annotated[float, _below(100, "targetPercent")] | None = None
    time_slice_target: float | None = None
    time_slice_window: Annotated[Duration | None, BeforeValidator(_minutes)] = None

    @classmethod
    def wrong(cls, data: dict[Any, Any]) -> Iterator[PydanticCustomError]:
        """One target."""
        found = given(data, "target", "targetPercent")
        if len(found) != 1:
            count = "both are there" if found else "neither is there"
            yield refusal(
                f"exactly one of target and targetPercent is needed, {count}", "keep one, such as target: 0.99"
            )


def _method(value: str) -> str:
    if value not in METHODS:
        what = f"{value!r} is not a budgeting method of OpenSLO"
        raise refusal(what, f"write {', '.join(METHODS[:-1])} or {METHODS[-1]}")
    return value


class SloSpec(Part):
    """``spec`` of an SLO."""

    description: Description = ""
    service: Name
    indicator: Indicator | None = None
    indicator_ref: Name | None = None
    time_window: Annotated[list[TimeWindow], one("time window", "keep one; write an SLO per window")]
    budgeting_method: Annotated[str, AfterValidator(_method)]
    objectives: Annotated[list[Objective], one("objective", "keep one; write an SLO per objective")]
    alert_policies: list[PolicyItem] = Field(default_factory=list)

    @classmethod
    def wrong(cls, data: dict[Any, Any]) -> Iterator[PydanticCustomError]:
        """One indicator."""
        found = given(data, "indicatorRef", "indicator")
        if len(found) != 1:
            count, remedy = ("both are", "keep one of the two") if found else ("neither is", "add one")
            yield refusal(f"exactly one of indicatorRef and indicator is needed, {count} there", remedy)


class ServiceSpec(Part):
    """``spec`` of a Service."""

    description: Description = ""


class DataSourceSpec(Part):
    """``spec`` of a DataSource; what connects is anything."""

    description: Description = ""
    type: Annotated[str, Field(min_length=1)]
    connection_details: Any


class Document(Part):
    """What all documents have."""

    api_version: str
    kind: str
    metadata: Metadata


class SloDocument(Document):
    """A document of kind SLO."""

    spec: SloSpec


class SliDocument(Document):
    """A document of kind SLI."""

    spec: IndicatorSpec


class ServiceDocument(Document):
    """A document of kind Service."""

    spec: ServiceSpec | None = None


class AlertPolicyDocument(Document):
    """A document of kind AlertPolicy."""

    spec: AlertPolicySpec


class AlertConditionDocument(Document):
    """A document of kind AlertCondition."""

    spec: AlertConditionSpec


class AlertNotificationTargetDocument(Document):
    """A document of kind AlertNotificationTarget."""

    spec: TargetSpec


class DataSourceDocument(Document):
    """A document of kind DataSource."""

    spec: DataSourceSpec


SLO: Final = "SLO"
SLI: Final = "SLI"
SERVICE: Final = "Service"
ALERT_POLICY: Final = "AlertPolicy"
ALERT_CONDITION: Final = "AlertCondition"
TARGET: Final = "AlertNotificationTarget"
DATA_SOURCE: Final = "DataSource"

KINDS: Final[dict[str, type[Document]]] = {
    SLO: SloDocument,
    SLI: SliDocument,
    SERVICE: ServiceDocument,
    ALERT_POLICY: AlertPolicyDocument,
    ALERT_CONDITION: AlertConditionDocument,
    TARGET: AlertNotificationTargetDocument,
    DATA_SOURCE: DataSourceDocument,
}
