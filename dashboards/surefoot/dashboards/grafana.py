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

from grafana_foundation_sdk.builders import dashboard as boards
from grafana_foundation_sdk.builders import statetimeline, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from surefoot.dashboards.grafana_parts import (
    SOURCE,
    at,
    coloured,
    each_line,
    lines,
    override,
    query,
    row,
    tile,
    timeline,
)

UID: Final = "surefoot-slo"
_STATES: Final = {
    "-2": models.ValueMappingResult(text="frozen", color="blue", index=5),
    "-1": models.ValueMappingResult(text="no data", color="text", index=0),
    "0": models.ValueMappingResult(text="ok", color="green", index=1),
    "1": models.ValueMappingResult(text="burning: ticket", color="orange", index=2),
    "2": models.ValueMappingResult(text="burning: page", color="red", index=3),
    "3": models.ValueMappingResult(text="budget exhausted", color="purple", index=4),
}
# Of a tier: 0 quiet, 1 frozen, 2 burning. Frozen is 1 where no stratum of the view burns.
_TIER_STATES: Final = {
    "0": models.ValueMappingResult(text="quiet", color="green", index=0),
    "1": models.ValueMappingResult(text="frozen", color="blue", index=1),
    "2": models.ValueMappingResult(text="burning", color="red", index=2),
}
_FROZEN: Final = {
    "0": models.ValueMappingResult(text="no", color="text", index=0),
    "1": models.ValueMappingResult(text="frozen", color="blue", index=1),
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
        .datasource(SOURCE)
        .query("label_values(surefoot_slo_objective_ratio, slo)")
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
    )


def _alerts() -> boards.AnnotationQuery:
    """Firing alerts of the chosen SLO, and those about Surefoot itself, which carry no ``slo``."""
    return (
        boards.AnnotationQuery()
        .name("Alerts")
        .datasource(SOURCE)
        .enable(True)
        .icon_color("red")
        .expr('ALERTS{alertname=~"Surefoot.+",alertstate="firing",slo=~"$slo|"}')
        .title_format("{{alertname}}")
        .text_format("{{severity}} {{slo}}")
        .tag_keys("severity")
    )


def _overview(board: boards.Dashboard) -> None:
    board.with_row(row(1, 0, "All SLOs"))
    board.with_panel(_overview_table().id(2).grid_pos(at(0, 1, 16, 9)))
    burning = tile(
        "SLOs burning",
        "How many SLOs burn their budget too fast, or have none left, in the roll-up or in any stratum.",
        "sum(max by (slo) (surefoot_slo_state) >= bool 1)",
        ((None, "green"), (1.0, "red")),
    )
    board.with_panel(burning.id(3).grid_pos(at(16, 1, 8, 3)).decimals(0))
    budget = tile(
        "Worst budget left",
        "The least share of an error budget that any SLO or stratum has left. Negative: more than all of it was spent.",
        "min(surefoot_slo_error_budget_remaining_ratio)",
        _BUDGET_STEPS,
    )
    board.with_panel(budget.id(4).grid_pos(at(16, 4, 8, 3)).unit("percentunit").decimals(1))
    age = tile(
        "Evaluation age",
        "Time since the SLOs were last computed. When it grows, every number here is that old.",
        "time() - min(surefoot_slo_last_run_timestamp_seconds)",
        _AGE_STEPS,
    )
    board.with_panel(age.id(5).grid_pos(at(16, 7, 8, 3)).unit("s").decimals(0))


def _overview_table() -> table.Panel:
    columns = (
        ("A", "Objective", "max by (slo) (surefoot_slo_objective_ratio)"),
        ("B", "Budget left", "min by (slo) (surefoot_slo_error_budget_remaining_ratio)"),
        ("C", "Burn rate, 1 h", 'max by (slo) (surefoot_slo_burn_rate{window="1h"})'),
        ("D", "State", "max by (slo) (surefoot_slo_state)"),
        ("E", "Frozen", "max by (slo) (surefoot_slo_tier_frozen)"),
    )
    names = {"slo": "SLO", **{f"Value #{ref}": name for ref, name, _ in columns}}
    panel = (
        table.Panel()
        .title("SLOs")
        .description(
            "Each SLO once. Budget, burn rate and state are those of its worst line: the roll-up or a stratum. "
            "A burn rate of 1 spends the budget exactly within the period. Empty: no events. Frozen: labels are "
            "missing, so it cannot be told whether some tier burns, and no alert of it fires or resolves."
        )
        .datasource(SOURCE)
        .with_transformation(models.DataTransformerConfig(id_val="merge", options={}))
        .with_transformation(
            models.DataTransformerConfig(
                id_val="organize", options={"excludeByName": {"Time": True}, "renameByName": names}
            )
        )
        .override_by_name("SLO", [override("links", [{"title": "Detail", "url": _detail_url()}])])
        .override_by_name("Objective", [override("unit", "percentunit")])
        .override_by_name("Budget left", [*coloured(_BUDGET_STEPS), override("unit", "percentunit")])
        .override_by_name("Burn rate, 1 h", [*coloured(_BURN_STEPS), override("decimals", 2)])
        .override_by_name("State", [*coloured(((None, "text"),)), override("mappings", [models.ValueMap(_STATES)])])
        .override_by_name("Frozen", [*coloured(((None, "text"),)), override("mappings", [models.ValueMap(_FROZEN)])])
    )
    for ref, _, expr in columns:
        panel.with_target(query(expr, ref=ref).instant().format(PromQueryFormat.TABLE))
    return panel


