"""Settings with a folder for SLO files, and a real lake."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.slo_events import Tables
from surefoot.processors.lake import Lake
from surefoot.processors.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "slos").mkdir()
    return Settings(home=tmp_path)


@pytest.fixture
def tables(settings: Settings) -> Tables:
    return Tables(Lake.open(settings.lake_path))
