"""Jobs of several operators or logs in parts, each from the checkpoint of the part before, against the whole."""

from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import scripted_logs
from models.memory_disk import MEMORY
from models.resumed_jobs import (
    ONE_LOG,
    READ_SEVERAL_TIMES,
    TWO_LOGS,
    EvenTimestamps,
    Logs,
    entries_of,
    not_amid_an_arrival,
    tables_of,
)
from models.scripted_logs import ROWS

from flinkcore.common import Duration, WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment

Outputs = dict[str | None, dict[Any, list[Any]]]

STRATEGIES = st.tuples(
    st.sampled_from([0, 2, 15, "generator", "percentile", "event", "tick"]),
    st.sampled_from([None, None, 3, 40]),
)


def strategy_of(kind: int | str, idleness: int | None) -> WatermarkStrategy:
    if kind == "generator":
        strategy = WatermarkStrategy.for_generator(EvenTimestamps)
    elif kind == "percentile":
        strategy = WatermarkStrategy.for_percentile_out_of_orderness(Duration.of_millis(2), 0.8, 6)
    else:
        return scripted_logs.strategy_of(kind, idleness)
    return strategy if idleness is None else strategy.with_idleness(Duration.of_millis(idleness))


def outputs_of(
    job: Callable[[Logs], DataStream],
    tables: list[pa.Table],
    strategies: list[WatermarkStrategy],
    interval: int,
    has_splits: bool,
    parallelism: int,
    **checkpoints: Any,
) -> Outputs:
    """The rows of each output in their order, by key, or by the first column of what a function gives."""
    env = StreamExecutionEnvironment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(interval)
    logs = [
        env.from_event_log(
            table, timestamp="ts", arrival="at", split="split" if has_splits else None
        ).assign_timestamps_and_watermarks(strategy)
        for table, strategy in zip(tables, strategies, strict=True)
    ]
    result = job(logs).execute(**checkpoints)
    outputs: Outputs = {}
    plan = result._plan  # type: ignore[attr-defined]
    for tag in (None, *plan.side_outputs()):
        table = (result if tag is None else result.get_side_output(tag)).to_arrow()
        keys = [key for key in plan.keys if key in table.column_names] or table.column_names[:1]
        by_key = outputs[None if tag is None else tag.tag_id] = defaultdict(list)
        for row in table.to_pylist():
            by_key[tuple(row[key] for key in keys)].append(row)
    return outputs


@pytest.mark.parametrize("job", [*ONE_LOG, *TWO_LOGS], ids=lambda job: job.__name__)
@settings(deadline=None, max_examples=12)
@given(
    rows=st.lists(
        st.tuples(ROWS, st.integers(0, 1)).map(lambda row: (*row[0], row[1])), min_size=1, max_size=40
    ),
    cuts=st.lists(st.integers(0, 40), min_size=1, max_size=2),
    strategies=st.tuples(STRATEGIES, STRATEGIES),
    interval=st.sampled_from([0, 1, 5, 50]),
    has_splits=st.booleans(),
    parallelism=st.lists(st.sampled_from([1, 2, 7]), min_size=4, max_size=4),
)
def test_a_job_goes_on_as_if_its_logs_had_not_been_cut(
    job: Callable[[Logs], DataStream],
    rows: list[tuple[Any, ...]],
    cuts: list[int],
    strategies: tuple[Any, Any],
    interval: int,
    has_splits: bool,
    parallelism: list[int],
) -> None:
    logs = 2 if job in TWO_LOGS else 1
    of_logs = [strategy_of(*strategy) for strategy in strategies[:logs]]
    entries = entries_of(rows, logs, has_splits)
    first = len(entries) - len(rows)
    bounds = [0, *sorted(first + cut % (len(rows) + 1) for cut in cuts), len(entries)]
    if job in READ_SEVERAL_TIMES:
        bounds = [not_amid_an_arrival(entries, bound) for bound in bounds]
    whole = outputs_of(job, tables_of(entries, logs), of_logs, interval, has_splits, parallelism[-1])
    found: dict[Any, dict[Any, list[Any]]] = {tag: defaultdict(list) for tag in whole}
    with TemporaryDirectory(dir=MEMORY) as folder:
        for number, (start, stop) in enumerate(pairwise(bounds)):
            checkpoints: dict[str, Any] = {}
            if number > 0:
                checkpoints["restore_from"] = Path(folder, str(number - 1))
            if number < len(cuts):
                checkpoints["stop_with_checkpoint"] = Path(folder, str(number))
            part = outputs_of(
                job,
                tables_of(entries[start:stop], logs),
                of_logs,
                interval,
                has_splits,
                parallelism[number],
                **checkpoints,
            )
            for tag, by_key in part.items():
                for key, values in by_key.items():
                    found[tag][key] += values
    assert found == whole
