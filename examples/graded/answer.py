"""Fills in a worksheet of ``surefoot grade sample``: a stand-in for the person who looks at each run."""

import csv
import sys
from pathlib import Path

from truth import acceptable

path = Path(sys.argv[1])
with path.open(encoding="utf-8", newline="") as file:
    rows = list(csv.DictReader(file))
for row in rows:
    row["verdict"] = "y" if acceptable(int(row["run_id"].partition("-")[0], 16) - 1) else "n"
with path.open("w", encoding="utf-8", newline="") as file:
    writer = csv.DictWriter(file, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
