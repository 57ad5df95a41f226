"""What model calls cost, in US dollars, by the price list of ``genai-prices``.

The library prices one call at a time, so it is asked for the price list of each distinct provider and model, and the
arithmetic is done for all calls of a model together. Rule: a model that the list does not know costs null, never 0; so
does a run with such a call. Prices are those of the quarter of an hour in which the call began.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from genai_prices import Usage, calc_price

from surefoot.processors.genai.arrays import NONE, Bools, Ints, equal_runs
from surefoot.processors.genai.calls import ModelCalls
from surefoot.processors.genai.traces import Traces

Floats = npt.NDArray[np.float64]

_QUARTER_NS: Final = 900_000_000_000
# Names of the conventions that the price list calls otherwise.
_PROVIDERS: Final = {"gcp.gen_ai": "google", "x_ai": "x-ai", "azure.ai.inference": "azure"}


@dataclass(frozen=True, slots=True)
class Rate:
    """Dollars per token, which may depend on the tokens that went in: ``prices[i]`` above ``starts[i - 1]`` of them."""

    starts: Ints
    prices: Floats

    def at(self, tokens_in: Ints) -> Floats:
        """By call."""
        found: Floats = self.prices[np.searchsorted(self.starts, tokens_in, side="left")]
        return found


@dataclass(frozen=True, slots=True)
class Prices:
    """What a call of some model costs. Tokens read from or written to a cache are among those that went in."""

    input: Rate
    output: Rate
    cache_read: Rate
    cache_write: Rate
    request: float

    def cost(self, tokens_in: Ints, out: Ints, read: Ints, written: Ints) -> Floats:
        """Dollars by call."""
        fresh = np.maximum(tokens_in - read - written, 0)
        rates = ((self.input, fresh), (self.output, out), (self.cache_read, read), (self.cache_write, written))
        return sum((rate.at(tokens_in) * count for rate, count in rates), np.full(len(out), self.request))


@dataclass(frozen=True, slots=True)
class Costs:
    """Dollars of model calls, in their order; NaN if not known. ``unpriced`` used tokens at a price nobody knows."""

    dollars: Floats
    unpriced: Bools

    def by_call(self) -> pa.Array:
        """Null where the cost is not known."""
        return pa.array(self.dollars, mask=np.isnan(self.dollars))

    def by_run(self, run_of: Ints, runs: int) -> pa.Array:
        """The sum of each run's own calls; null if it has none that tells, or one whose price nobody knows."""
        priced = (run_of >= 0) & ~np.isnan(self.dollars)
        total = np.bincount(run_of[priced], weights=self.dollars[priced], minlength=runs)
        unknown = np.bincount(run_of[priced], minlength=runs) == 0
        unknown |= np.bincount(run_of[(run_of >= 0) & self.unpriced], minlength=runs) > 0
        return pa.array(total, mask=unknown)


def costs(traces: Traces, models: ModelCalls) -> Costs:
    """What each model call cost."""

    def told(name: str) -> Ints:
        return traces.ints(name, NONE)[models.told_by]

    counts = [told(name) for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")]
    used = (counts[0] >= 0) | (counts[1] >= 0)
    amounts = [np.maximum(count, 0) for count in counts]
    provider, providers = traces.numbers("provider_name")
    asked, requested = traces.numbers("request_model")
    answered, responded = traces.numbers("response_model")
    keys = (
        provider[models.node],
        asked[models.node],
        answered[models.told_by],
        traces.start[models.node] // _QUARTER_NS,
    )
    dollars = np.full(len(used), np.nan)
    at = np.flatnonzero(used)
    order, begins = equal_runs(*(key[at] for key in keys))
    for group in np.split(at[order], begins[1:]) if len(at) else []:
        named = (int(key[group[0]]) for key in keys[:3])
        lists = (providers, requested, responded)
        names = [words[number] if number >= 0 else None for words, number in zip(lists, named, strict=True)]
        prices = _prices(*names, int(keys[3][group[0]]))
        if prices is not None:
            dollars[group] = prices.cost(*(amount[group] for amount in amounts))
    return Costs(dollars, used & np.isnan(dollars))


@lru_cache(maxsize=4096)
def _prices(provider: str | None, requested: str | None, responded: str | None, quarter: int) -> Prices | None:
    """The prices of the model that answered, else of the one that was asked; None if neither is known."""
    when = datetime.fromtimestamp(quarter * _QUARTER_NS / 1e9, UTC)
    for model in (responded, requested):
        if not model:
            continue
        known_as = _PROVIDERS.get(provider, provider) if provider else None
        try:
            price = calc_price(Usage(), model, provider_id=known_as, genai_request_timestamp=when).model_price
        except LookupError:
            continue
        into = price.input_mtok
        return Prices(
            _rate(into),
            _rate(price.output_mtok),
            _rate(price.cache_read_mtok if price.cache_read_mtok is not None else into),
            _rate(price.cache_write_mtok if price.cache_write_mtok is not None else into),
            float(_rate(price.requests_kcount).prices[0]) * 1000,
        )
    return None


def _rate(price: Any) -> Rate:
    """A price per million tokens of the library: a number, one with tiers of tokens in, or None."""
    tiers = [] if price is None else getattr(price, "tiers", [])
    base = 0 if price is None else getattr(price, "base", price)
    return Rate(
        np.array([tier.start for tier in tiers], np.int64),
        np.array([float(base), *(float(tier.price) for tier in tiers)]) / 1e6,
    )
