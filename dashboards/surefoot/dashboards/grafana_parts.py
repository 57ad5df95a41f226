"""Building blocks of the Grafana dashboard: queries, panels and places, in the words of its SDK."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.builders import common as widgets
from grafana_foundation_sdk.builders import dashboard as boards
from grafana_foundation_sdk.builders import prometheus, stat, statetimeline, timeseries
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as models

SOURCE: Final = common.DataSourceRef(type_val="prometheus", uid="${datasource}")


def timeline(
    title: str, description: str, target: prometheus.Dataquery, states: dict[str, models.ValueMappingResult]
) -> statetimeline.Panel:
    """A band per line, in the colours of its states."""
    return (
        statetimeline.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .with_target(target)
        .mappings([models.ValueMap(states)])
        .color_scheme(boards.FieldColor().mode(models.FieldColorModeId.THRESHOLDS))
        .show_value(common.VisibilityMode.NEVER)
        .merge_values(True)
        .fill_opacity(80)
    )


def each_line(metric: str, window: str) -> prometheus.Dataquery:
    """The roll-up and every stratum. Labels that all of them share are dropped; the slo names the roll-up."""
    chosen = f'slo="$slo",window="{window}"' if window else 'slo="$slo"'
    return query(f"max without (job, instance, service, window) ({metric}{{{chosen}}})").legend_format("__auto")


def query(expr: str, ref: str = "A") -> prometheus.Dataquery:
    """A query over a range."""
    return prometheus.Dataquery().expr(expr).ref_id(ref).range().datasource(SOURCE)


def lines(title: str, description: str, query: prometheus.Dataquery) -> timeseries.Panel:
    """Lines over time, with a legend below."""
    legend = widgets.VizLegendOptions().show_legend(True).display_mode(common.LegendDisplayMode.LIST)
    tooltip = widgets.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI).sort(common.SortOrder.DESCENDING)
    return (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .with_target(query)
        .legend(legend.placement(common.LegendPlacement.BOTTOM))
        .tooltip(tooltip)
    )


def tile(title: str, description: str, expr: str, steps: tuple[tuple[float | None, str], ...]) -> stat.Panel:
    """One number."""
    return (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(SOURCE)
        .with_target(query(expr).instant())
        .thresholds(boards.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(thresholds(steps)))
        .color_mode(common.BigValueColorMode.VALUE)
        .graph_mode(common.BigValueGraphMode.NONE)
    )


def coloured(steps: tuple[tuple[float | None, str], ...]) -> list[models.DynamicConfigValue]:
    """Colour a table's cell by thresholds, or by its value mapping where it has one."""
    return [
        override("custom.cellOptions", {"type": "color-text"}),
        override("thresholds", {"mode": "absolute", "steps": thresholds(steps)}),
    ]


def thresholds(steps: tuple[tuple[float | None, str], ...]) -> list[models.Threshold]:
    """Thresholds by value and colour."""
    return [models.Threshold(value=value, color=color) for value, color in steps]


def override(name: str, value: object) -> models.DynamicConfigValue:
    """An override of a field."""
    return models.DynamicConfigValue(id_val=name, value=value)


def row(identity: int, y: int, title: str) -> boards.Row:
    """A heading over panels."""
    return boards.Row(title).id(identity).grid_pos(at(0, y, 24, 1))


def at(x: int, y: int, width: int, height: int) -> models.GridPos:
    """A place on the grid of 24 columns."""
    return models.GridPos(x=x, y=y, w=width, h=height)
