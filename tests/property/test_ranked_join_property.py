"""The highest pairs of a join are those that two operators find, whatever is late, spilled, cut or resumed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from equipment.example_counts import examples
from equipment.small_batches import read_in_batches_of
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore.common import Configuration, Duration, Time, WatermarkStrategy
from flinkcore.datastream import KeyedLogStream, LogStream, StreamExecutionEnvironment

BOUND = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))

ROWS = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(-10, 60), st.integers(0, 4), st.integers(-5, 80)),
    max_size=14,
)

JOBS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["interval", "temporal", "regular"]),
        "how": st.sampled_from(["inner", "left"]),
        "lower": st.integers(-20, 5),
        "length": st.integers(0, 40),
        "where": st.booleans(),
        "filters": st.booleans(),
        "n": st.integers(1, 3),
        "rank": st.sampled_from(["row_number", "rank", "dense_rank"]),
        "by": st.sampled_from([["v"], ["w", "v"], ["text"], ["w_right", "v"]]),
        "results": st.sampled_from(["of windows", "final", "changes"]),
    }
)


def table(rows: list[tuple[str, int, int, int]], half: int | None = None) -> pa.Table:
    """Rows that arrive one after the other: all, or those of the first or the second half of the time."""
    numbered = [
        {"k": key, "ts": ts, "v": v, "w": w, "text": f"{'x' * v}{number}", "at": number}
        for number, (key, ts, v, w) in enumerate(rows)
        if half is None or (number >= 7) == bool(half)
    ]
    kinds = {name: pa.int64() for name in ("ts", "v", "w", "at")}
    return pa.Table.from_pylist(numbered, pa.schema({"k": pa.string(), "text": pa.string(), **kinds}))


def ranked(logs: list[KeyedLogStream], job: dict[str, Any], is_one_operator: bool) -> LogStream:
    left, right = logs
    where = pc.field("v") >= pc.field("v_right")
    given: dict[str, Any] = {"how": job["how"], "where": where if job["where"] else None}
    if job["kind"] == "interval":
        lower, upper = (Time.milliseconds(job["lower"] + more) for more in (0, job["length"]))
        joined = left.join_interval(right, lower, upper, **given)
    elif job["kind"] == "temporal":
        joined = left.join_temporal(right, **given)
    else:
        joined = left.join_regular(right, **given)
    if job["filters"]:
        joined = joined.with_columns(w=pc.field("w") + 1).filter(pc.field("v") != 3)
    if not is_one_operator:  # a key that is computed is another one, as far as the planner knows
        joined = joined.with_columns(k=pc.binary_join_element_wise(pc.field("k"), "", ""))
    results = {"of windows": {"window_end": "w"}, "final": {}, "changes": {"changes": True}}[job["results"]]
    return joined.key_by("k").top(job["n"], by=job["by"], rank=job["rank"], **results)


def environment(
    parallelism: int, memory: int | None = None, batch_rows: int = 4
) -> StreamExecutionEnvironment:
    found = StreamExecutionEnvironment().set_parallelism(parallelism).set_max_parallelism(8)
    found.get_config().set_auto_watermark_interval(3)
    read_in_batches_of(batch_rows, found, 300)
    if memory is not None:
        found.configure(Configuration().set_string("taskmanager.memory.managed.size", f"{memory} b"))
    return found


def run(
    env: StreamExecutionEnvironment,
    tables: list[pa.Table],
    job: dict[str, Any],
    is_one_operator: bool = True,
    *,
    is_in_order: bool = False,
    **checkpoints: Any,
) -> tuple[Counter[str], list[Any]]:
    """Return the rows, and the report of each operator."""
    logs = [
        env.from_event_log(each, timestamp="ts", integer_times=True, arrival="at")
        .assign_timestamps_and_watermarks(BOUND)
        .select("k", "ts", "v", "w", "text")
        .key_by("k")
        for each in tables
    ]
    result = ranked(logs, job, is_one_operator).execute(**checkpoints)
    found = result.to_arrow().to_pylist()
    if is_in_order:
        found = numbered(found)
    return Counter(map(str, found)), result.report.by_operator


def numbered(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with their numbers among those of their key."""
    numbers: Counter[str] = Counter()
    for row in found:
        numbers[row["k"]] += 1
        row["number"] = numbers[row["k"]]
    return found


@settings(deadline=None, max_examples=examples(30))
@given(left=ROWS, right=ROWS, job=JOBS, parallelism=st.sampled_from([1, 3]))
def test_pairs_that_are_ranked_by_number_are_those_of_two_operators(
    left: Any, right: Any, job: dict[str, Any], parallelism: int
) -> None:
    tables = [table(left), table(right)]
    is_in_order = job["results"] == "changes"
    expected, (_, ranks) = run(environment(1), tables, job, False, is_in_order=is_in_order)
    found, (report,) = run(environment(parallelism), tables, job, is_in_order=is_in_order)
    assert found == expected
    assert report.late_pairs == ranks.late
    spilling = environment(parallelism, memory=0, batch_rows=1)
    assert run(spilling, tables, job, is_in_order=is_in_order)[0] == expected


@settings(deadline=None, max_examples=examples(30))
@given(left=ROWS, right=ROWS, job=JOBS)
def test_ranked_pairs_that_are_cut_and_resumed_are_those_of_one_run(
    left: Any, right: Any, job: dict[str, Any]
) -> None:
    expected, _ = run(environment(1), [table(left), table(right)], job)
    with TemporaryDirectory() as directory:
        cut = Path(directory) / "cut"
        halves = [[table(rows, half) for rows in (left, right)] for half in (0, 1)]
        first, _ = run(environment(1), halves[0], job, stop_with_checkpoint=cut)
        second, _ = run(environment(2), halves[1], job, restore_from=cut)
    assert first + second == expected
