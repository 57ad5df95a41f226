"""What docs/writer.md shows works, and what it lists is what there is."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from support.segments import held, logs, once, points, seal, traces
from surefoot.collector.spool import Spool
from surefoot.processors import status
from surefoot.processors.lake import Lake
from surefoot.processors.settings import Settings
from surefoot.processors.writer import Writer

PAGE = (Path(__file__).parents[2] / "docs" / "writer.md").read_text()


def test_the_command_of_the_page(tmp_path: Path) -> None:
    (command,) = re.findall(r"```sh\n(.*?)\n```", PAGE, re.DOTALL)
    program, *arguments = shlex.split(command)
    assert program == "python"
    settings = Settings(home=tmp_path)
    seal(Spool(settings.spool_path), [traces(range(5)), logs(range(5)), points(range(5))])
    subprocess.run([sys.executable, *arguments], check=True, env=os.environ | settings.to_environment())
    assert held(Lake.open(settings.lake_path)) == once(range(5))
    assert status.read(settings.status_path, "writer") is not None


def test_the_page_names_all_that_the_status_says(tmp_path: Path) -> None:
    said = Writer(Lake.open(tmp_path / "lake"), Spool(tmp_path / "spool")).published()
    section = PAGE.partition("## `status/writer.json`")[2]
    assert said.keys() - {"at"} <= set(re.findall(r"`(\w+)`", section))
