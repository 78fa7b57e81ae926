"""Nested fields by dotted names: the rows of the same log whose fields are columns, whatever it is stored in."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jobs.nested_logs import JOBS, SCHEMA, SETTINGS, flattened, log_of, nested_rows, outputs
from pyarrow import feather

from flinkcore.datastream import StreamExecutionEnvironment


def in_memory(rows: pa.Table, folder: Path) -> tuple[Any, dict[str, Any]]:
    return rows, {}


def in_parquet(rows: pa.Table, folder: Path) -> tuple[Any, dict[str, Any]]:
    path = folder / "log.parquet"
    pq.write_table(rows, path, row_group_size=7)
    return str(path), {}


def in_two_files(rows: pa.Table, folder: Path) -> tuple[Any, dict[str, Any]]:
    """Store the first rows, as far as none has a note, without that field."""
    path = folder / "grown"
    path.mkdir(exist_ok=True)
    notes = [(row["payload"] or {}).get("after") or {} for row in rows.to_pylist()]
    cut = next((at for at, after in enumerate(notes) if after.get("note")), len(notes))
    payload, first = SCHEMA.field("payload").type, rows.slice(0, cut)
    after = payload.field("after")
    narrow = pa.struct([each for each in after.type if each.name != "note"])
    without = SCHEMA.set(
        1,
        pa.field(
            "payload", pa.struct([after.with_type(narrow) if each == after else each for each in payload])
        ),
    )
    pq.write_table(pa.Table.from_pylist(first.to_pylist(), without), path / "1.parquet")
    pq.write_table(rows.slice(cut), path / "2.parquet")
    return str(path), {}


def in_arrow_file(rows: pa.Table, folder: Path) -> tuple[Any, dict[str, Any]]:
    path = folder / "log.arrow"
    feather.write_feather(rows, path, chunksize=7)
    return str(path), {}


def in_json(rows: pa.Table, folder: Path) -> tuple[Any, dict[str, Any]]:
    if not rows.num_rows:  # a file without bytes is warned of
        return rows, {}
    path = folder / "log.json"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows.to_pylist()))
    return str(path), {"schema": SCHEMA}


STORED = {
    store.__name__.removeprefix("in_"): store
    for store in (in_memory, in_parquet, in_two_files, in_arrow_file, in_json)
}


@pytest.mark.parametrize("job", JOBS)
@given(
    drawn=nested_rows(),
    store=st.sampled_from(list(STORED.values())),
    of_log=st.sampled_from(SETTINGS),
    threads=st.sampled_from([1, 2]),
)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_job_over_nested_fields_gives_the_rows_of_one_over_columns(
    tmp_path: Path,
    job: str,
    drawn: list[dict[str, Any]],
    store: Callable[[pa.Table, Path], tuple[Any, dict[str, Any]]],
    of_log: Mapping[str, Any],
    threads: int,
) -> None:
    rows = log_of(drawn)
    log, how = store(rows, tmp_path)

    nested = outputs(StreamExecutionEnvironment().set_parallelism(threads), log, job, of_log, **how)

    assert nested == outputs(StreamExecutionEnvironment(), flattened(rows), job, of_log)
