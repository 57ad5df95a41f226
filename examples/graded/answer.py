"""Fills in a worksheet of ``surefoot grade sample``: a stand-in for the person who looks at each run."""

import csv
import json
import sys
from pathlib import Path

from truth import acceptable


def runs(recorded: Path) -> dict[str, int]:
    """By run id, which task and repetition of the example it is: what a person would see in the run's span."""
    found = {}
    for line in recorded.read_text(encoding="utf-8").splitlines():
        for span in json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            told = {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}
            task = int(told["surefoot.task.id"].removeprefix("refund-"))
            found[f"{span['traceId']}-{span['spanId']}"] = 3 * task + int(told["surefoot.repetition"])
    return found


path, numbers = Path(sys.argv[1]), runs(Path("runs.jsonl"))
with path.open(encoding="utf-8", newline="") as file:
    rows = list(csv.DictReader(file))
for row in rows:
    row["verdict"] = "y" if acceptable(numbers[row["run_id"]]) else "n"
with path.open("w", encoding="utf-8", newline="") as file:
    writer = csv.DictWriter(file, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
