"""``surefoot import results``: other people's results as a run folder, and what they say under repetition."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.table import Table
from rich.text import Text

from surefoot.cli.output import JSON_OPTION, console, number, print_json
from surefoot.errors import SurefootError

if TYPE_CHECKING:
    from surefoot.evaluation.importers import Results
    from surefoot.evaluation.importers.tally import Tally
    from surefoot.processors.evidence.groups import GroupTable

_SHOWN: Final = 20
_ALL_K: Final = 10  # up to here every k has a line


class UsageError(SurefootError):
    """Options that do not fit."""


def results(
    files: list[Path] = typer.Argument(help="The files; several are read as one import.", exists=True, dir_okay=False),
    form: str = typer.Option(
        ..., "--format", "-f", help="tau-bench, inspect-ai, terminal-bench, swe-bench, jsonl or csv."
    ),
    out: Path = typer.Option(..., "--out", "-o", help="Run folder to write; must not hold attempts.", file_okay=False),
    suite: str | None = typer.Option(None, help="The suite's name, where the files do not say it, or another."),
    variant: str | None = typer.Option(None, help="What was run, where the files do not say it, or another name."),
    accept_from: float = typer.Option(1.0, help="The least score that is acceptable, where a format has scores."),
    no_verdict: str | None = typer.Option(
        None, help="What an attempt without a verdict is: fail or missing. Default: as the source counts it."
    ),
    scorer: str | None = typer.Option(None, help="inspect-ai: the scorer that decides. Default: all have to agree."),
    columns: list[str] = typer.Option([], "--map", help="jsonl, csv: OUR_COLUMN=THEIRS, for each that differs."),
    as_json: bool = JSON_OPTION,
) -> None:
    """Import results of repeated runs; ends with 2 if rows were dropped."""
    from surefoot.evaluation.importers import Options, read_results, write_folder

    if no_verdict not in {None, "fail", "missing"}:
        raise UsageError(f"--no-verdict is {no_verdict!r}; use fail or missing.")
    options = Options(
        suite=suite,
        variant=variant,
        accept_from=accept_from,
        no_verdict="fail" if no_verdict == "fail" else "missing" if no_verdict == "missing" else None,
        scorer=scorer,
        columns=_mapping(columns),
    )
    read = read_results(form, files, options)
    tally = write_folder(read, out)
    if as_json:
        print_json(_for_scripts(read, tally, out))
    else:
        _print(read, tally, out)
    if read.dropped_count:
        raise typer.Exit(2)


def _mapping(given: list[str]) -> dict[str, str]:
    from surefoot.evaluation.importers.plain import COLUMNS

    found = dict(one.partition("=")[::2] for one in given)
    for ours, theirs in found.items():
        if not theirs or ours not in {*COLUMNS, "acceptable"}:
            raise UsageError(
                f"--map {ours}={theirs}: write OUR_COLUMN=THEIRS; ours are {', '.join(COLUMNS)}, acceptable."
            )
    return found


def _ks(groups: GroupTable) -> list[int]:
    most = int(groups.n.max()) if len(groups) else 0
    return list(range(1, most + 1)) if most <= _ALL_K else [*range(1, _ALL_K + 1), most]


def _print(read: Results, tally: Tally, out: Path) -> None:
    from surefoot.processors.evidence.repeated import outcome_yield, pass_at_k, pass_hat_k

    shown = console()
    for variant in tally.variants:
        groups = tally.table(variant)
        mean = outcome_yield(groups)
        shown.print(Text(variant, style="bold"))
        parts = [
            f"{len(groups):,} tasks",
            f"{groups.n.sum():,} judged attempts",
            f"mean {number(mean.value, '{:.4f}')}",
        ]
        lost = {"without a verdict": groups.missing.sum(), "ended by infrastructure": tally.infrastructure(variant)}
        shown.print(", ".join([*parts, *(f"{count:,} {what}" for what, count in lost.items() if count)]))
        table = Table(box=None, pad_edge=False, header_style="bold")
        for title in ("k", "Pass^k", "Pass@k", "tasks with k attempts"):
            table.add_column(title, justify="right")
        for k in _ks(groups):
            strict, loose = pass_hat_k(groups, k), pass_at_k(groups, k)
            table.add_row(str(k), number(strict.value, "{:.4f}"), number(loose.value, "{:.4f}"), f"{strict.groups:,}")
        shown.print(table)
    for said in read.cannot_tell():
        shown.print(f"not told  {said}", style="dim", markup=False, soft_wrap=True)
    for row in read.dropped[:_SHOWN]:
        shown.print(f"dropped  {row.file}, {row.place}: {row.reason}", style="yellow", markup=False, soft_wrap=True)
    if read.dropped_count > _SHOWN:
        shown.print(f"... and {read.dropped_count - _SHOWN:,} more rows were dropped")
    shown.print(f"Run folder: {out}", markup=False, soft_wrap=True)


def _for_scripts(read: Results, tally: Tally, out: Path) -> dict[str, Any]:
    from surefoot.processors.evidence.repeated import outcome_yield, pass_at_k, pass_hat_k

    def one(variant: str) -> dict[str, Any]:
        groups = tally.table(variant)
        return {
            "tasks": len(groups),
            "judged": int(groups.n.sum()),
            "missing": int(groups.missing.sum()),
            "infrastructure": tally.infrastructure(variant),
            "mean": outcome_yield(groups).value,
            "pass_hat_k": {str(k): pass_hat_k(groups, k).value for k in _ks(groups)},
            "pass_at_k": {str(k): pass_at_k(groups, k).value for k in _ks(groups)},
        }

    return {
        "folder": str(out),
        "provenance": read.provenance(),
        "variants": {variant: one(variant) for variant in tally.variants},
        "dropped": [{"file": row.file, "place": row.place, "reason": row.reason} for row in read.dropped],
    }
