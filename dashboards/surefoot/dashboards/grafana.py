"""The Grafana dashboard as JSON text: all SLOs, one SLO in detail, Surefoot itself.

The one hard rule: a panel shows only metrics of :data:`surefoot.dashboards.metrics.METRICS`, so that a renamed metric
fails a test and not somebody's dashboard at night. Ids and grid positions are explicit, because the SDK's own layout
does not wrap at 24 columns and leaves panels without ids.

The strata of an SLO have labels that its author chose, so no query can name them. One thing is exact all the same: the
roll-up's count of an outcome is the largest of all, since the strata's counts add up to it. Everything else shows every
line, or the worst one and says so.
"""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.builders import common as widgets
from grafana_foundation_sdk.builders import dashboard as boards
from grafana_foundation_sdk.builders import prometheus, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

UID: Final = "surefoot-slo"
_SOURCE: Final = common.DataSourceRef(type_val="prometheus", uid="${datasource}")
_STATES: Final = {
    "-1": models.ValueMappingResult(text="no data", color="text", index=0),
    "0": models.ValueMappingResult(text="ok", color="green", index=1),
    "1": models.ValueMappingResult(text="burning: ticket", color="orange", index=2),
    "2": models.ValueMappingResult(text="burning: page", color="red", index=3),
    "3": models.ValueMappingResult(text="budget exhausted", color="purple", index=4),
}
_BUDGET_STEPS: Final = ((None, "red"), (0.0, "orange"), (0.25, "green"))
_BURN_STEPS: Final = ((None, "green"), (1.0, "orange"))
# As old as the rules' SurefootSloEvaluationStale.
_AGE_STEPS: Final = ((None, "green"), (300.0, "red"))


