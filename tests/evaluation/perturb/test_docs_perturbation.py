"""The example of docs/perturbation.md prints what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "perturbation.md"


def test_the_examples(tmp_path: Path) -> None:
    text = PAGE.read_text()
    programs = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    expected = re.findall(r"```text\n(.*?)```", text, re.DOTALL)[0]
    said = [
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
        for program in programs
    ]
    assert said == [expected, ""]
