"""Record and replay: the world that an attempt met, kept in a cassette and given again without the world.

from surefoot.evaluation import replay

with replay.opened("cassettes/refund.jsonl", "record") as world:
look_up = world.tool("look_up", look_up, effect="read")
client = httpx.AsyncClient(transport=replay.async_transport())
"""

from __future__ import annotations

from surefoot.evaluation.replay.around import Around
from surefoot.evaluation.replay.cassette import Cassette, Entry, read_cassette
from surefoot.evaluation.replay.errors import CassetteError, CassetteMissError, IrreversibleError, ReplayedError
from surefoot.evaluation.replay.http import async_transport, transport
from surefoot.evaluation.replay.redaction import Redaction
from surefoot.evaluation.replay.tools import declare
from surefoot.evaluation.replay.world import Mode, Report, World, current, opened

__all__ = [
    "Around",
    "Cassette",
    "CassetteError",
    "CassetteMissError",
    "Entry",
    "IrreversibleError",
    "Mode",
    "Redaction",
    "ReplayedError",
    "Report",
    "World",
    "async_transport",
    "current",
    "declare",
    "opened",
    "read_cassette",
    "transport",
]