def build_dashboard() -> str:
    """The dashboard as JSON with sorted keys: the same text every time, fit for version control."""
    board = (
        boards.Dashboard("Surefoot: SLOs")
        .uid(UID)
        .description("Will your agents do it again? Error budgets and burn rates that Surefoot computes in event time.")
        .tags(["surefoot", "slo"])
        .timezone("browser")
        .time("now-24h", "now")
        .refresh("30s")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .with_variable(boards.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
        .with_variable(_slo_variable())
        .annotation(_alerts())
    )
    _overview(board)
    _detail(board)
    _health(board)
    return JSONEncoder(sort_keys=True, indent=2).encode(board.build()) + "\n"


def _slo_variable() -> boards.QueryVariable:
    return (
        boards.QueryVariable("slo")
        .label("SLO")
        .datasource(_SOURCE)
        .query("label_values(surefoot_slo_objective_ratio, slo)")
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
    )


def _alerts() -> boards.AnnotationQuery:
    """Firing alerts of the chosen SLO, and those about Surefoot itself, which carry no ``slo``."""
    return (
        boards.AnnotationQuery()
        .name("Alerts")
        .datasource(_SOURCE)
        .enable(True)
        .icon_color("red")
        .expr('ALERTS{alertname=~"Surefoot.+",alertstate="firing",slo=~"$slo|"}')
        .title_format("{{alertname}}")
        .text_format("{{severity}} {{slo}}")
        .tag_keys("severity")
    )


def _overview(board: boards.Dashboard) -> None:
    board.with_row(_row(1, 0, "All SLOs"))
    board.with_panel(_overview_table().id(2).grid_pos(_at(0, 1, 16, 9)))
    burning = _tile(
        "SLOs burning",
        "How many SLOs burn their budget too fast, or have none left, in the roll-up or in any stratum.",
        "sum(max by (slo) (surefoot_slo_state) >= bool 1)",
        ((None, "green"), (1.0, "red")),
    )
    board.with_panel(burning.id(3).grid_pos(_at(16, 1, 8, 3)).decimals(0))
    budget = _tile(
        "Worst budget left",
        "The least share of an error budget that any SLO or stratum has left. Negative: more than all of it was spent.",
        "min(surefoot_slo_error_budget_remaining_ratio)",
        _BUDGET_STEPS,
    )
    board.with_panel(budget.id(4).grid_pos(_at(16, 4, 8, 3)).unit("percentunit").decimals(1))
    age = _tile(
        "Evaluation age",
        "Time since the SLOs were last computed. When it grows, every number here is that old.",
        "time() - min(surefoot_slo_last_run_timestamp_seconds)",
        _AGE_STEPS,
    )
    board.with_panel(age.id(5).grid_pos(_at(16, 7, 8, 3)).unit("s").decimals(0))


def _overview_table() -> table.Panel:
    columns = (
        ("A", "Objective", "max by (slo) (surefoot_slo_objective_ratio)"),
        ("B", "Budget left", "min by (slo) (surefoot_slo_error_budget_remaining_ratio)"),
        ("C", "Burn rate, 1 h", 'max by (slo) (surefoot_slo_burn_rate{window="1h"})'),
        ("D", "State", "max by (slo) (surefoot_slo_state)"),
    )
    names = {"slo": "SLO", **{f"Value #{ref}": name for ref, name, _ in columns}}
    panel = (
        table.Panel()
        .title("SLOs")
        .description(
            "Each SLO once. Budget, burn rate and state are those of its worst line: the roll-up or a stratum. "
            "A burn rate of 1 spends the budget exactly within the period. An empty cell: there were no events."
        )
        .datasource(_SOURCE)
        .with_transformation(models.DataTransformerConfig(id_val="merge", options={}))
        .with_transformation(
            models.DataTransformerConfig(
                id_val="organize", options={"excludeByName": {"Time": True}, "renameByName": names}
            )
        )
        .override_by_name("SLO", [_property("links", [{"title": "Detail", "url": _detail_url()}])])
        .override_by_name("Objective", [_property("unit", "percentunit")])
        .override_by_name("Budget left", [*_coloured(_BUDGET_STEPS), _property("unit", "percentunit")])
        .override_by_name("Burn rate, 1 h", [*_coloured(_BURN_STEPS), _property("decimals", 2)])
        .override_by_name("State", [*_coloured(((None, "text"),)), _property("mappings", [models.ValueMap(_STATES)])])
    )
    for ref, _, expr in columns:
        panel.with_target(_query(expr, ref=ref).instant().format(PromQueryFormat.TABLE))
    return panel


def _detail(board: boards.Dashboard) -> None:
    board.with_row(_row(10, 10, "$slo"))
    budget = _lines(
        "Error budget left",
        "Share of the period's budget that is left, for the roll-up and each stratum. Below 0: too much was spent.",
        _each_line("surefoot_slo_error_budget_remaining_ratio", ""),
    )
    board.with_panel(budget.id(11).grid_pos(_at(0, 11, 12, 8)).unit("percentunit").axis_soft_min(0).axis_soft_max(1))
    board.with_panel(_burn_by_window().id(12).grid_pos(_at(12, 11, 12, 8)))
    burn = _lines(
        "Burn rate by stratum, 1 h",
        "Who burns: the roll-up and each stratum over the last hour. At 1 the budget lasts exactly the period.",
        _each_line("surefoot_slo_burn_rate", "1h"),
    )
    board.with_panel(burn.id(13).grid_pos(_at(0, 19, 12, 8)).decimals(2).min(0))
    errors = _lines(
        "Error ratio by stratum, 1 h",
        "Bad events as a share of those with a label, over the last hour. Read it beside the number of events.",
        _each_line("surefoot_slo_error_ratio", "1h"),
    )
    board.with_panel(errors.id(14).grid_pos(_at(12, 19, 12, 8)).unit("percentunit").min(0))
    events = _lines(
        "Events by outcome, 1 h",
        "How many events of all strata together the last hour's ratios rest on. Excluded ones are in no ratio.",
        _query('max by (outcome) (surefoot_slo_events{slo="$slo",window="1h"})').legend_format("{{outcome}}"),
    )
    board.with_panel(events.id(15).grid_pos(_at(0, 27, 12, 8)).unit("short").min(0))
    coverage = _lines(
        "Label coverage, 1 day",
        "Share of the last day's events that are known to be good or bad. While it is low, the ratios may still move.",
        _each_line("surefoot_slo_label_coverage_ratio", "1d"),
    )
    board.with_panel(coverage.id(16).grid_pos(_at(12, 27, 12, 8)).unit("percentunit").min(0).max(1))
    board.with_panel(_state_timeline().id(17).grid_pos(_at(0, 35, 24, 6)))
    rate = "sum by (service_name, outcome) (rate(surefoot_runs_ended_total[$__rate_interval]))"
    runs = _lines(
        "Runs ended by outcome",
        "Runs per second of every service as they are first seen ended; a dot is an example with its trace. "
        "Later corrections do not show here: the SLO's own numbers have them.",
        _query(rate).legend_format("{{service_name}} {{outcome}}").exemplar(True),
    )
    board.with_panel(runs.id(18).grid_pos(_at(0, 41, 24, 8)).unit("reqps").min(0))


def _burn_by_window() -> timeseries.Panel:
    thresholds = 'max by (tier) (surefoot_slo_burn_rate_threshold{slo="$slo"})'
    panel = _lines(
        "Burn rate by window, worst line",
        "The highest burn rate of the roll-up and all strata. It burns when the long and the short window of a tier "
        "are both above its dashed line: red pages, orange opens a ticket.",
        _query('max by (window) (surefoot_slo_burn_rate{slo="$slo"})').legend_format("{{window}}"),
    )
    panel.with_target(_query(thresholds, ref="B").legend_format("threshold {{tier}}"))
    for severity, colour in (("page", "red"), ("ticket", "orange")):
        dashed = _property("custom.lineStyle", {"fill": "dash", "dash": [10, 10]})
        fixed = _property("color", {"mode": "fixed", "fixedColor": colour})
        panel.override_by_regexp(f"/^threshold {severity}/", [dashed, fixed])
    return panel.decimals(2).min(0)


def _state_timeline() -> statetimeline.Panel:
    return (
        statetimeline.Panel()
        .title("State")
        .description("What each line of the SLO was doing: fine, burning, out of budget, or without data.")
        .datasource(_SOURCE)
        .with_target(_each_line("surefoot_slo_state", ""))
        .mappings([models.ValueMap(_STATES)])
        .color_scheme(boards.FieldColor().mode(models.FieldColorModeId.THRESHOLDS))
        .show_value(common.VisibilityMode.NEVER)
        .merge_values(True)
        .fill_opacity(80)
    )


def _health(board: boards.Dashboard) -> None:
    board.with_row(_row(20, 49, "Surefoot itself"))
    items = _lines(
        "Items received",
        "Spans, log records and data points per second by what became of them. Anything but accepted deserves a look.",
        _query("sum by (signal, result) (rate(surefoot_collector_items_total[$__rate_interval]))").legend_format(
            "{{signal}} {{result}}"
        ),
    )
    board.with_panel(items.id(21).grid_pos(_at(0, 50, 12, 7)).unit("cps").min(0))
    rows = _lines(
        "Rows written",
        "Rows per second that the writer commits to each table.",
        _query("sum by (table) (rate(surefoot_writer_rows_total[$__rate_interval]))").legend_format("{{table}}"),
    )
    board.with_panel(rows.id(22).grid_pos(_at(12, 50, 12, 7)).unit("cps").min(0))
    backlog = _lines(
        "Backlog",
        "Bytes that the collector has acknowledged and the tables do not have yet. They are safe on disk.",
        _query("sum(surefoot_collector_backlog_bytes)").legend_format("backlog"),
    )
    board.with_panel(backlog.id(23).grid_pos(_at(0, 57, 8, 7)).unit("bytes").min(0))
    lag = _lines(
        "Writer lag",
        "Age of the oldest telemetry that waits for the writer.",
        _query("max(surefoot_writer_lag_seconds)").legend_format("lag"),
    )
    board.with_panel(lag.id(24).grid_pos(_at(8, 57, 8, 7)).unit("s").min(0))
    silence = _lines(
        "Silence of processes",
        "Time since each process last said how it is. A line that climbs belongs to a process that hangs.",
        _query("time() - min by (process) (surefoot_process_published_timestamp_seconds)").legend_format("{{process}}"),
    )
    board.with_panel(silence.id(25).grid_pos(_at(16, 57, 8, 7)).unit("s").min(0))


def _each_line(metric: str, window: str) -> prometheus.Dataquery:
    """The roll-up and every stratum. Labels that all of them share are dropped; the slo names the roll-up."""
    chosen = f'slo="$slo",window="{window}"' if window else 'slo="$slo"'
    return _query(f"max without (job, instance, service, view, window) ({metric}{{{chosen}}})").legend_format("__auto")


def _query(expr: str, ref: str = "A") -> prometheus.Dataquery:
    return prometheus.Dataquery().expr(expr).ref_id(ref).range().datasource(_SOURCE)


def _lines(title: str, description: str, query: prometheus.Dataquery) -> timeseries.Panel:
    legend = widgets.VizLegendOptions().show_legend(True).display_mode(common.LegendDisplayMode.LIST)
    tooltip = widgets.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI).sort(common.SortOrder.DESCENDING)
    return (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(_SOURCE)
        .with_target(query)
        .legend(legend.placement(common.LegendPlacement.BOTTOM))
        .tooltip(tooltip)
    )


