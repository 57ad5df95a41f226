"""The server that end-to-end tests talk to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.serving import Server, serving


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path / "home") as running:
        yield running
