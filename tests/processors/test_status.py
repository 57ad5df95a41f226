"""What processes say about themselves is a view: a file that a power loss emptied stops no reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.processors import status


@pytest.mark.parametrize("left", [b"", b'{"at": 1', bytes(20)])
def test_a_file_that_is_not_whole_counts_as_not_published(tmp_path: Path, left: bytes) -> None:
    status.publish(tmp_path, "writer", {"at": 1.0})
    assert status.read(tmp_path, "writer") == {"at": 1.0}
    (tmp_path / "writer.json").write_bytes(left)
    assert status.read(tmp_path, "writer") is None
