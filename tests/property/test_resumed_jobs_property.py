"""Jobs of several operators or logs in parts, each from the checkpoint of the part before, against the whole.

Some parts have little memory, so that their state spills.
"""

from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from equipment.example_counts import examples
from equipment.memory_disk import MEMORY
from equipment.sampling import sampled
from equipment.small_batches import read_in_batches_of
from hypothesis import given, settings
from hypothesis import strategies as st
from jobs import scripted_logs
from jobs.resumed_jobs import (
    ONE_LOG,
    READ_SEVERAL_TIMES,
    TWO_LOGS,
    EvenTimestamps,
    Logs,
    at_the_last_arrival,
    entries_of,
    not_amid_an_arrival,
    tables_of,
)
from jobs.scripted_logs import ROWS

from flinkcore.common import Configuration, Duration, WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment

Outputs = dict[str | None, dict[Any, list[Any]]]

STRATEGIES = st.tuples(
    st.sampled_from([0, 2, 15, "generator", "percentile", "event", "tick"]),
    st.sampled_from([None, None, 3, 40]),
)


ALIGNMENTS = st.tuples(st.sampled_from([0, 0, 5, 40]), st.sampled_from([1, 3, 10, 50]))


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
    memory: int | None = None,
    **checkpoints: Any,
) -> Outputs:
    """The rows of each output in their order, by key, or by the first column of what a function gives."""
    env = StreamExecutionEnvironment().set_parallelism(parallelism).set_max_parallelism(8)
    if memory is not None:
        env.configure(Configuration().set_string("taskmanager.memory.managed.size", f"{memory} b"))
        read_in_batches_of(7, env)
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
@settings(deadline=None, max_examples=examples(4))
@given(
    rows=st.lists(
        st.tuples(ROWS, st.integers(0, 1)).map(lambda row: (*row[0], row[1])), min_size=1, max_size=40
    ),
    cuts=st.lists(st.integers(0, 40), min_size=1, max_size=2),
    strategies=st.tuples(STRATEGIES, STRATEGIES),
    interval=st.sampled_from([0, 1, 5, 50]),
    has_splits=st.booleans(),
    parallelism=st.lists(st.sampled_from([1, 2, 7]), min_size=4, max_size=4),
    memory=st.sampled_from([None, 0, 20_000]),
)
def test_a_job_goes_on_as_if_its_logs_had_not_been_cut(
    job: Callable[[Logs], DataStream],
    rows: list[tuple[Any, ...]],
    cuts: list[int],
    strategies: tuple[Any, Any],
    interval: int,
    has_splits: bool,
    parallelism: list[int],
    memory: int | None,
) -> None:
    logs = 2 if job in TWO_LOGS else 1
    of_logs = [strategy_of(*strategy) for strategy in strategies[:logs]]
    check_parts(job, rows, cuts, of_logs, interval, has_splits, parallelism, memory)


@pytest.mark.parametrize("job", sampled([*ONE_LOG, *TWO_LOGS], 2), ids=lambda job: job.__name__)
@settings(deadline=None, max_examples=examples(3))
@given(
    rows=st.lists(
        st.tuples(ROWS, st.integers(0, 1)).map(lambda row: (*row[0], row[1])), min_size=1, max_size=40
    ),
    cuts=st.lists(st.integers(0, 40), min_size=1, max_size=2),
    bounds=st.tuples(*[st.sampled_from([0, 2, 15])] * 2),
    idleness=st.sampled_from([None, None, 3, 40]),
    alignments=st.tuples(ALIGNMENTS, st.none() | ALIGNMENTS),
    interval=st.sampled_from([1, 5, 5, 50]),
    parallelism=st.lists(st.sampled_from([1, 2, 7]), min_size=4, max_size=4),
    memory=st.sampled_from([None, 0, 20_000]),
)
def test_a_job_whose_splits_are_aligned_goes_on_as_if_its_logs_had_not_been_cut(
    job: Callable[[Logs], DataStream],
    rows: list[tuple[Any, ...]],
    cuts: list[int],
    bounds: tuple[int, int],
    idleness: int | None,
    alignments: tuple[tuple[int, int], tuple[int, int] | None],
    interval: int,
    parallelism: list[int],
    memory: int | None,
) -> None:
    of_logs = []
    for number in range(2 if job in TWO_LOGS else 1):
        strategy = strategy_of(bounds[number], idleness)
        alignment = alignments[number]
        if alignment is not None:
            strategy = strategy.with_watermark_alignment(
                f"log {number}", Duration.of_millis(alignment[0]), Duration.of_millis(alignment[1])
            )
        of_logs.append(strategy)
    if job in READ_SEVERAL_TIMES:
        of_logs = [strategy_of(*each) for each in zip(bounds, [idleness] * 2, strict=True)][: len(of_logs)]
    check_parts(job, rows, cuts, of_logs, interval, True, parallelism, memory)


def check_parts(
    job: Callable[[Logs], DataStream],
    rows: list[tuple[Any, ...]],
    cuts: list[int],
    of_logs: list[WatermarkStrategy],
    interval: int,
    has_splits: bool,
    parallelism: list[int],
    memory: int | None,
) -> None:
    """Check that a job that stops after so many rows, and goes on, gives the rows of the whole, in order by key."""
    logs = len(of_logs)
    entries = entries_of(rows, logs, has_splits)
    first = len(entries) - len(rows)
    bounds = [0, *sorted(first + cut % (len(rows) + 1) for cut in cuts), len(entries)]
    if job in READ_SEVERAL_TIMES:
        bounds = [not_amid_an_arrival(entries, bound) for bound in bounds]
    if any(strategy.alignment_parameters is not None for strategy in of_logs):
        bounds = [0, *(min(bound, at_the_last_arrival(entries)) for bound in bounds[1:-1]), len(entries)]
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
                memory,
                **checkpoints,
            )
            for tag, by_key in part.items():
                for key, values in by_key.items():
                    found[tag][key] += values
    assert found == whole
