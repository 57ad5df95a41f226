"""Real collectors, each set up to show one side of the protocol."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.otlp_clients import SMALL, Collector
from surefoot.collector.testing import RunningCollector, collector_process


@pytest.fixture(scope="session")
def _running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCollector]:
    # Long segments, so that nothing moves between folders while a test looks.
    with collector_process(tmp_path_factory.mktemp("collector") / "spool", "--segment-seconds", "3600") as running:
        yield running


@pytest.fixture
def collector(_running: RunningCollector) -> Collector:
    collector = Collector(_running)
    collector.mark()
    return collector


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCollector]:
    """A collector that takes requests of up to SMALL bytes."""
    spool = tmp_path_factory.mktemp("small") / "spool"
    with collector_process(spool, "--segment-seconds", "3600", "--max-request-bytes", str(SMALL)) as running:
        yield running


@pytest.fixture(scope="session")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCollector]:
    """A collector whose backlog is beyond its limit for every request with content."""
    with collector_process(tmp_path_factory.mktemp("full") / "spool", "--max-backlog-bytes", "1") as running:
        yield running
