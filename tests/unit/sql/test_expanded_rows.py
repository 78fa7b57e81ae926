"""Rows of plans that become several, with UNNEST and sessions, and processing times, which are arrivals."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from equipment.small_batches import read_in_batches_of
from jobs.sql_scenarios import column_of, environment_of, golden, stream_of

from flinkcore._internal.values.memory_limits import BATCH_BYTES
from flinkcore.columnar.stages.expand_stage import ExpandStage
from flinkcore.columnar.stages.stage_output import StageOutput
from flinkcore.datastream import LogStream, StreamExecutionEnvironment
from flinkcore.errors import UnsupportedOperationError
from flinkcore.sql.nodes.expansions import Elements
from flinkcore.sql.nodes.expansions import expanded as expanded_stream
from flinkcore.sql.types.logical_types import LogicalType, Root, type_of

ZONED = (
    "zone-agg_h_berlin_0_0_24",
    "zone-hrank_berlin_0_0_24",
    "zone-aggrank_berlin_0_0_24",
    "zone-stvf_berlin_0_0_24",
)

INT = LogicalType(Root.INT)
TEXT = LogicalType(Root.VARCHAR)


def expanded(column: pa.Array, *names: str, **settings: bool) -> list[tuple[Any, ...]]:
    """Return the row and the values of each element of a column."""
    kinds = [TEXT if name == "text" else INT for name in names]
    elements = Elements("c", tuple(zip(names, kinds, strict=True)), **settings)
    batch = pa.RecordBatch.from_arrays([column], ["c"])
    ((rows, columns),) = elements.expand(batch, BATCH_BYTES)
    assert [column.type for column in columns] == [field.type for field in elements.fields]
    return list(zip(rows.tolist(), *(column.to_pylist() for column in columns), strict=True))


def test_each_element_of_a_list_is_a_row() -> None:
    lists = pa.array([[1, 2], [], None, [None]], pa.list_(pa.int32()))
    assert expanded(lists, "n") == [(0, 1), (0, 2), (3, None)]
    assert expanded(lists, "n", keeps_rows=True) == [(0, 1), (0, 2), (1, None), (2, None), (3, None)]
    assert expanded(lists, "n", "number", numbered=True) == [(0, 1, 1), (0, 2, 2), (3, None, 1)]


def test_a_slice_of_a_column_has_its_own_elements() -> None:
    lists = pa.array([[9], [1, 2], [3], [9]], pa.list_(pa.int32()))
    assert expanded(lists.slice(1, 2), "n", "number", numbered=True) == [(0, 1, 1), (0, 2, 2), (1, 3, 1)]
    maps = pa.array([[("x", 9)], [("a", 1)], [("b", 2), ("c", 3)]], pa.map_(pa.string(), pa.int32()))
    assert expanded(maps.slice(1), "text", "n") == [(0, "a", 1), (1, "b", 2), (1, "c", 3)]


def test_fields_of_rows_are_columns_and_rows_that_are_null_are_left_out() -> None:
    kind = pa.struct([("n", pa.int32()), ("text", pa.string())])
    rows = pa.array([[{"n": 1, "text": "a"}, None], [{"n": None, "text": None}]], pa.list_(kind))
    assert expanded(rows, "n", "text") == [(0, 1, "a"), (1, None, None)]


def test_an_element_of_a_multiset_is_as_many_rows() -> None:
    multiset = pa.array([[("a", 2), ("b", 1)]], pa.map_(pa.string(), pa.int32()))
    assert expanded(multiset, "text", repeated=True) == [(0, "a"), (0, "a"), (0, "b")]
    numbered = expanded(multiset, "text", "number", repeated=True, numbered=True)
    assert numbered == [(0, "a", 1), (0, "a", 2), (0, "b", 3)]


@pytest.mark.parametrize("most_bytes", [1, 4_000, BATCH_BYTES])
def test_rows_that_become_many_come_in_batches_of_few_bytes(
    most_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists = [[1], list(range(60)), [], [2, 3], None, list(range(40))]
    rows = {"c": pa.array(lists, pa.list_(pa.int32())), "text": ["a", "b" * 500, "c", "d", "e", "f"]}
    table = pa.table({**rows, "ts": pa.array(range(6), pa.int64())})
    given: list[pa.RecordBatch] = []
    process = ExpandStage.process

    def watched(stage: ExpandStage, events: Any, rows: Any) -> Iterator[StageOutput]:
        for output in process(stage, events, rows):
            given.extend(output.batches)
            yield output

    monkeypatch.setattr(ExpandStage, "process", watched)
    environment = StreamExecutionEnvironment().set_parallelism(1)
    read_in_batches_of(6, environment, most_bytes)
    log = environment.from_event_log(table, timestamp="ts", timestamp_unit="ms").select("c", "text")
    expanded_stream(log, Elements("c", (("n", INT),))).to_arrow()
    found = [(row["c"], row["n"]) for batch in given for row in batch.to_pylist()]
    assert found == [(each, n) for each in lists for n in each or ()]
    for batch in given:
        assert batch.num_rows == 1 or batch.nbytes <= most_bytes + batch.column("n").nbytes


def without_emission(rows: pa.Table) -> list[str]:
    return sorted(map(str, rows.to_pylist()))


@pytest.mark.parametrize("name", ["nodes-unnest_win", "nodes-over_mix", "nodes-agg_s_q", *ZONED])
def test_rows_are_the_same_with_little_memory(name: str) -> None:
    scenario = golden(name)
    wanted = stream_of(scenario, environment_of(scenario), None).to_arrow()
    environment = environment_of(scenario).set_parallelism(2)
    environment.configure({"taskmanager.memory.managed.size": "1 b"})
    assert without_emission(stream_of(scenario, environment, None).to_arrow()) == without_emission(wanted)
    assert wanted.num_rows


@pytest.mark.parametrize("name", ["nodes-unnest_win", "nodes-over_mix", "sort-2", *ZONED])
@pytest.mark.parametrize("cut", [1, 3, 10])
def test_a_job_stops_and_resumes(name: str, cut: int, tmp_path: Path) -> None:
    scenario = golden(name)
    given = scenario["tables"]["f"]
    table = pa.table(
        {
            column: column_of([row[number] for row in given["rows"]], type_of(kind).with_nullable(True))
            for number, (column, kind) in enumerate(given["columns"])
        }
        | {"step": range(len(given["rows"]))}
    )

    def job(rows: pa.Table) -> LogStream:
        environment = environment_of(scenario)
        log = environment.from_event_log(rows, timestamp=pc.scalar(0), timestamp_unit="ms", arrival="step")
        return environment.from_plan(scenario["plan"], {"f": log}, settings=scenario["settings"])

    cut = min(cut, table.num_rows - 1)
    whole = job(table).to_arrow()
    first = job(table.slice(0, cut)).execute(stop_with_checkpoint=tmp_path / "cp").to_arrow()
    rest = job(table.slice(cut)).execute(restore_from=tmp_path / "cp").to_arrow()
    assert without_emission(pa.concat_tables([first, rest])) == without_emission(whole)
    assert rest.num_rows


def test_windows_of_processing_time_need_arrivals_and_one_clock() -> None:
    plan = golden("nodes-agg_t_q")["plan"]
    table = pa.table({"k": ["a"], "v": [1], "x": [1.0], "ts": [datetime(2024, 1, 1)], "at": [1], "part": [0]})
    environment = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(UnsupportedOperationError, match=r"its log has none, or not in ms. Give from_event"):
        environment.from_plan(plan, {"f": table})
    log = environment.from_event_log(table, timestamp="ts", arrival="at", split="part")
    with pytest.raises(UnsupportedOperationError, match="the splits of its log have a clock each"):
        environment.from_plan(plan, {"f": log})


def test_processing_time_without_arrivals_is_refused_where_a_row_has_it() -> None:
    plan = golden("nodes-select")["plan"]
    table = pa.table({"k": ["a"], "v": [1], "x": [1.0], "ts": [datetime(2024, 1, 1)]})
    environment = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(UnsupportedOperationError, match="the processing time of its rows is not known"):
        environment.from_plan(plan, {"f": table})


def test_a_window_of_processing_time_that_has_not_ended_has_no_result() -> None:
    scenario = golden("nodes-agg_t_q")
    last = max(step["pt"] for step in scenario["arrival"] if isinstance(step, dict))
    end = datetime(1970, 1, 1) + timedelta(milliseconds=last)
    result = stream_of(scenario, environment_of(scenario)).to_arrow()
    assert result.num_rows
    assert all(row["window_end"] <= end for row in result.to_pylist())
