"""What a run has from its spans: the first that tells, its own span or start event before all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from surefoot.processors.genai.arrays import Bools, Ints, bools, equal_runs, firsts, text
from surefoot.processors.genai.marks import Entries
from surefoot.processors.genai.runs import Runs
from surefoot.processors.genai.traces import Traces
from surefoot.processors.lake.schema import MAP


@dataclass(frozen=True, slots=True)
class Members:
    """The spans of runs but for the runs' own, in order of time within a run, and the run of each."""

    node: Ints
    run: Ints
    first: Ints  # by run; -1 for none


def members_of(traces: Traces, runs: Runs) -> Members:
    """All of them."""
    owner = runs.owner[: traces.spans]
    node = np.flatnonzero((owner >= 0) & (runs.node[owner] != np.arange(len(owner)))) if len(runs.node) else owner[:0]
    return Members(node, owner[node], firsts(owner[node], len(runs.node), node))


def inherited(traces: Traces, runs: Runs, members: Members, name: str) -> pa.Array:
    """A column of each run: its own if it has one, else that of the first of its spans that does."""
    column = traces.table[name]
    if column.null_count == len(column):
        return pa.nulls(len(runs.node), column.type)
    return traces.column(name, _having(traces, runs, members, bools(column.is_valid())))


def first_named(traces: Traces, runs: Runs, members: Members) -> pa.Array:
    """The agent that the first span of each run that names one does."""
    named = traces.agent[members.node] >= 0
    nodes = firsts(members.run[named], len(runs.node), members.node[named])
    return text(traces.agent_names, np.where(nodes >= 0, traces.agent[nodes], -1))


def _having(traces: Traces, runs: Runs, members: Members, present: Bools) -> Ints:
    """The node that tells, by run; a node that does not tell if none does. ``present`` is by row of the table."""
    has = np.append(present, False)[traces.row]
    own = has[runs.node]
    if own.all():
        return runs.node
    telling = has[members.node]
    found = firsts(members.run[telling], len(runs.node), members.node[telling])
    return np.where(own | (found < 0), runs.node, found)


@dataclass(frozen=True, slots=True)
class Maps:
    """Entries of some owners in order of owner and key, at most one of each."""

    owner: Ints
    key: Ints
    value: pa.StringArray
    names: list[str]

    def array(self, owners: int) -> pa.MapArray:
        """One map per owner."""
        offsets = np.concatenate(([0], np.cumsum(np.bincount(self.owner, minlength=owners)))).astype(np.int32)
        return pa.MapArray.from_arrays(pa.array(offsets), text(self.names, self.key), self.value).cast(MAP)


def run_maps(runs: Runs, entries: Entries) -> Maps:
    """The entries of each run; its own win, then the earliest."""
    run = runs.owner[entries.node]
    inside = np.flatnonzero(run >= 0)
    run, node = run[inside], entries.node[inside]
    rank = np.where(runs.node[run] == node, -1, node)
    return _best(run, entries.key[inside], rank, entries.value.take(pa.array(inside)), entries.names)


def call_maps(calls: Ints, run_of: Ints, of_runs: Maps, entries: Entries, nodes: int) -> Maps:
    """The entries of each call; its own win, then its run's."""
    place = np.full(nodes, -1, np.int64)
    place[calls] = np.arange(len(calls))
    own = np.flatnonzero(place[entries.node] >= 0)
    begins = np.searchsorted(of_runs.owner, run_of)
    lengths = np.where(run_of >= 0, np.searchsorted(of_runs.owner, run_of, side="right") - begins, 0)
    call = np.repeat(np.arange(len(calls)), lengths)
    taken = np.arange(len(call)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + np.repeat(begins, lengths)
    values: Any = pa.concat_arrays([entries.value.take(pa.array(own)), of_runs.value.take(pa.array(taken))])
    return _best(
        np.concatenate((place[entries.node[own]], call)),
        np.concatenate((entries.key[own], of_runs.key[taken])),
        np.repeat(np.array([0, 1]), [len(own), len(taken)]),
        values,
        entries.names,
    )


def _best(owner: Ints, key: Ints, rank: Ints, values: pa.StringArray, names: list[str]) -> Maps:
    order = np.argsort(rank, kind="stable")
    owner, key = owner[order], key[order]
    sort, begins = equal_runs(key, owner)
    first = sort[begins]
    return Maps(owner[first], key[first], values.take(pa.array(order[first])), names)
