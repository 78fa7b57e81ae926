"""Runs with checkpoints that a scheduler repeats add their rows to tables once."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from equipment.iceberg_tables import catalog_at
from jobs.nightly import MIDNIGHT_MS, job, sorted_rows, two_days

LOG = two_days(600)
ALREADY = "has the rows of this run already, which are not added again"


def run(folder: Path, number: int, write: Any) -> None:
    """Run the job up to midnight, or from there to the end of the log, with a checkpoint."""
    until = [MIDNIGHT_MS, MIDNIGHT_MS + 400_000][number]
    result = job(LOG, until=until).execute(
        restore_from=folder / "0" if number else None, stop_with_checkpoint=folder / str(number)
    )
    write(result)


def of_both(folder: Path) -> list[dict[str, Any]]:
    found: list[pa.Table] = []
    for number in (0, 1):
        run(folder, number, lambda result: found.append(result.to_arrow()))
    return sorted_rows(pa.concat_tables(found))


def test_a_repeated_run_adds_nothing_to_a_delta_table_until_that_is_restored(tmp_path: Path) -> None:
    expected = of_both(tmp_path / "expected")
    table = str(tmp_path / "table")

    def write(result: Any) -> None:
        result.write_delta(table, mode="append", partition_by="day")

    def rows() -> list[dict[str, Any]]:
        return sorted_rows(pa.table(deltalake.DeltaTable(table).to_pyarrow_table()))

    for number in (0, 1):
        run(tmp_path / "run", number, write)
    assert [{**row, "day": str(row["day"])} for row in rows()] == [
        {**row, "day": str(row["day"])} for row in expected
    ]
    for number in (0, 1):
        with pytest.warns(UserWarning, match=ALREADY):
            run(tmp_path / "run", number, write)
    assert len(rows()) == len(expected)
    assert len(list((tmp_path / "table").glob("results-*"))) == 2
    deltalake.DeltaTable(table).restore(0)
    assert len(rows()) < len(expected)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*not added again")
        run(tmp_path / "run", 1, write)
    assert len(rows()) == len(expected)


def test_a_repeated_run_adds_nothing_to_an_iceberg_table_until_that_is_rolled_back(tmp_path: Path) -> None:
    expected = of_both(tmp_path / "expected")
    catalog = catalog_at(tmp_path)
    table = catalog.create_table("logs.hourly", job(LOG).execute().to_arrow().schema)

    def write(result: Any) -> None:
        result.write_iceberg(table, mode="append")

    for number in (0, 1):
        run(tmp_path / "run", number, write)
    assert table.refresh().scan().to_arrow().num_rows == len(expected)
    with pytest.warns(UserWarning, match=ALREADY):
        run(tmp_path / "run", 1, write)
    assert table.refresh().scan().to_arrow().num_rows == len(expected)
    first = table.history()[0].snapshot_id
    table.manage_snapshots().set_current_snapshot(first).commit()
    run(tmp_path / "run", 1, write)
    assert table.refresh().scan().to_arrow().num_rows == len(expected)


def test_runs_without_a_checkpoint_to_stop_with_add_their_rows_each_time(tmp_path: Path) -> None:
    for _ in range(2):
        job(LOG).execute().write_delta(tmp_path / "table", mode="append")
    found = deltalake.DeltaTable(str(tmp_path / "table")).to_pyarrow_table().num_rows
    assert found == 2 * job(LOG).execute().to_arrow().num_rows
