"""Settings with a folder for SLO files, and a real lake."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.slo_events import Tables
from surefoot.processors.lake import Lake
from surefoot.processors.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "slos").mkdir()
    return Settings(home=tmp_path)


@pytest.fixture(scope="session")
def blank_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All tables take a while to create; copying them does not."""
    return Lake.open(tmp_path_factory.mktemp("blank") / "lake").path


@pytest.fixture
def tables(settings: Settings, blank_lake: Path) -> Tables:
    shutil.copytree(blank_lake, settings.lake_path)
    return Tables(Lake.open(settings.lake_path))
