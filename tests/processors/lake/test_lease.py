"""One holder of the lease at a time, and the refusal says who."""

from __future__ import annotations

import subprocess
import sys

import pytest

from surefoot.processors.errors import LeaseHeldError
from surefoot.processors.lake import Lake

HOLD = """
import sys
from pathlib import Path
from surefoot.processors.lake.lease import lease
with lease(Path(sys.argv[1]), "jobs"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_holder_is_told_who_holds_it_until_it_dies(lake: Lake) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lake.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        refused = pytest.raises(LeaseHeldError, match=rf"compact needs the lease .* jobs \(pid {holder.pid}\) holds")
        with refused, lake.lease("compact"):
            pass
        holder.kill()
        holder.wait()
    with lake.lease("compact"):
        pass


def test_the_lease_comes_back_after_use(lake: Lake) -> None:
    for holder in ("jobs", "upkeep"):
        refused = pytest.raises(LeaseHeldError, match=f"which {holder} ")
        with lake.lease(holder), refused, lake.lease("other"):
            pass
