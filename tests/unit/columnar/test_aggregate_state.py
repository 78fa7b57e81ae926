"""Aggregates of keys in functions over batches."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import flinkcore as fc
from flinkcore.datastream import KeyedBatchProcessFunction, KeyedProcessFunction, StreamExecutionEnvironment
from flinkcore.errors import CheckpointError, SchemaError, UserCodeError

SCHEMA = pa.schema({"ts": pa.int64(), "n": pa.int64(), "total": pa.int64()})
AGGREGATES = {"n": fc.count(), "total": fc.sum_("v")}
N = 60
LOG = pa.table(
    {
        "ts": np.arange(N),
        "k": [f"k{number * 7 % 5}" for number in range(N)],
        "v": [None if number % 11 == 3 else number for number in range(N)],
    }
)


class Running(KeyedBatchProcessFunction):
    """The aggregates of a key up to each row; some times make it begin anew."""

    one_element_per_key = True

    def __init__(self, aggregates: Any = AGGREGATES) -> None:
        self.aggregates = aggregates

    def open(self, runtime_context: Any) -> None:
        self.totals = runtime_context.get_column_aggregate_state("totals", self.aggregates)

    def process_batch(self, elements: Any, ctx: Any) -> Iterator[Any]:
        self.totals.add(elements.key_ids, elements.batch)
        found = self.totals.get(elements.key_ids)
        yield {"ts": elements.timestamps, "n": found["n"], "total": found["total"]}
        self.totals.clear(elements.key_ids[elements.timestamps % 17 == 0])


class RowFunction(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        runtime_context.get_column_aggregate_state("totals", AGGREGATES)

    def process_element(self, value: Any, ctx: Any) -> None:
        pass


def keyed(log: pa.Table = LOG, parallelism: int = 3) -> Any:
    environment = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    stream = environment.from_event_log(log, timestamp="ts", timestamp_unit="ms")
    strategy = fc.WatermarkStrategy.for_monotonous_timestamps()
    return stream.assign_timestamps_and_watermarks(strategy).key_by("k")


def rows_of(result: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in result.to_pylist())


def expected() -> list[tuple[Any, ...]]:
    held: dict[str, list[Any]] = {}
    found = []
    for row in LOG.to_pylist():
        values = held.setdefault(row["k"], [])
        values.append(row["v"])
        numbers = [value for value in values if value is not None]
        found.append((row["ts"], len(values), sum(numbers) if numbers else None))
        if row["ts"] % 17 == 0:
            values.clear()
    return sorted(found)


def test_aggregates_of_a_key_are_those_of_its_rows_since_it_was_cleared() -> None:
    assert rows_of(keyed().process(Running(), SCHEMA).to_arrow()) == expected()


def test_aggregates_are_part_of_a_checkpoint(tmp_path: Path) -> None:
    before = keyed(LOG.slice(0, 31)).process(Running(), SCHEMA).uid("totals")
    found = rows_of(before.execute(stop_with_checkpoint=tmp_path / "cut").to_arrow())
    after = keyed(LOG.slice(31), parallelism=2).process(Running(), SCHEMA).uid("totals")
    found += rows_of(after.execute(restore_from=tmp_path / "cut").to_arrow())
    assert sorted(found) == expected()


def test_aggregates_of_a_checkpoint_are_not_taken_for_others(tmp_path: Path) -> None:
    before = keyed(LOG.slice(0, 31)).process(Running(), SCHEMA).uid("totals")
    before.execute(stop_with_checkpoint=tmp_path / "cut").to_arrow()
    others = {"n": fc.count(), "total": fc.max_("v")}
    after = keyed(LOG.slice(31)).process(Running(others), SCHEMA).uid("totals")
    with pytest.raises(
        CheckpointError, match="rows of the state 'totals' in the checkpoint are not those of this job"
    ):
        after.execute(restore_from=tmp_path / "cut").to_arrow()


def test_aggregates_name_columns_of_the_elements() -> None:
    with pytest.raises((SchemaError, UserCodeError), match="'w'"):
        keyed().process(Running({"n": fc.count(), "total": fc.sum_("w")}), SCHEMA).to_arrow()


def test_a_function_of_elements_has_no_aggregates_of_columns() -> None:
    with pytest.raises(
        UserCodeError, match="column aggregate state 'totals' is for a KeyedBatchProcessFunction"
    ):
        keyed().process(RowFunction(), SCHEMA).to_arrow()
