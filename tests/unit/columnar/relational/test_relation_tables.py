"""Tables of relational state: what a checkpoint may hold, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from equipment.timelines import timeline_of

from flinkcore._native.deduplication import DeduplicationKernel
from flinkcore._native.key_dictionary import KeyDictionary
from flinkcore._native.timers import TimerHeap
from flinkcore._native.top_rows import TopKernel
from flinkcore.checkpoint.checkpoint_table import CheckpointTable
from flinkcore.columnar.relational.numbered_rows import NumberedRows
from flinkcore.columnar.relational.relation_tables import RelationTables
from flinkcore.errors import SchemaError

SCHEMA = pa.schema({"k": pa.string(), "n": pa.int64()})
ROWS = pa.record_batch({"k": ["a", "b", "a"], "n": [5, 7, 3]}, schema=SCHEMA)


class Operator:
    """The first row of each key by time, with its state in tables."""

    def __init__(self, table_rows: int = 2) -> None:
        self.keys = KeyDictionary(SCHEMA, ["k"])
        self.timers = TimerHeap()
        self.kept = NumberedRows(SCHEMA)
        self.kernel = DeduplicationKernel(
            self.timers,
            timeline_of([10], [100], ends=True).steps,
            steps_done=0,
            result_limit=10,
            keeps_last=False,
            by_time=True,
            changes=False,
        )
        self.tables = RelationTables(
            self.kernel, self.keys, {"timers": self.timers}, [self.kept], lambda rows, columns: {}, table_rows
        )

    def filled(self) -> Operator:
        ids = self.keys.ids(ROWS)
        first = self.kept.add(ROWS)
        times = np.array([50, 200, 40])
        rows = first + np.arange(3)
        self.kernel.process(ids, self.keys.key_group(ids), None, rows, times, np.zeros(3, np.int64))
        return self

    def results(self) -> list[Any]:
        self.kernel.finish()
        return self.kept.take(self.kernel.take().left).to_pylist()


def test_state_moves_to_another_operator_by_value() -> None:
    expected = [{"k": "a", "n": 3}, {"k": "b", "n": 7}]
    assert Operator().filled().results() == expected
    for tables in ("whole", "parts"):
        other = Operator()
        other.tables.restore(getattr(Operator().filled().tables, tables)())
        other.kernel._check()
        assert other.results() == expected


def changed(name: str, **columns: Any) -> list[tuple[str, CheckpointTable]]:
    """The tables of an operator, one of them with other columns."""
    tables = []
    for each, table in Operator().filled().tables.whole():
        batch = table.batch
        if each == name:
            for column, values in columns.items():
                number = batch.schema.get_field_index(column)
                batch = batch.set_column(number, column, values)
        tables.append((each, CheckpointTable(batch, {}, {})))
    return tables


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([("other", CheckpointTable(ROWS, {}, {}))], "the table 'other', and this operator has kept, timers"),
        (changed("kept", timestamp=pa.array([1, 2], pa.int32())), "have the columns .* timestamp: int32"),
        (changed("kept", timestamp=pa.array([1, None])), "column 'timestamp' of the rows 'kept' has nulls"),
        (
            changed("kept", key_group=pa.array([1, 1], pa.int32())),
            "in the key group 1, which is not that of the key",
        ),
        (changed("kept", **{"key.k": pa.array(["a", "a"])}), "row 1 of the state, of the key .*|there twice"),
        (changed("timers", timestamp_ms=pa.array([40, 40])), ""),
    ],
)
def test_what_is_not_a_state_of_the_operator_is_refused(tables: Any, message: str) -> None:
    operator = Operator()
    if not message:  # forged timers fire rows at other times, or none
        operator.tables.restore(tables)
        assert len(operator.results()) == 2
        return
    with pytest.raises(SchemaError, match=message):
        operator.tables.restore(tables)


def test_a_timer_without_its_row_fires_nothing() -> None:
    timers = [(name, table) for name, table in Operator().filled().tables.whole() if name == "timers"]
    operator = Operator()
    operator.tables.restore(timers)
    assert operator.results() == []
    heap = TimerHeap()
    heap.add(5, 3, 0, 6)
    top = TopKernel(
        heap,
        timeline_of([10], [100], ends=True).steps,
        steps_done=0,
        result_limit=10,
        n=1,
        skip=0,
        rank="row_number",
        n_words=1,
        has_tails=False,
        latest_first=False,
        ranks_shown=True,
        changes=False,
        of_windows=True,
    )
    assert top.finish()
    assert len(top.take().left) == 0


@pytest.mark.parametrize("key", [-1, 2, 1 << 31, 1 << 40])
def test_a_timer_of_a_key_that_is_not_there_does_not_fire(key: int) -> None:
    operator = Operator()
    operator.timers.add(30, key, 0)
    operator.filled()
    assert len(operator.results()) == 2
    assert operator.kernel.counts()["event_time_timers"] == 2