def _tile(title: str, description: str, expr: str, steps: tuple[tuple[float | None, str], ...]) -> stat.Panel:
    return (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(_SOURCE)
        .with_target(_query(expr).instant())
        .thresholds(boards.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(_steps(steps)))
        .color_mode(common.BigValueColorMode.VALUE)
        .graph_mode(common.BigValueGraphMode.NONE)
    )


def _coloured(steps: tuple[tuple[float | None, str], ...]) -> list[models.DynamicConfigValue]:
    """Colour a table's cell by thresholds, or by its value mapping where it has one."""
    return [
        _property("custom.cellOptions", {"type": "color-text"}),
        _property("thresholds", {"mode": "absolute", "steps": _steps(steps)}),
    ]


def _steps(steps: tuple[tuple[float | None, str], ...]) -> list[models.Threshold]:
    return [models.Threshold(value=value, color=color) for value, color in steps]


def _property(name: str, value: object) -> models.DynamicConfigValue:
    return models.DynamicConfigValue(id_val=name, value=value)


def _detail_url() -> str:
    return f"/d/{UID}?var-slo=${{__value.raw}}&${{__url_time_range}}"


def _row(identity: int, y: int, title: str) -> boards.Row:
    return boards.Row(title).id(identity).grid_pos(_at(0, y, 24, 1))


def _at(x: int, y: int, width: int, height: int) -> models.GridPos:
    return models.GridPos(x=x, y=y, w=width, h=height)