def _detail(board: boards.Dashboard) -> None:
    board.with_row(row(10, 10, "$slo"))
    budget = lines(
        "Error budget left",
        "Share of the period's budget that is left, for the roll-up and each stratum. Below 0: too much was spent.",
        each_line("surefoot_slo_error_budget_remaining_ratio", ""),
    )
    board.with_panel(budget.id(11).grid_pos(at(0, 11, 12, 8)).unit("percentunit").axis_soft_min(0).axis_soft_max(1))
    board.with_panel(_burn_by_window().id(12).grid_pos(at(12, 11, 12, 8)))
    burn = lines(
        "Burn rate by stratum, 1 h",
        "Who burns: the roll-up and each stratum over the last hour. At 1 the budget lasts exactly the period.",
        each_line("surefoot_slo_burn_rate", "1h"),
    )
    board.with_panel(burn.id(13).grid_pos(at(0, 19, 12, 8)).decimals(2).min(0))
    errors = lines(
        "Error ratio by stratum, 1 h",
        "Bad events as a share of those with a label, over the last hour. Read it beside the number of events.",
        each_line("surefoot_slo_error_ratio", "1h"),
    )
    board.with_panel(errors.id(14).grid_pos(at(12, 19, 12, 8)).unit("percentunit").min(0))
    events = lines(
        "Events by outcome, 1 h",
        "How many events of all strata together the last hour's ratios rest on. Excluded ones are in no ratio.",
        query('max by (view, outcome) (surefoot_slo_events{slo="$slo",window="1h"})').legend_format(
            "{{view}} {{outcome}}"
        ),
    )
    board.with_panel(events.id(15).grid_pos(at(0, 27, 12, 8)).unit("short").min(0))
    coverage = lines(
        "Label coverage, 1 day",
        "Share of the last day's events that are known to be good or bad. While it is low, the ratios may still move.",
        each_line("surefoot_slo_label_coverage_ratio", "1d"),
    )
    board.with_panel(coverage.id(16).grid_pos(at(12, 27, 12, 8)).unit("percentunit").min(0).max(1))
    board.with_panel(_state_timeline().id(17).grid_pos(at(0, 35, 24, 6)))
    rate = "sum by (service_name, outcome) (rate(surefoot_runs_ended_total[$__rate_interval]))"
    runs = lines(
        "Runs ended by outcome",
        "Runs per second of every service as they are first seen ended; a dot is an example with its trace. "
        "Later corrections do not show here: the SLO's own numbers have them.",
        query(rate).legend_format("{{service_name}} {{outcome}}").exemplar(True),
    )
    board.with_panel(runs.id(18).grid_pos(at(0, 41, 24, 8)).unit("reqps").min(0))
    _trust(board)


def _trust(board: boards.Dashboard) -> None:
    """What is known of the chosen SLO, and what is demanded because of it."""
    board.with_panel(_tier_timeline().id(19).grid_pos(at(0, 49, 24, 6)))
    bounds = lines(
        "Budget with missing labels, worst line",
        "What would be left of the budget were every missing label bad (low) or good (high); equal without any.",
        query('min by (view, bound) (surefoot_slo_error_budget_remaining_bound_ratio{slo="$slo"})').legend_format(
            "{{view}} {{bound}}"
        ),
    )
    board.with_panel(bounds.id(26).grid_pos(at(0, 55, 8, 8)).unit("percentunit"))
    lag = lines(
        "Watermark lag",
        "How far the end of each view's windows lies back. The matured one waits as long as labels take.",
        query('time() - max by (view) (surefoot_slo_watermark_timestamp_seconds{slo="$slo"})').legend_format(
            "{{view}}"
        ),
    )
    board.with_panel(lag.id(27).grid_pos(at(8, 55, 8, 8)).unit("s").min(0))
    silence = lines(
        "Silence",
        "Time since the latest event of any stratum ended, beside the silence that is unusual for this SLO.",
        query('time() - max(surefoot_slo_last_event_timestamp_seconds{slo="$slo"})').legend_format("silence"),
    )
    limit = query('max(surefoot_slo_silence_limit_seconds{slo="$slo"})', ref="B").legend_format("limit, worst line")
    silence.with_target(limit)
    board.with_panel(silence.id(28).grid_pos(at(16, 55, 8, 8)).unit("s").min(0))
    board.with_panel(_actions().id(29).grid_pos(at(0, 63, 24, 5)))


