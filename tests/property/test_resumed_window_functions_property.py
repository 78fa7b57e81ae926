"""Functions over windows of a log in two parts, the second from the checkpoint of the first, against the whole log."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from equipment.memory_disk import MEMORY
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore.columnar.stages import result_batches
from flinkcore.common import Duration, OutputTag, Row, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.functions import AggregateFunction, ProcessWindowFunction, WindowContext
from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.datastream.window import (
    ContinuousProcessingTimeTrigger,
    CountEvictor,
    CountTrigger,
    CountTumblingWindowAssigner,
    CumulativeEventTimeWindows,
    DeltaTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    ProcessingTimeSessionWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowStagger,
)

LATE = OutputTag("late")
RESULT = pa.schema(
    {
        "user": pa.string(),
        "start": pa.int64(),
        "firing": pa.int64(),
        "of_window": pa.int64(),
        "v": pa.list_(pa.int64()),
    }
)
FIRING = ValueStateDescriptor("firing")


class Firings(ProcessWindowFunction[Any, Any, str, Any]):
    """Counts firings in the state of the key and, where there is one, of the window."""

    def process(
        self, key: str, context: ProcessWindowFunction.Context[Any], elements: Iterable[Any]
    ) -> Iterator[Any]:
        window, of_window = context.window(), None
        if isinstance(window, TimeWindow) and not self.merges:
            of_window = self.count_up(context.window_state().get_state(FIRING))
        of_key = self.count_up(context.global_state().get_state(FIRING))
        values = [element.v if isinstance(element, Row) else element for element in elements]
        yield key, getattr(window, "start", None), of_key, of_window, sorted(values)
        of_key = self.count_up(context.global_state().get_state(FIRING))
        yield key, getattr(window, "start", None), of_key, of_window, []

    def __init__(self, merges: bool) -> None:
        self.merges = merges

    def count_up(self, state: Any) -> int:
        count: int = (state.value() or 0) + 1
        state.update(count)
        return count

    def clear(self, context: WindowContext[Any]) -> None:
        if not self.merges:
            context.window_state().get_state(FIRING).clear()


class Sum(AggregateFunction[Row, list[int], int]):
    def create_accumulator(self) -> list[int]:
        return [0]

    def add(self, value: Row, accumulator: list[int]) -> list[int]:
        accumulator[0] += value.v
        return accumulator

    def get_result(self, accumulator: list[int]) -> int:
        return accumulator[0]

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return [acc_a[0] + acc_b[0]]


WINDOWS = st.sampled_from(
    [
        (TumblingEventTimeWindows(10), None, None),
        (TumblingEventTimeWindows(10, 3, WindowStagger.NATURAL), None, None),
        (SlidingEventTimeWindows(12, 5), None, CountEvictor.of(2)),
        (CumulativeEventTimeWindows(12, 4), None, None),
        (EventTimeSessionWindows(6), None, None),
        (EventTimeSessionWindows(6), CountTrigger.of(3), CountEvictor.of(2, True)),
        (ProcessingTimeSessionWindows(4), None, None),
        (TumblingProcessingTimeWindows(9), ContinuousProcessingTimeTrigger(4), None),
        (GlobalWindows.create(), PurgingTrigger.of(CountTrigger.of(3)), None),
        (GlobalWindows.create(), DeltaTrigger.of(3, lambda old, new: new.v - old.v), None),
        (CountTumblingWindowAssigner(3), None, None),
    ]
)
EVENTS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(-15, 3), st.sampled_from("abc"), st.integers(-5, 5)),
    min_size=2,
    max_size=40,
)


def table_of(drawn: list[tuple[int, int, str, int]]) -> pa.Table:
    rows, arrival = [], 0
    for pause, delay, user, value in drawn:
        arrival += pause
        rows.append({"arr": arrival, "ts": arrival + delay, "user": user, "v": value})
    return pa.Table.from_pylist(
        rows, pa.schema({"arr": pa.int64(), "ts": pa.int64(), "user": pa.string(), "v": pa.int64()})
    )


@settings(deadline=None, max_examples=40)
@given(
    EVENTS,
    st.integers(0, 100),
    WINDOWS,
    st.sampled_from([0, 7]),
    st.booleans(),
    st.tuples(st.sampled_from([1, 2, 5]), st.sampled_from([1, 2, 5])),
    st.sampled_from([1, 2, 1 << 15]),
)
def test_functions_over_windows_go_on_as_if_the_log_had_not_been_cut(
    drawn: list[tuple[int, int, str, int]],
    cut: int,
    windows: tuple[Any, Any, Any],
    lateness: int,
    aggregates: bool,
    parallelism: tuple[int, int],
    result_rows: int,
) -> None:
    assigner, trigger, evictor = windows
    table = table_of(drawn)
    merges = isinstance(assigner, EventTimeSessionWindows | ProcessingTimeSessionWindows)

    def run(log: pa.Table, tasks: int, **checkpoints: Any) -> list[list[str]]:
        env = StreamExecutionEnvironment().set_parallelism(tasks)
        env.get_config().set_auto_watermark_interval(3)
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(2))
        stream = env.from_event_log(log, timestamp="ts", arrival="arr").assign_timestamps_and_watermarks(
            strategy
        )
        windowed = (
            stream.key_by("user").window(assigner).allowed_lateness(lateness).side_output_late_data(LATE)
        )
        windowed = windowed if trigger is None else windowed.trigger(trigger)
        windowed = windowed if evictor is None else windowed.evictor(evictor)
        if aggregates:
            results = windowed.aggregate(Sum(), Firings(merges), output_type=RESULT)
        else:
            results = windowed.process(Firings(merges), RESULT)
        done = results.execute(**checkpoints)
        return [
            list(map(repr, found.to_pylist()))
            for found in (done.to_arrow(), done.get_side_output(LATE).to_arrow())
        ]

    whole = run(table, 1)
    at = 1 + cut % (table.num_rows - 1)
    with TemporaryDirectory(dir=MEMORY) as folder, patch.object(result_batches, "BATCH_ROWS", result_rows):
        checkpoint = Path(folder, "checkpoint")
        first = run(table.slice(0, at), parallelism[0], stop_with_checkpoint=checkpoint)
        second = run(table.slice(at), parallelism[1], restore_from=checkpoint)
    for output in (0, 1):
        assert sorted(first[output] + second[output]) == sorted(whole[output])
