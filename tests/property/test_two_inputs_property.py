"""Replays of two connected logs against the runtime's operators, millisecond by millisecond."""

from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from equipment.example_counts import examples
from equipment.small_batches import read_in_batches_of
from hypothesis import given, settings
from hypothesis import strategies as st
from jobs.scripted_logs import (
    RESULTS,
    ROWS,
    SIDES,
    WATERMARKS,
    Watermarks,
    by_key,
    elements_of,
    emitted_by,
    events_of,
    strategy_of,
    table_of,
)
from jobs.two_inputs import (
    RULES,
    ScriptedCo,
    ScriptedRules,
    Telling,
    TellingRules,
    happenings,
    operator_run,
    replay_models,
    union_run,
)
from models.process_replay import Scripted
from models.watermarks import ReplayModel

from flinkcore.columnar.local import partition_threads
from flinkcore.columnar.stages import function_stage, result_batches
from flinkcore.common import OutputTag, Row
from flinkcore.datastream import DataStream, StreamExecutionEnvironment

FUNCTIONS = [ScriptedCo, ScriptedRules, Telling, TellingRules]


def second_table(rows: list[tuple[Any, ...]], batch_rows: int) -> pa.Table:
    """The columns in another order, and the key by another name."""
    table = table_of(rows, batch_rows).select(["split", "actions", "user", "ts", "number", "at"])
    return table.rename_columns(["split", "actions", "who", "ts", "number", "at"])


def joined(function: Any, streams: list[DataStream]) -> DataStream:
    keyed = isinstance(function, ScriptedCo | ScriptedRules)
    first, second = streams
    kind: dict[str, Any] = {
        "side_outputs": [OutputTag("side", SIDES)],
        "timestamp_column": "record_time",
    }
    if isinstance(function, ScriptedRules | TellingRules):
        first = first.key_by("user") if keyed else first
        return first.connect(second.broadcast(RULES)).process(function, RESULTS, **kind)
    connected = first.connect(second)
    return (connected.key_by("user", "who") if keyed else connected).process(function, RESULTS, **kind)


def modelled(
    tables: list[pa.Table],
    bounds: tuple[Watermarks, ...],
    idlenesses: tuple[int | None, ...],
    interval: int,
) -> tuple[list[ReplayModel], list[list[Row]]]:
    models = replay_models([events_of(table) for table in tables], bounds, idlenesses, interval)
    return models, [elements_of(table) for table in tables]


@pytest.mark.parametrize("kind", FUNCTIONS)
@settings(deadline=None, max_examples=examples(20))
@given(
    rows=st.tuples(st.lists(ROWS, max_size=25), st.lists(ROWS, max_size=25)),
    bounds=st.tuples(*[st.sampled_from(WATERMARKS)] * 2),
    idlenesses=st.tuples(*[st.sampled_from([None, 1, 10, 60])] * 2),
    interval=st.sampled_from([1, 5, 50]),
    parallelism=st.sampled_from([1, 3]),
    batch_rows=st.sampled_from([1, 3, 100]),
    slice_rows=st.sampled_from([1, 4, 4096]),
    result_rows=st.sampled_from([1, 3, 1 << 15]),
)
def test_connected_logs_give_what_the_operator_gives_element_by_element(
    kind: Any,
    rows: tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]],
    bounds: tuple[Watermarks, Watermarks],
    idlenesses: tuple[int | None, int | None],
    interval: int,
    parallelism: int,
    batch_rows: int,
    slice_rows: int,
    result_rows: int,
) -> None:
    tables = [table_of(rows[0], batch_rows), second_table(rows[1], batch_rows)]
    env = StreamExecutionEnvironment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(interval)
    read_in_batches_of(batch_rows, env)
    streams = [
        env.from_event_log(
            table, timestamp="ts", integer_times=True, arrival="at", split="split"
        ).assign_timestamps_and_watermarks(strategy_of(bound, idleness))
        for table, bound, idleness in zip(tables, bounds, idlenesses, strict=True)
    ]
    with (
        patch.object(function_stage, "SLICE_ROWS", slice_rows),
        patch.object(result_batches, "BATCH_ROWS", result_rows),
        patch.object(partition_threads, "RESULTS_AHEAD", result_rows),
    ):
        result = joined(kind(), streams).execute()
        replayed = emitted_by(result)
    models, elements = modelled(tables, bounds, idlenesses, interval)
    expected = operator_run(kind(), happenings(models, elements))
    assert by_key(replayed) == by_key(expected)
    assert result.report.processed == len(rows[0]) + len(rows[1])
    if parallelism == 1:
        assert [entry for entry in replayed if entry[0] is None] == [
            entry for entry in expected if entry[0] is None
        ]


@settings(deadline=None, max_examples=examples(25))
@given(
    rows=st.tuples(*[st.lists(ROWS, max_size=20)] * 3),
    bounds=st.tuples(*[st.sampled_from(WATERMARKS)] * 3),
    idlenesses=st.tuples(*[st.sampled_from([None, 1, 10, 60])] * 3),
    interval=st.sampled_from([1, 5, 50]),
    parallelism=st.sampled_from([1, 3]),
    batch_rows=st.sampled_from([1, 3, 100]),
)
def test_a_union_gives_what_the_operator_behind_a_valve_gives(
    rows: tuple[list[tuple[Any, ...]], ...],
    bounds: tuple[Watermarks, ...],
    idlenesses: tuple[int | None, ...],
    interval: int,
    parallelism: int,
    batch_rows: int,
) -> None:
    tables = [table_of(of_log, batch_rows) for of_log in rows]
    env = StreamExecutionEnvironment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(interval)
    read_in_batches_of(batch_rows, env)
    first, *others = (
        env.from_event_log(
            table, timestamp="ts", integer_times=True, arrival="at", split="split"
        ).assign_timestamps_and_watermarks(strategy_of(bound, idleness))
        for table, bound, idleness in zip(tables, bounds, idlenesses, strict=True)
    )
    result = (
        first.union(*others)
        .key_by("user")
        .process(Scripted(), RESULTS, side_outputs=[OutputTag("side", SIDES)], timestamp_column="record_time")
        .execute()
    )
    replayed = emitted_by(result)
    expected = union_run(Scripted(), lambda row: row.user, *modelled(tables, bounds, idlenesses, interval))
    assert by_key(replayed) == by_key(expected)
    assert result.report.processed == sum(map(len, rows))
