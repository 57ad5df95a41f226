"""One style for all charts: Vega-Lite drawn as SVG text by vl-convert, in the page's own colours.

Rule: colours are CSS variables of the page, so that a chart follows its light or dark scheme; nothing is loaded from a
network.
"""

from __future__ import annotations

from typing import Any, Final

import vl_convert

# Placeholders that stand for CSS variables: Vega-Lite wants colours that it can parse.
_VARIABLES: Final = {
    "#010203": "var(--accent)",
    "#010204": "var(--bad)",
    "#010205": "var(--muted)",
    "#010206": "var(--line)",
    "#010207": "var(--good)",
    "#010208": "var(--second)",
}
ACCENT, BAD, MUTED, LINE, GOOD, SECOND = _VARIABLES
_CONFIG: Final[dict[str, Any]] = {
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "domain": False,
        "grid": True,
        "gridColor": LINE,
        "tickColor": LINE,
        "labelColor": MUTED,
        "titleColor": MUTED,
        "titleFontWeight": "normal",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "ticks": False,
        "labelPadding": 6,
    },
}


def draw(chart: Any, width: int, height: int) -> str:
    """An Altair chart as SVG text; costs some 50 ms."""
    spec = chart.properties(width=width, height=height).to_dict() | {"config": _CONFIG}
    svg: str = vl_convert.vegalite_to_svg(spec)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, variable)
    return svg
