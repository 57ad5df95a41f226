"""Model calls at a price that nobody knows are counted, once, from the deriver to the metric."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from support.traces import T0, agent, chat, put
from surefoot.processors.genai.derive import Deriver
from surefoot.processors.lake import Lake
from surefoot.processors.settings import Settings


def test_model_calls_without_a_price_are_counted_once(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    lake = Lake.open(settings.lake_path)
    deriver = Deriver(lake, settings)
    told: dict[str, Any] = {"input_tokens": 5, "output_tokens": 1, "provider_name": "openai"}
    put(lake, agent("a"), chat("c", "a", request_model="gpt-4o", **told), chat("silent", "a"))
    deriver.step(T0 + 20)
    assert deriver.unpriced == []
    put(lake, chat("d", "a", 3, request_model="nobody-knows-it", **told))
    deriver.step(T0 + 21)
    put(lake, chat("e", "a", 5, request_model="gpt-4o", **told))
    deriver.step(T0 + 22)
    assert [asdict(counter) for counter in deriver.unpriced] == [{"service_name": "desk", "calls": 1}]
