"""Replays of a log in parts, each from the checkpoint of the part before, against the replay of the whole log."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from equipment.example_counts import examples
from equipment.memory_disk import MEMORY
from hypothesis import given, settings
from hypothesis import strategies as st
from jobs.scripted_logs import (
    EVENT_DELAYS,
    LATENESSES,
    PROCESSING_DELAYS,
    RESULTS,
    SIDES,
    STRIDES,
    doings,
    log_of,
    strategy_of,
)
from models.batch_functions import scripted_batches
from models.process_replay import SIDE, Scripted

from flinkcore.common import OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import (
    collect,
    count,
    count_distinct,
    first,
    last,
    max_,
    max_by,
    mean,
    min_,
    min_by,
    stddev,
    sum_,
    var_pop,
)
from flinkcore.datastream.functions import ProcessWindowFunction
from flinkcore.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    CumulativeEventTimeWindows,
    GlobalWindows,
    PurgingTrigger,
    Trigger,
    WindowAssigner,
)

ROWS = st.tuples(
    st.sampled_from(["a", "b", "c", "ä", "user-5"]),
    st.sampled_from([*STRIDES, 900]),
    st.sampled_from([*LATENESSES, 60]),
    st.integers(0, 2),
    doings([*EVENT_DELAYS, 200], PROCESSING_DELAYS),
)
STRATEGIES = st.builds(
    strategy_of, st.sampled_from([0, 2, 15, "event", "tick"]), st.sampled_from([None, None, 3, 40])
)


def table_of(rows: list[tuple[Any, ...]]) -> pa.Table:
    """Rows in total order; every split has an event before all others, so that all splits are there from the start."""
    entries: list[tuple[Any, ...]] = [("a", -1, 3, 3, split, "event:5 processing:20") for split in range(3)]
    clock = 4
    for number, (user, stride, delay, split, actions) in enumerate(rows):
        clock += stride
        entries.append((user, number, clock - delay, clock, split, actions))
    entries[3:] = sorted(entries[3:], key=lambda entry: (entry[3], entry[4]))
    return log_of(entries)


def parts_of(table: pa.Table, cuts: list[int]) -> list[pa.Table]:
    """Cut after so many rows each; the first three rows stay together."""
    bounds = [0, *sorted(3 + cut % (table.num_rows - 2) for cut in cuts), table.num_rows]
    return [table.slice(start, stop - start) for start, stop in pairwise(bounds)]


def run_in_parts(
    parts: list[pa.Table], parallelism: list[int], run: Callable[..., Sequence[pa.Table]]
) -> list[Sequence[pa.Table]]:
    """What a job gives for each part, if all but the last stop with a checkpoint."""
    outputs = []
    with TemporaryDirectory(dir=MEMORY) as folder:
        for number, part in enumerate(parts):
            checkpoints: dict[str, Any] = {}
            if number > 0:
                checkpoints["restore_from"] = Path(folder, str(number - 1))
            if number < len(parts) - 1:
                checkpoints["stop_with_checkpoint"] = Path(folder, str(number))
            outputs.append(run(part, parallelism[number], **checkpoints))
    return outputs


def by_key(tables: list[pa.Table]) -> dict[Any, list[Any]]:
    """The rows of each key in their order."""
    found = defaultdict(list)
    for table in tables:
        for row in table.to_pylist():
            found[row["user"]].append(tuple(row.values()))
    return dict(found)


@settings(deadline=None, max_examples=examples(40))
@given(
    rows=st.lists(ROWS, min_size=1, max_size=40),
    cuts=st.lists(st.integers(0, 100), min_size=1, max_size=2),
    strategy=STRATEGIES,
    interval=st.sampled_from([0, 1, 5, 50]),
    parallelism=st.lists(st.sampled_from([1, 2, 7]), min_size=3, max_size=3),
    over_batches=st.booleans(),
)
def test_a_process_function_goes_on_as_if_the_log_had_not_been_cut(
    rows: list[tuple[Any, ...]],
    cuts: list[int],
    strategy: WatermarkStrategy,
    interval: int,
    parallelism: list[int],
    over_batches: bool,
) -> None:
    table = table_of(rows)
    time = pa.field("record_time", pa.int64())
    columns = RESULTS.append(time) if over_batches else RESULTS
    side = OutputTag("side", SIDES.append(time) if over_batches else SIDES)
    function: Any = scripted_batches(columns.names) if over_batches else Scripted()
    function.one_element_per_key = True

    def run(log: pa.Table, tasks: int, **checkpoints: Any) -> tuple[pa.Table, pa.Table]:
        env = StreamExecutionEnvironment().set_parallelism(tasks)
        env.get_config().set_auto_watermark_interval(interval)
        result = (
            env.from_event_log(log, timestamp="ts", arrival="at", split="split")
            .assign_timestamps_and_watermarks(strategy)
            .key_by("user")
            .process(
                function,
                columns,
                side_outputs=[side],
                timestamp_column=None if over_batches else "record_time",
            )
            .execute(**checkpoints)
        )
        return result.to_arrow(), result.get_side_output(SIDE).to_arrow()

    whole = run(table, 1)
    outputs = run_in_parts(parts_of(table, cuts), parallelism, run)
    for output in (0, 1):
        assert by_key([tables[output] for tables in outputs]) == by_key([whole[output]])
    assert sum(len(tables[0]) for tables in outputs) == pc.count(whole[0]["user"]).as_py()


WINDOWS = st.sampled_from(
    [
        TumblingEventTimeWindows.of(Time.milliseconds(50)),
        SlidingEventTimeWindows.of(Time.milliseconds(60), Time.milliseconds(25), Time.milliseconds(-7)),
        SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(30)),
        SlidingEventTimeWindows.of(Time.milliseconds(60), Time.milliseconds(20)),
        EventTimeSessionWindows.with_gap(Time.milliseconds(20)),
        EventTimeSessionWindows.with_gap(Time.milliseconds(200)),
        CumulativeEventTimeWindows.of(Time.milliseconds(90), Time.milliseconds(30)),
        GlobalWindows.create(),
        CountTumblingWindowAssigner(2),
        CountSlidingWindowAssigner(3, 1),
        CountSlidingWindowAssigner(2, 3),
    ]
)
TRIGGERS = st.sampled_from(
    [
        None,
        None,
        CountTrigger.of(3),
        PurgingTrigger.of(ContinuousEventTimeTrigger.of(Time.milliseconds(25))),
    ]
)
PAIR = pa.struct([("n", pa.int8()), ("of", pa.list_(pa.string()))])
FEW_AGGREGATES = {
    "n": count(),
    "total": sum_("number"),
    "least": min_("real"),
    "spent": sum_("price"),
    "mean": mean("price"),
    "cheapest": min_("price"),
}
"""Of windows that may share slices."""

AGGREGATES = {
    "n": count(),
    "total": sum_("number"),
    "real": sum_("real"),
    "mean": mean("number"),
    "spent": sum_("price"),
    "price": mean("price"),
    "dearest": max_("price"),
    "spread": stddev("real"),
    "variance": var_pop("price"),
    "least": min_("real"),
    "last_text": max_("text"),
    "first_text": first("text"),
    "last_number": last("sparse"),
    "least_sparse": min_("sparse"),
    "best": min_by("text", "real"),
    "longest": max_by("number", "text"),
    "numbers": count_distinct("number"),
    "texts": count_distinct("text"),
    "all_numbers": collect("sparse"),
    "all_texts": collect("text"),
    "first_pair": first("pair"),
    "pairs": collect("pair"),
    "best_pair": max_by("pair", "real"),
}


ELEMENTS = pa.schema(
    {"key": pa.string(), "end": pa.int64(), "elements": pa.list_(pa.int64()), "watermark": pa.int64()}
)


class OfElements(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        numbers = sorted(element.number for element in elements)
        yield repr(key), context.window().max_timestamp(), numbers, context.current_watermark()


def with_values(table: pa.Table) -> pa.Table:
    numbers = table["number"].to_pylist()
    return (
        table.append_column("real", pa.array([number % 7 / 4 - 1 for number in numbers]))
        .append_column("price", pa.array([n % 11 or None for n in numbers]).cast(pa.decimal128(21, 2)))
        .append_column(
            "pair",
            pa.array(
                [None if n % 5 == 0 else {"n": n % 3 or None, "of": ["ü"] * (n % 4)} for n in numbers], PAIR
            ),
        )
        .append_column("sparse", pa.array([None if n % 3 == 0 else n % 5 - 1 for n in numbers], pa.int32()))
        .append_column(
            "text", pa.array([None if n % 4 == 0 else "tüx"[: n % 4] * (n % 6) for n in numbers], pa.string())
        )
    )


@settings(deadline=None, max_examples=examples(40))
@given(
    rows=st.lists(ROWS, min_size=1, max_size=40),
    cuts=st.lists(st.integers(0, 100), min_size=1, max_size=2),
    strategy=STRATEGIES,
    interval=st.sampled_from([1, 5, 50]),
    parallelism=st.lists(st.sampled_from([1, 2, 7]), min_size=3, max_size=3),
    window=WINDOWS,
    lateness=st.sampled_from([0, 30]),
    keys=st.sampled_from([("user",), ("split",), ("user", "split")]),
    trigger=TRIGGERS,
    evictor=st.sampled_from([None, CountEvictor.of(3), CountEvictor.of(1, True)]),
    aggregates=st.sampled_from([AGGREGATES, FEW_AGGREGATES, None]),
    retracting=st.booleans(),
)
def test_windows_go_on_as_if_the_log_had_not_been_cut(
    rows: list[tuple[Any, ...]],
    cuts: list[int],
    strategy: WatermarkStrategy,
    interval: int,
    parallelism: list[int],
    window: WindowAssigner[Any, Any],
    lateness: int,
    keys: tuple[str, ...],
    trigger: Trigger[Any, Any] | None,
    evictor: CountEvictor | None,
    aggregates: dict[str, Any] | None,
    retracting: bool,
) -> None:
    if isinstance(window, GlobalWindows):
        lateness = 0
        trigger = CountTrigger.of(2) if trigger is None else trigger
        evictor = evictor if trigger == CountTrigger.of(3) else None
    elif not window.is_event_time():
        trigger = evictor = None
        retracting = False
    else:
        evictor = None
    table = with_values(table_of(rows))
    late = OutputTag("late")

    def run(log: pa.Table, tasks: int, **checkpoints: Any) -> list[pa.Table]:
        env = StreamExecutionEnvironment().set_parallelism(tasks)
        env.get_config().set_auto_watermark_interval(interval)
        events = env.from_event_log(log, timestamp="ts", arrival="at", split="split")
        windowed = events.assign_timestamps_and_watermarks(strategy).key_by(*keys).window(window)
        if trigger is not None:
            windowed = windowed.trigger(trigger)
        if evictor is not None:
            windowed = windowed.evictor(evictor)
        windowed = windowed.allowed_lateness(lateness).side_output_late_data(late)
        if aggregates is None:
            result = windowed.process(OfElements(), ELEMENTS).execute(**checkpoints)
        else:
            withdraws = retracting and evictor is None and not isinstance(trigger, PurgingTrigger)
            windowed = windowed.retracting() if withdraws else windowed
            result = windowed.aggregate(**aggregates).execute(**checkpoints)
        assert result.report.results == result.to_arrow().num_rows
        return [result.to_arrow(), result.get_side_output(late).to_arrow()]

    whole = run(table, 1)
    outputs = run_in_parts(parts_of(table, cuts), parallelism, run)
    for output in (0, 1):
        assert sorted(map(repr, whole[output].to_pylist())) == sorted(
            repr(row) for tables in outputs for row in tables[output].to_pylist()
        )
