"""Data points of the five metric kinds as rows of one shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from surefoot.processors.otlp.arrays import attribute_maps, expand, int64, microseconds

_TEMPORALITIES = pa.array(["unspecified", "delta", "cumulative"])
_KINDS = ("gauge", "sum", "histogram", "exponential_histogram", "summary")
_NUMBERS = pa.list_(pa.int64())
_BOUNDS = pa.list_(pa.float64())


def metric_points(metrics: pa.StructArray) -> tuple[dict[str, pa.ChunkedArray], Any]:
    """The columns of ``metric_points`` that a metric knows itself, and for each point the number of its metric."""
    tables, owners = [], []
    for kind in _KINDS:
        data = metrics.field(kind)
        points, of_metric = expand(pc.struct_field(data, "data_points"))
        if len(points):
            tables.append(pa.table(_columns(kind, metrics, data, points, pa.array(of_metric))))
            owners.append(of_metric)
    if not tables:
        return {name: pa.chunked_array([], kind) for name, kind in _SCHEMA}, np.empty(0, np.int64)
    table = pa.concat_tables(tables)
    return {name: table[name].combine_chunks() for name in table.column_names}, np.concatenate(owners)


_SCHEMA = [
    ("metric_name", pa.string()),
    ("metric_type", pa.string()),
    ("unit", pa.string()),
    ("temporality", pa.string()),
    ("monotonic", pa.bool_()),
    ("time", pa.timestamp("us", tz="UTC")),
    ("time_unix_nano", pa.int64()),
    ("start_unix_nano", pa.int64()),
    ("value", pa.float64()),
    ("count", pa.int64()),
    ("sum", pa.float64()),
    ("min", pa.float64()),
    ("max", pa.float64()),
    ("bucket_counts", _NUMBERS),
    ("explicit_bounds", _BOUNDS),
    ("attributes", pa.map_(pa.string(), pa.string())),
]


def _columns(kind: str, metrics: pa.StructArray, data: pa.StructArray, points: pa.StructArray, owners: pa.Array) -> Any:
    time = int64(points.field("time_unix_nano"))
    columns = {
        "metric_name": metrics.field("name").take(owners),
        "metric_type": pa.array([kind]).take(pa.array(np.zeros(len(points), np.int64))),
        "unit": metrics.field("unit").take(owners),
        "temporality": _temporality(data, owners),
        "monotonic": _optional(data, "is_monotonic", pa.bool_()).take(owners),
        "time": microseconds(time),
        "time_unix_nano": time,
        "start_unix_nano": int64(points.field("start_time_unix_nano")),
        "value": _value(points),
        **{name: _optional(points, name, pa.float64()) for name in ("sum", "min", "max")},
        "count": int64(points.field("count")) if _has(points, "count") else pa.nulls(len(points), pa.int64()),
        "bucket_counts": _optional(points, "bucket_counts", _NUMBERS),
        "explicit_bounds": _optional(points, "explicit_bounds", _BOUNDS),
        "attributes": attribute_maps(points.field("attributes")),
    }
    return {name: columns[name].cast(wanted) for name, wanted in _SCHEMA}


def _value(points: pa.StructArray) -> pa.Array:
    if not _has(points, "as_double"):
        return pa.nulls(len(points), pa.float64())
    # A count above 2^53 loses its last digits here; the column is a double for every kind of number.
    return pc.coalesce(points.field("as_double"), points.field("as_int").cast(pa.float64(), safe=False))


def _temporality(data: pa.StructArray, owners: pa.Array) -> pa.Array:
    numbers = _optional(data, "aggregation_temporality", pa.int32()).take(owners)
    known = pc.if_else(pc.is_in(numbers, pa.array([0, 1, 2], pa.int32())), numbers, pa.scalar(0, pa.int32()))
    return _TEMPORALITIES.take(known)


def _optional(struct: pa.StructArray, name: str, kind: pa.DataType) -> pa.Array:
    if not _has(struct, name):
        return pa.nulls(len(struct), kind)
    return pc.struct_field(struct, name).cast(kind)


def _has(struct: pa.StructArray, name: str) -> bool:
    return bool(struct.type.get_field_index(name) >= 0)
