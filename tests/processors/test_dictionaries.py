"""Compacting keeps every value and no text that no row has: it would be written to a file and outlive an erasure."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from surefoot.processors.dictionaries import compacted, picked, plain_type
from surefoot.processors.lake.parquet import write_parquet

TEXTS = pa.array(["secret", "a", None, "b", "a"]).dictionary_encode()
MAPS = pa.MapArray.from_arrays(pa.array([0, 1, 3, 5], pa.int32()), pa.array(list("klmno")).dictionary_encode(), TEXTS)


def test_only_what_rows_use_stays_in_a_dictionary() -> None:
    kept = compacted(TEXTS.slice(1))
    assert kept.to_pylist() == ["a", None, "b", "a"]
    assert kept.dictionary.to_pylist() == ["a", "b"]
    assert picked(TEXTS, pa.array([3, -1, 1]).to_numpy()).to_pylist() == ["b", None, "a"]


def test_nested_values_are_kept_and_their_dictionaries_compacted() -> None:
    structs = pa.StructArray.from_arrays([MAPS.slice(1)], names=["attributes"])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), structs)
    kept = compacted(lists)
    assert kept.to_pylist() == lists.to_pylist()
    assert kept.flatten().field("attributes").items.dictionary.to_pylist() == ["a", "b"]
    assert kept.type == lists.type != plain_type(lists.type)


def test_a_file_reads_as_plain_text_and_holds_no_text_of_dropped_rows(tmp_path: Path) -> None:
    rows = pa.table({"span_id": ["1", "2", "3"], "name": TEXTS.slice(0, 3), "attributes": MAPS}).slice(1)
    path = tmp_path / "rows.parquet"
    assert write_parquet([rows, rows], path) == 4
    read = pq.read_table(path)
    assert read.to_pylist() == 2 * rows.to_pylist()
    assert read.schema.field("name").type == pa.string()
    assert b"secret" not in path.read_bytes()
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).statistics is None
