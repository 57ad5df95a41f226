"""The same agent in a test suite: one result per test, whatever the number of attempts."""

from __future__ import annotations

import pytest
from desk import answer  # type: ignore[import-not-found]  # it lies beside this file


@pytest.mark.repeat_agent(k=5)
def test_it_multiplies() -> None:
    assert answer("What is 7 times 8?") == "56"


@pytest.mark.repeat_agent(k=1, attempts=30, min_yield=0.1, confidence=0.95)
def test_it_is_not_hopeless_where_it_is_weak() -> None:
    assert answer("What is 6 times 7?") == "42"