def _tier_timeline() -> statetimeline.Panel:
    tiers = 'max by (view, tier) (surefoot_slo_tier_%s{slo="$slo"})'
    expr = f"clamp_max(2 * {tiers % 'burning'} + {tiers % 'frozen'}, 2)"
    text = "Whether each tier burns in any line of the SLO, cannot be told for missing labels (frozen), or is quiet."
    return timeline("Tiers", text, query(expr).legend_format("{{view}} {{tier}}"), _TIER_STATES)


def _actions() -> table.Panel:
    expr = 'max by (policy, action, allowed_mode) (surefoot_slo_policy_action{slo="$slo"})'
    return (
        table.Panel()
        .title("What policies demand")
        .description(
            "Actions that error-budget policies demand of this SLO now. The evidence stands on Surefoot's page."
        )
        .datasource(SOURCE)
        .with_transformation(
            models.DataTransformerConfig(id_val="organize", options={"excludeByName": {"Time": True, "Value": True}})
        )
        .with_target(query(expr).instant().format(PromQueryFormat.TABLE))
    )


def _burn_by_window() -> timeseries.Panel:
    thresholds = 'max by (tier) (surefoot_slo_burn_rate_threshold{slo="$slo"})'
    panel = lines(
        "Burn rate by window, worst line",
        "The highest burn rate of the roll-up and all strata. It burns when the long and the short window of a tier "
        "are both above its dashed line: red pages, orange opens a ticket.",
        query('max by (window) (surefoot_slo_burn_rate{slo="$slo"})').legend_format("{{window}}"),
    )
    panel.with_target(query(thresholds, ref="B").legend_format("threshold {{tier}}"))
    for severity, colour in (("page", "red"), ("ticket", "orange")):
        dashed = override("custom.lineStyle", {"fill": "dash", "dash": [10, 10]})
        fixed = override("color", {"mode": "fixed", "fixedColor": colour})
        panel.override_by_regexp(f"/^threshold {severity}/", [dashed, fixed])
    return panel.decimals(2).min(0)


def _state_timeline() -> statetimeline.Panel:
    return timeline(
        "State",
        "What each line of the SLO was doing: fine, burning, out of budget, frozen, or without data.",
        each_line("surefoot_slo_state", ""),
        _STATES,
    )


def _health(board: boards.Dashboard) -> None:
    board.with_row(row(20, 68, "Surefoot itself"))
    items = lines(
        "Items received",
        "Spans, log records and data points per second by what became of them. Anything but accepted deserves a look.",
        query("sum by (signal, result) (rate(surefoot_collector_items_total[$__rate_interval]))").legend_format(
            "{{signal}} {{result}}"
        ),
    )
    board.with_panel(items.id(21).grid_pos(at(0, 69, 12, 7)).unit("cps").min(0))
    rows = lines(
        "Rows written",
        "Rows per second that the writer commits to each table.",
        query("sum by (table) (rate(surefoot_writer_rows_total[$__rate_interval]))").legend_format("{{table}}"),
    )
    board.with_panel(rows.id(22).grid_pos(at(12, 69, 12, 7)).unit("cps").min(0))
    backlog = lines(
        "Backlog",
        "Bytes that the collector has acknowledged and the tables do not have yet. They are safe on disk.",
        query("sum(surefoot_collector_backlog_bytes)").legend_format("backlog"),
    )
    board.with_panel(backlog.id(23).grid_pos(at(0, 76, 8, 7)).unit("bytes").min(0))
    lag = lines(
        "Writer lag",
        "Age of the oldest telemetry that waits for the writer.",
        query("max(surefoot_writer_lag_seconds)").legend_format("lag"),
    )
    board.with_panel(lag.id(24).grid_pos(at(8, 76, 8, 7)).unit("s").min(0))
    silence = lines(
        "Silence of processes",
        "Time since each process last said how it is. A line that climbs belongs to a process that hangs.",
        query("time() - min by (process) (surefoot_process_published_timestamp_seconds)").legend_format("{{process}}"),
    )
    board.with_panel(silence.id(25).grid_pos(at(16, 76, 8, 7)).unit("s").min(0))


def _detail_url() -> str:
    return f"/d/{UID}?var-slo=${{__value.raw}}&${{__url_time_range}}"
