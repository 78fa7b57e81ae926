"""Map tasks merge the events of a key and a pane before the shuffle; results are what they are without."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from pyarrow import ipc

pytest.importorskip("pyspark")

from equipment.example_counts import examples
from equipment.merged_events import merging_events, merging_lots_of, merging_within
from equipment.small_batches import read_in_batches_of
from equipment.spark_tasks import (
    in_each_task,
    map_way,
    results_by_tasks,
    source_of,
    time_plane_by_tasks,
)
from equipment.timelines import packed_steps
from fuzz.local_spark import local_spark_environment
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore._native.aggregates import Accumulators
from flinkcore._native.arrow import RecordBatch
from flinkcore._native.keys import KeyEncoder
from flinkcore._native.time_windows import rows_before_firing, sliced_windows, time_windows
from flinkcore._native.window_operator import WindowKernel, WindowOperator
from flinkcore.columnar.operator_plans.partial_windows import PartialWindows
from flinkcore.columnar.plans.job_plan import JobPlan, make_plan
from flinkcore.columnar.stages.partial_results import EventMerger, MergeLimits, PartialResults
from flinkcore.common import Duration, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import (
    DataStream,
    KeyedStream,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import (
    Aggregate,
    approx_count_distinct,
    approx_percentile,
    bit_and,
    collect,
    count,
    count_distinct,
    first,
    last,
    max_,
    max_by,
    mean,
    min_,
    sum_,
)
from flinkcore.datastream.functions import KeyedProcessFunction
from flinkcore.datastream.graph.transformations import StreamGraph
from flinkcore.datastream.window import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    CumulativeEventTimeWindows,
    EventTimeSessionWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
)
from flinkcore.errors import ConfigurationError, InternalError, SchemaError
from flinkcore.spark.columnar.map_task import MapTask
from flinkcore.spark.exchange.blocks import BlockKind, read_blocks
from flinkcore.spark.logs.log_input import FileInput, ReadingTimes
from flinkcore.time_plane.timeline import Timeline
from flinkcore.time_plane.total_order import LogEvents

LATE = OutputTag("late")
MS = Time.milliseconds
TUMBLING = TumblingEventTimeWindows.of(MS(100))
SLIDING = SlidingEventTimeWindows.of(MS(100), MS(25))
CUMULATIVE = CumulativeEventTimeWindows.of(MS(100), MS(25))
ANY_ORDER: dict[str, Aggregate] = {
    "n": count(),
    "total": sum_("v"),
    "top": max_("v"),
    "cost": sum_("d"),
    "bits": bit_and("v"),
    "price": mean("d"),
}
IN_ORDER: dict[str, Aggregate] = ANY_ORDER | {
    "least": min_("s"),
    "head": first("s"),
    "tail": last("v"),
    "kinds": count_distinct("s"),
    "about": approx_count_distinct("v"),
    "middle": approx_percentile("v", 0.5),
    "cheapest": min_("d"),
}
DRAWN = np.random.default_rng(11)


def events(n: int, keys: npt.NDArray[np.int64] | int, splits: int = 4, disorder_ms: int = 300) -> pa.Table:
    """Events out of order, one per ms, of which many may come too late; about one in ten has no value."""
    at = np.sort(DRAWN.integers(0, n, n))
    values = DRAWN.integers(-5, 100, n)
    return pa.table(
        {
            "ts": at - DRAWN.integers(0, disorder_ms, n),
            "at": at,
            "key": DRAWN.integers(0, keys, n) if isinstance(keys, int) else keys,
            "v": pa.array(values, mask=values > 90),
            "s": [f"s{value % 40}" for value in values],
            "x": values / 7,
            # The sums of some hundreds have more digits than 64 bits hold.
            "d": pa.array(
                [Decimal(int(value) * 10**17 + 7).scaleb(-9) for value in values], pa.decimal128(30, 9)
            ),
            "split": DRAWN.integers(0, splits, n),
        }
    )


def keyed(log: pa.Table, env: StreamExecutionEnvironment | None = None) -> KeyedStream:
    """The log by key; the watermark is 60 ms behind."""
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(60))
    stream = (
        (StreamExecutionEnvironment() if env is None else env)
        .from_event_log(log, timestamp="ts", arrival="at", split="split")
        .assign_timestamps_and_watermarks(bounded)
    )
    stream.get_execution_environment().get_config().set_auto_watermark_interval(20)
    return stream.key_by("key")


def windows_over(log: pa.Table, window: Any, aggregates: dict[str, Aggregate]) -> DataStream:
    windows = keyed(log).window(window).allowed_lateness(40).side_output_late_data(LATE)
    return windows.aggregate(**aggregates)


def plan_of(stream: DataStream) -> JobPlan:
    config = stream.get_execution_environment().get_config()
    return make_plan(StreamGraph(stream._transformation), config)


def rows_sent(plan: JobPlan, chunks: int, merges: bool) -> tuple[int, int]:
    """How many events go through the shuffle, and how many partial results."""
    log = FileInput(tuple(plan.logs[0].log.chunks(chunks)))
    time_plane = time_plane_by_tasks(plan, log)
    merging = merging_events(plan, time_plane.timeline) if merges else None
    source = source_of(log, ReadingTimes.of(time_plane))
    task = MapTask((map_way(plan, 2, merging),), source)
    sent = {BlockKind.EVENTS: 0, BlockKind.PARTIALS: 0}
    for block in read_blocks(iter(in_each_task(task, log))):
        if block.place.kind in sent:
            sent[block.place.kind] += ipc.open_stream(block.payload).read_next_batch().num_rows
    return sent[BlockKind.EVENTS], sent[BlockKind.PARTIALS]


# ---- results -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lot", [None, 300], ids=["lots as they come", "lots of 300"])
@pytest.mark.parametrize(
    ("window", "aggregates"),
    [(TUMBLING, IN_ORDER), (SLIDING, ANY_ORDER), (CUMULATIVE, ANY_ORDER)],
    ids=["tumbling", "sliding", "cumulative"],
)
def test_rows_and_their_order_are_as_without_merging(
    window: Any, aggregates: dict[str, Aggregate], lot: int | None
) -> None:
    plan = plan_of(windows_over(events(4_000, 9), window, aggregates))
    for chunks, partitions in ((1, 1), (3, 2)):
        plain = results_by_tasks(plan, chunks, partitions)
        assert len(plain["late"]) > 20
        assert sum(row["late_firing"] for row in plain[None]) > 50
        if lot is None:
            assert results_by_tasks(plan, chunks, partitions, merges=True) == plain
        else:
            with merging_lots_of(lot):
                assert results_by_tasks(plan, chunks, partitions, merges=True) == plain


def test_few_keys_leave_few_rows_of_the_shuffle() -> None:
    plan = plan_of(windows_over(events(20_000, 5, disorder_ms=120), TUMBLING, ANY_ORDER))
    events_sent, partials = rows_sent(plan, 2, merges=True)
    assert 0 < events_sent < 2_000
    assert 1_000 <= partials < 1_500


def test_many_keys_are_not_merged() -> None:
    plan = plan_of(windows_over(events(5_000, 4_000), TUMBLING, ANY_ORDER))
    assert rows_sent(plan, 2, merges=True) == rows_sent(plan, 2, merges=False) == (5_000, 0)


def test_a_task_merges_though_another_finds_too_many_keys() -> None:
    n = 8_000
    keys = np.where(np.arange(n) < n // 2, np.arange(n), np.arange(n) % 4)
    plan = plan_of(windows_over(events(n, keys, splits=1), TUMBLING, IN_ORDER))
    events_sent, partials = rows_sent(plan, 2, merges=True)
    assert events_sent >= n // 2
    assert partials > 0
    assert results_by_tasks(plan, 2, 2, merges=True) == results_by_tasks(plan, 2, 2)


def test_one_key_with_half_of_all_events_sends_no_more_rows_for_more_events() -> None:
    def sent(n: int) -> int:
        keys = np.where(np.arange(n) % 2 == 0, 0, np.arange(n) % 10)
        log = events(n, keys, splits=1)
        at = np.arange(n) * 2_000 // n
        log = log.set_column(0, "ts", pa.array(at)).set_column(1, "at", pa.array(at))
        return sum(rows_sent(plan_of(windows_over(log, TUMBLING, ANY_ORDER)), 2, merges=True))

    assert sent(40_000) <= 1.1 * sent(10_000)


def test_merging_ends_where_partial_results_become_too_many() -> None:
    n = 12_000
    keys = np.where(np.arange(n) < n // 2, np.arange(n) % 3, np.arange(n))
    log = events(n, keys, splits=1, disorder_ms=70)
    stream = windows_over(log, TUMBLING, IN_ORDER)
    read_in_batches_of(2_000, stream.get_execution_environment())
    plan = plan_of(stream)
    with merging_within(MergeLimits(judged_rows=2_000, most_bytes=1 << 19), least_block_rows=500):
        events_sent, partials = rows_sent(plan, 1, merges=True)
        assert n // 4 < events_sent < n * 3 // 4
        assert partials < n // 2
        assert results_by_tasks(plan, 1, 2, merges=True) == results_by_tasks(plan, 1, 2)


@settings(deadline=None, max_examples=examples(15))
@given(
    n=st.integers(1, 300),
    n_keys=st.sampled_from([1, 3, 40]),
    seed=st.integers(0, 1 << 20),
    judged_rows=st.sampled_from([1, 30, 1 << 17]),
    least_events=st.sampled_from([0.0, 1.5, 4.0]),
    most_bytes=st.sampled_from([0, 1, 5 << 10, 40 << 10, 80 << 10]),
    sent_rows=st.sampled_from([1, 20, 1 << 15]),
    window=st.sampled_from([TUMBLING, SLIDING]),
)
def test_rows_and_their_order_are_the_same_whatever_memory_the_merger_has(
    n: int,
    n_keys: int,
    seed: int,
    judged_rows: int,
    least_events: float,
    most_bytes: int,
    sent_rows: int,
    window: Any,
) -> None:
    log = events(n, np.random.default_rng(seed).integers(0, n_keys, n))
    plan = plan_of(windows_over(log, window, IN_ORDER if window is TUMBLING else ANY_ORDER))
    plain = results_by_tasks(plan, 2, 2)
    with merging_within(MergeLimits(judged_rows, least_events, most_bytes, sent_rows), least_block_rows=1):
        assert results_by_tasks(plan, 2, 2, merges=True) == plain


def merger_of(log: pa.Table, limits: MergeLimits) -> tuple[EventMerger, LogEvents]:
    """A merger and the events of a log, which all come before their panes fire."""
    plan = plan_of(windows_over(log, TUMBLING, ANY_ORDER))
    windows = plan.partial_windows()
    assert isinstance(windows, PartialWindows)
    batch = log.select(windows.events.names).combine_chunks().to_batches()[0]
    n = batch.num_rows
    times = log.column("ts").to_numpy(), log.column("at").to_numpy()
    zeros = np.zeros(n, np.int64)
    merged = LogEvents(batch, *times, zeros.astype(np.int32), np.arange(n))
    timeline = Timeline.ended(Timeline.packer(None), stops=False)
    return EventMerger(windows, timeline, limits), merged


def events_in(sent: LogEvents) -> int:
    return int(sent.events.sum()) if isinstance(sent, PartialResults) else len(sent.arrivals)


def test_no_window_is_opened_to_find_that_there_are_too_many_panes() -> None:
    merger, log = merger_of(events(3_000, np.arange(3_000)), MergeLimits())
    assert list(merger.add(log)) == [log]
    assert not merger.merges
    assert merger._operator.counts()["events"] == 0
    assert list(merger.finish()) == []


def test_the_first_events_decide_by_how_many_a_pane_of_a_key_has() -> None:
    for least_events, merges in ((2.9, True), (3.1, False)):
        log = events(3_000, np.arange(3_000) // 3)
        same = np.repeat(np.arange(1_000), 3)
        log = log.set_column(0, "ts", pa.array(same)).set_column(1, "at", pa.array(same))
        merger, all_events = merger_of(log, MergeLimits(least_events=least_events))
        sent = [*merger.add(all_events), *merger.finish()]
        assert merger.merges == merges
        assert [type(each) for each in sent] == [PartialResults if merges else LogEvents]
        assert len(sent[0].arrivals) == (1_000 if merges else 3_000)
        assert sum(map(events_in, sent)) == 3_000


def test_partial_results_are_sent_as_soon_as_they_hold_more_than_their_budget() -> None:
    n = 60_000
    limits = MergeLimits(least_events=0.0, most_bytes=1 << 20)
    merger, log = merger_of(events(n, np.arange(n)), limits)
    held = []
    sent = []
    for each in merger.add(log):
        sent.append(each)
        held.append(len(each.arrivals))
    assert len(held) > 5
    # A window of a key takes more than 150 bytes.
    assert max(held) <= limits.most_bytes // 150 + limits.rows_at_once
    sent += merger.finish()
    assert sum(map(events_in, sent)) == n


def test_merging_ends_within_a_batch_and_what_is_left_of_it_is_sent_event_by_event() -> None:
    n = 8_000
    keys = np.where(np.arange(n) < n // 2, 0, np.arange(n))
    log = events(n, keys, disorder_ms=1)
    merger, all_events = merger_of(log, MergeLimits(least_events=1.2, most_bytes=1 << 18))
    sent = [*merger.add(all_events), *merger.finish()]
    assert not merger.merges
    kinds = {PartialResults: 0, LogEvents: 0}
    for each in sent:
        kinds[type(each)] += events_in(each)
    assert sum(kinds.values()) == n
    assert kinds[LogEvents] > n // 4
    assert kinds[PartialResults] > n // 4


# ---- which jobs ----------------------------------------------------------------------------------------------------


class Give(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield (value.key,)


LOG = events(10, 3)


def aggregated(window: Any, trigger: Any = None, **aggregates: Aggregate) -> DataStream:
    windows = keyed(LOG).window(window)
    return (windows if trigger is None else windows.trigger(trigger)).aggregate(**aggregates)


OTHER_WINDOWS = "it is done for tumbling windows, and those that share slices, which fire at their end"


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        (aggregated(TUMBLING, s=sum_("x")), "s = sum(x) depends on every event's place in the order"),
        (
            aggregated(TUMBLING, n=count(), m=mean("v")),
            "m = mean(v) depends on every event's place in the order",
        ),
        (aggregated(TUMBLING, c=collect("v")), "c = collect(v) depends on every event's place in the order"),
        (
            aggregated(TUMBLING, b=max_by("s", "v")),
            "b = max_by(s by v) depends on every event's place in the order",
        ),
        (aggregated(SLIDING, f=first("v")), OTHER_WINDOWS),
        (aggregated(SlidingEventTimeWindows.of(MS(70), MS(30)), n=count()), OTHER_WINDOWS),
        (aggregated(EventTimeSessionWindows.with_gap(MS(9)), n=count()), OTHER_WINDOWS),
        (aggregated(TUMBLING, CountTrigger.of(2), n=count()), OTHER_WINDOWS),
        (aggregated(TUMBLING, ContinuousEventTimeTrigger.of(MS(9)), n=count()), OTHER_WINDOWS),
        (
            keyed(LOG).process(Give(), pa.schema([("key", pa.int64())])),
            "Give takes the events themselves",
        ),
        (
            aggregated(TUMBLING, n=count()).key_by("key").window(TUMBLING).aggregate(n=count()),
            "the job has several operators",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_events_that_are_not_merged_have_a_reason(stream: DataStream, reason: str) -> None:
    assert plan_of(stream).partial_windows() == reason


@pytest.mark.parametrize(
    ("stream", "pane_ms"),
    [
        (aggregated(TUMBLING, **IN_ORDER), 100),
        (
            aggregated(
                TUMBLING,
                PurgingTrigger.of(TumblingEventTimeWindows.of(MS(1)).get_default_trigger()),
                n=count(),
            ),
            100,
        ),
        (keyed(LOG).window(TUMBLING).retracting().aggregate(t=last("s")), 100),
        (keyed(LOG).window(TUMBLING).delta().aggregate(n=count()), 100),
        (aggregated(SLIDING, **ANY_ORDER), 25),
        (aggregated(CUMULATIVE, **ANY_ORDER), 25),
    ],
    ids=["tumbling", "purging", "retracting", "delta", "sliding", "cumulative"],
)
def test_events_are_merged_by_pane(stream: DataStream, pane_ms: int) -> None:
    windows = plan_of(stream).partial_windows()
    assert isinstance(windows, PartialWindows)
    assert windows.pane == f"{pane_ms} ms"


def test_explain_says_whether_events_are_merged_before_the_shuffle() -> None:
    env = local_spark_environment(2)

    def windows() -> Any:
        return keyed(LOG, env).window(TUMBLING)

    assert windows().aggregate(n=count()).explain().splitlines()[-1].strip() == (
        "events of a key and 100 ms are merged before the shuffle where that leaves far fewer"
    )
    assert windows().aggregate(m=mean("v")).explain().splitlines()[-1].strip() == (
        "events go through the shuffle one by one: m = mean(v) depends on every event's place in the order"
    )


# ---- the window operator -------------------------------------------------------------------------------------------

SCHEMA = pa.schema([("key", pa.int64()), ("v", pa.int64())])
SPECS = [("count", None, None), ("sum", "v", None), ("last", "v", None)]


def operator(kernel: WindowKernel, accumulators: Accumulators, watermark: int) -> WindowOperator:
    return WindowOperator(
        kernel,
        keys=KeyEncoder(SCHEMA, ["key"]),
        accumulators=accumulators,
        key_names=["key"],
        aggregate_names=["n", "total", "tail"],
        timeline=packed_steps([0], [watermark]),
        row_limit=100,
        byte_limit=100,
    )


def take_partials(window_operator: WindowOperator, partials: Accumulators, steps_before: int) -> None:
    """Let an operator take a row of key 7 at 3 ms, and a partial result of the same key with two events."""
    batch = pa.record_batch([pa.array([7]), pa.array([100])], schema=SCHEMA)
    keys = KeyEncoder(SCHEMA, ["key"])
    keys.encode_batch(pa.record_batch([pa.array([7, 7]), pa.array([0, 0])], schema=SCHEMA))
    window_operator.process(
        RecordBatch(batch),
        keys,
        None,
        np.array([3, 9]),
        np.full(2, steps_before),
        partials=partials,
        partial_events=np.array([2]),
    )


def two_events() -> Accumulators:
    partials = Accumulators(SCHEMA, SPECS)
    partials.reserve(1)
    values = pa.record_batch([pa.array([7, 7]), pa.array([1, None], pa.int64())], schema=SCHEMA)
    partials.update(values, np.zeros(2, np.uint32))
    return partials


def test_a_partial_result_counts_as_the_events_that_it_is_made_of() -> None:
    accumulators, partials = Accumulators(SCHEMA, SPECS), two_events()
    kernel = time_windows(size=10, slide=10, offset=0, allowed_lateness=0)
    window_operator = operator(kernel, accumulators, watermark=50)
    take_partials(window_operator, partials, steps_before=0)
    window_operator._check()
    window_operator.finish()
    (row,) = pa.record_batch(window_operator.take()).to_pylist()
    assert (row["n"], row["total"], row["tail"]) == (3, 101, None)
    assert window_operator.counts()["windowed"] == window_operator.counts()["events"] == 3
    partials.emit(np.zeros(1, np.uint32))
    assert [pa.array(column).to_pylist() for column in partials.take()] == [[0], [None], [None]]


def test_a_partial_result_of_a_window_that_has_fired_is_refused() -> None:
    for kernel in (
        time_windows(size=10, slide=10, offset=0, allowed_lateness=5),
        sliced_windows(size=20, slide=10, offset=0, allowed_lateness=5),
    ):
        specs = SPECS[:2]
        partials = Accumulators(SCHEMA, specs)
        partials.reserve(1)
        window_operator = WindowOperator(
            kernel,
            keys=KeyEncoder(SCHEMA, ["key"]),
            accumulators=Accumulators(SCHEMA, specs),
            key_names=["key"],
            aggregate_names=["n", "total"],
            timeline=packed_steps([0], [9]),
            row_limit=100,
            byte_limit=100,
        )
        with pytest.raises(InternalError, match=r"a partial result of 2 events, .* is 9 ms, came after"):
            take_partials(window_operator, partials, steps_before=1)


def test_operators_refuse_partial_results_that_are_not_theirs() -> None:
    overlapping = time_windows(size=20, slide=10, offset=0, allowed_lateness=0)
    with pytest.raises(ConfigurationError, match="time_windows take no partial results"):
        take_partials(operator(overlapping, Accumulators(SCHEMA, SPECS), 50), two_events(), 0)

    def tumbling() -> WindowOperator:
        kernel = time_windows(size=10, slide=10, offset=0, allowed_lateness=0)
        return operator(kernel, Accumulators(SCHEMA, SPECS), 50)

    others = Accumulators(SCHEMA, SPECS[:2])
    others.reserve(1)
    with pytest.raises(SchemaError, match="cannot be merged into those of"):
        take_partials(tumbling(), others, 0)
    with pytest.raises(ValueError, match="accumulators of their own, with an entry for each"):
        take_partials(tumbling(), Accumulators(SCHEMA, SPECS), 0)


def test_rows_are_divided_by_whether_their_pane_has_fired() -> None:
    kernel = time_windows(size=10, slide=10, offset=3, allowed_lateness=0)

    def divided(timestamps: list[int], steps: list[int], rows: Any = None) -> tuple[list[int], list[int]]:
        before, others = rows_before_firing(
            kernel,
            rows,
            np.array(timestamps, np.int64),
            np.array(steps, np.int64),
            packed_steps([5, 2**63 - 1], [12, 2**63 - 1]),
            width=10,
            offset=3,
        )
        return before.tolist(), others.tolist()

    assert divided([12, 13, 12, 22, 2**63 - 1], [0, 1, 1, 2, 0]) == ([0, 1], [2, 3, 4])
    assert divided([12, 13, 12], [1, 1, 0], np.array([2, 0], np.uint32)) == ([2], [0])
    assert divided([], []) == ([], [])
    with pytest.raises(ValueError, match="row 0 has 3 of 2 steps before it"):
        divided([1], [3])
    with pytest.raises(IndexError, match="beyond the rows"):
        divided([1], [0], np.array([1], np.uint32))


def test_rows_beyond_those_that_the_kernel_takes_are_not_merged() -> None:
    kernel = time_windows(size=10, slide=10, offset=0, allowed_lateness=0)
    lowest, highest = kernel.lowest_timestamp, kernel.highest_timestamp
    times = np.array([lowest - 1, lowest, highest, highest + 1])
    before, others = rows_before_firing(
        kernel, None, times, np.zeros(4, np.int64), packed_steps([], []), width=10, offset=0
    )
    assert (before.tolist(), others.tolist()) == ([1, 2], [0, 3])
