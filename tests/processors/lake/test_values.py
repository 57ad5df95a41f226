"""What goes through the pipe of a query comes back as it was."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from surefoot.processors.lake import values


def test_every_kind_of_value_comes_back_type_and_all() -> None:
    row: tuple[Any, ...] = (
        *(None, True, 2**100, -1, 0.1, math.inf, "text \u2603 \ud7ff", b"\x00\xff", Decimal("1.10")),
        *(datetime(2026, 11, 30, 8, 5, 53, 1, UTC), datetime(2026, 11, 30), date(2026, 11, 30), time(8, 5, 53)),
        *(timedelta(days=-1, microseconds=3), UUID(int=5), [1, [None, "x"]], {"a": {1: [b"y"]}, (1, 2): 3}, (), [], {}),
    )
    back = values.loads(values.dumps(row))
    assert back == row
    assert [type(value) for value in back] == [type(value) for value in row]
    assert math.isnan(values.loads(values.dumps([math.nan]))[0])


def test_a_value_that_is_none_of_sqls_is_refused() -> None:
    with pytest.raises(TypeError, match="object cannot be shown; cast it to text"):
        values.dumps([object()])
