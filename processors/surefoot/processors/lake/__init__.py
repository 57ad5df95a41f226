"""Keep: Arrow tables in, Delta tables on disk, DuckDB views out."""

from surefoot.processors.lake.commit import Commit, commit
from surefoot.processors.lake.lake import Added, AddedFile, Lake
from surefoot.processors.lake.replace import replace_dates, replace_traces, settle_traces, supersede

__all__ = [
    "Added",
    "AddedFile",
    "Commit",
    "Lake",
    "commit",
    "replace_dates",
    "replace_traces",
    "settle_traces",
    "supersede",
]
