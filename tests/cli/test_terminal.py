"""What people see in a narrow terminal is whole: no id, name or number is cut, and what looks like markup is text."""

from __future__ import annotations

import pytest
from rich.console import Console

from surefoot.cli import sql

RUN = "0617e15b70dc05341938cb1d44530dec-25bbe6116f8b859f"


@pytest.mark.parametrize("width", [40, 80, 156])
def test_no_cell_is_cut_at_any_width(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(width=width, record=True)
    monkeypatch.setattr(sql, "console", lambda: terminal)
    cells = [RUN, "[red]clerk[/red]", "2026-11-02 18:25:03.572312+00:00"]
    sql.print_rows(["run_id", "[b]", "started_at"], [cells, cells])
    shown = terminal.export_text()
    assert all(shown.count(cell) == 2 for cell in cells)
    assert "…" not in shown
    assert "[b]" in shown
    assert "2 rows" in shown
    assert ("row 2" in shown) == (width < 156)


def test_no_rows_still_show_the_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(width=10, record=True)
    monkeypatch.setattr(sql, "console", lambda: terminal)
    sql.print_rows(["run_id"], [])
    assert "run_id" in terminal.export_text()
