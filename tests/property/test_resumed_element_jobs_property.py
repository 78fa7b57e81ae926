"""Jobs over single elements in parts, each from the checkpoint of the part before, against the whole."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from queue import Queue
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from equipment.example_counts import examples
from equipment.memory_disk import MEMORY
from equipment.message_jobs import collected_by_messages
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from jobs.early_ends import ends_early
from jobs.element_steps import ENDS_EARLY, STEPS, Element
from jobs.timed_elements import STRATEGY

from flinkcore.common import Duration, JobClient, Types, Watermark, WatermarkStrategy
from flinkcore.datastream import (
    CheckpointedFunction,
    DataStream,
    MapFunction,
    SinkFunction,
    SourceFunction,
    StreamExecutionEnvironment,
    TimeCharacteristic,
)
from flinkcore.datastream.connectors.base import Source, SourceSplit
from flinkcore.datastream.graph.pipeline_executor import CheckpointSettings
from flinkcore.datastream.state import ListStateDescriptor
from flinkcore.elements.element_checkpoint import ElementCheckpoints

ELEMENT = Types.TUPLE([Types.LONG(), Types.STRING(), Types.LONG()])
BY_KEY = ["timers", "side output", "windows", "sums", "counted windows", "sessions", "near ones", "joined"]
"""Steps whose elements do not depend on the parallelism."""

IngestionTime = TimeCharacteristic.IngestionTime
PLACES = st.lists(st.booleans(), min_size=4, max_size=4)
"""Which parts are run by tasks that only exchange messages."""

elements = st.tuples(st.integers(0, 60), st.sampled_from("abc"), st.integers(0, 8))


def environment(parallelism: int, interval: int, is_chained: bool = True) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(interval).set_chaining_enabled(is_chained)
    return env


def in_parts(
    build: Any, parallelism: Sequence[int], bounds: Sequence[int], by_messages: Sequence[bool] = (False,)
) -> list[Element]:
    """The elements of all parts of a job; `build` makes its stream of the rows from one bound to another.

    Parts may be run as on Spark: by tasks that only exchange messages.
    """
    given_back: list[Element] = []
    parts = list(pairwise(bounds))
    with TemporaryDirectory(dir=MEMORY) as folder:
        for number, (start, stop) in enumerate(parts):
            checkpoints: dict[str, Any] = {}
            if number > 0:
                checkpoints["restore_from"] = Path(folder, str(number - 1))
            if number < len(parts) - 1:
                checkpoints["stop_with_checkpoint"] = Path(folder, str(number))
            stream = build(parallelism[number % len(parallelism)], start, stop)
            if by_messages[number % len(by_messages)]:
                env = stream.get_execution_environment()
                given_back += collected_by_messages(stream, env, CheckpointSettings(**checkpoints))
            else:
                given_back += stream.execute_and_collect(**checkpoints)
    return given_back


def bounds_of(cuts: Sequence[int], rows: int) -> list[int]:
    return [0, *sorted(cut % (rows + 1) for cut in cuts), rows]


@settings(deadline=None, max_examples=examples(10))
@given(
    rows=st.lists(st.tuples(elements, elements), min_size=1, max_size=30),
    cuts=st.lists(st.integers(0, 30), min_size=1, max_size=3),
    steps=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=3),
    sources=st.sampled_from([1, 2]),
    interval=st.sampled_from([0, 1, 4, 50]),
    is_chained=st.booleans(),
    by_messages=PLACES,
    time=st.sampled_from(TimeCharacteristic),
)
def test_a_job_over_collections_gives_the_elements_of_the_whole_in_their_order(
    rows: list[tuple[Element, Element]],
    cuts: list[int],
    steps: list[str],
    sources: int,
    interval: int,
    is_chained: bool,
    by_messages: list[bool],
    time: TimeCharacteristic,
) -> None:
    def build(parallelism: int, start: int, stop: int) -> DataStream:
        env = environment(parallelism, max(interval, int(time is IngestionTime)), is_chained)
        env.set_stream_time_characteristic(time)
        streams = [env.from_collection([row[n] for row in rows[start:stop]], ELEMENT) for n in range(sources)]
        stream = streams[0].union(*streams[1:]) if sources > 1 else streams[0]
        for step in steps:
            stream = STEPS[step](stream)
        return stream

    whole = list(build(1, 0, len(rows)).execute_and_collect())
    assert in_parts(build, [1], bounds_of(cuts, len(rows)), by_messages) == whole


@settings(deadline=None, max_examples=examples(10))
@given(
    rows=st.lists(elements, min_size=1, max_size=30),
    cuts=st.lists(st.integers(0, 30), min_size=1, max_size=3),
    first=st.sampled_from(["map", "filter", "rebalance", "new chain", "less parallel"]),
    step=st.sampled_from(BY_KEY),
    parallelism=st.lists(st.sampled_from([1, 2, 3, 7]), min_size=4, max_size=4),
    interval=st.sampled_from([1, 4]),
    is_chained=st.booleans(),
    by_messages=PLACES,
)
def test_at_another_parallelism_a_job_gives_the_elements_of_the_whole(
    rows: list[Element],
    cuts: list[int],
    first: str,
    step: str,
    parallelism: list[int],
    interval: int,
    is_chained: bool,
    by_messages: list[bool],
) -> None:
    def build(parallelism: int, start: int, stop: int) -> DataStream:
        env = environment(parallelism, interval, is_chained)
        stream = env.from_collection(rows[start:stop], ELEMENT).assign_timestamps_and_watermarks(STRATEGY)
        stream = STEPS[first](stream)
        if step in ("windows", "sessions", "near ones"):  # which assign watermarks anew
            stream = STEPS["less parallel"](stream)
        return STEPS[step](stream)

    whole = list(build(1, 0, len(rows)).execute_and_collect())
    parts = in_parts(build, parallelism, bounds_of(cuts, len(rows)), by_messages)
    assert sorted(parts) == sorted(whole)


@settings(deadline=None, max_examples=examples(10))
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 12), st.integers(0, 2), st.sampled_from("abc")),
        min_size=1,
        max_size=30,
    ),
    cuts=st.lists(st.integers(0, 30), min_size=1, max_size=3),
    steps=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=2),
    ends=st.sampled_from([None, None, "event", "tick"]),
    idleness=st.sampled_from([None, 3, 40]),
    interval=st.sampled_from([0, 1, 7]),
    by_rate=st.booleans(),
    has_splits=st.booleans(),
    by_messages=PLACES,
)
def test_a_job_over_a_log_gives_the_elements_of_the_whole_in_their_order(
    rows: list[tuple[int, int, int, str]],
    cuts: list[int],
    steps: list[str],
    ends: str | None,
    idleness: int | None,
    interval: int,
    by_rate: bool,
    has_splits: bool,
    by_messages: list[bool],
) -> None:
    has_splits = has_splits and not by_rate
    clock, entries = 4, [("a", 3, 3, split) for split in range(3)] if has_splits else []
    for stride, late, split, user in rows:
        clock += stride
        entries.append((user, clock - late, clock, split if has_splits else 0))
    entries.sort(key=lambda entry: (entry[2], entry[3]))
    first = len(entries) - len(rows)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(2))
    if ends is not None:
        strategy = WatermarkStrategy.for_generator(ends_early(ends))
    if idleness is not None:
        strategy = strategy.with_idleness(Duration.of_millis(idleness))

    def build(parallelism: int, start: int, stop: int) -> DataStream:
        columns = list(zip(*entries[start:stop], strict=True)) or [()] * 4
        types = {"user": pa.string(), "ts": pa.int64(), "at": pa.int64(), "split": pa.int64()}
        arrays = [pa.array(column, kind) for column, kind in zip(columns, types.values(), strict=True)]
        log = environment(parallelism, interval).from_event_log(
            pa.table(arrays, list(types)),
            timestamp="ts",
            arrival=None if by_rate else "at",
            split="split" if has_splits else None,
        )
        stream = log.assign_timestamps_and_watermarks(strategy).map(
            lambda row: (row.ts, row.user, row.at % 9)
        )
        for step in steps:
            stream = STEPS[step](stream)
        return stream

    bounds = [0, *sorted(first + cut % (len(rows) + 1) for cut in cuts), len(entries)]
    whole = list(build(1, 0, len(entries)).execute_and_collect())
    assert in_parts(build, [1], bounds, by_messages) == whole


class Scripted(SourceFunction, CheckpointedFunction):
    """Does what a script says, up to a line of it; its state is how many lines are done."""

    def __init__(self, script: list[tuple[str, Element]], stop: int) -> None:
        self.script = script
        self.stop = stop
        self.done = 0

    def initialize_state(self, context: Any) -> None:
        self.lines = context.get_operator_state_store().get_list_state(ListStateDescriptor("lines"))
        assert context.is_restored() == bool(self.lines.get())
        for done in self.lines.get():
            self.done = done

    def snapshot_state(self, context: Any) -> None:
        assert context.get_checkpoint_id() == 1
        self.lines.update([self.done])

    def run(self, ctx: Any) -> None:
        for what, element in self.script[self.done : self.stop]:
            if what == "collect":
                ctx.collect(element)
            elif what == "timed":
                ctx.collect_with_timestamp(element, element[0])
            elif what == "watermark":
                ctx.emit_watermark(Watermark(element[0]))
            elif what == "idle":
                ctx.mark_as_temporarily_idle()
            else:
                ctx.sleep(element[0])
        self.done = self.stop

    def cancel(self) -> None:
        """Let the script end."""


@settings(deadline=None, max_examples=examples(8))
@given(
    script=st.lists(
        st.tuples(st.sampled_from(["collect", "timed", "timed", "watermark", "idle", "sleep"]), elements),
        min_size=1,
        max_size=20,
    ),
    cuts=st.lists(st.integers(0, 20), min_size=1, max_size=3),
    steps=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=2),
    time=st.sampled_from(TimeCharacteristic),
    idle_timeout=st.sampled_from([None, 3, 20]),
    interval=st.sampled_from([1, 7]),
    by_messages=PLACES,
)
def test_a_job_over_a_source_function_that_has_states_gives_the_elements_of_the_whole_in_their_order(
    script: list[tuple[str, Element]],
    cuts: list[int],
    steps: list[str],
    time: TimeCharacteristic,
    idle_timeout: int | None,
    interval: int,
    by_messages: list[bool],
) -> None:
    def build(parallelism: int, start: int, stop: int) -> DataStream:
        env = environment(parallelism, interval)
        env.set_stream_time_characteristic(time)
        timeout = None if idle_timeout is None else Duration.of_millis(idle_timeout)
        stream = env.add_source(Scripted(script, stop), type_info=ELEMENT, idle_timeout=timeout)
        for step in steps:
            stream = STEPS[step](stream)
        return stream

    whole = list(build(1, 0, len(script)).execute_and_collect())
    assert in_parts(build, [1], bounds_of(cuts, len(script)), by_messages) == whole


@dataclass(frozen=True)
class Listed(SourceSplit):
    """The elements of a list, which need not be there from the start."""

    split_id: str
    listed: tuple[Element, ...]

    def elements(self) -> Iterator[Element]:
        yield from self.listed


class InOneSplit(Source):
    """A source with one split, or, like one of files, with none if there is nothing."""

    def __init__(self, listed: Sequence[Element], has_empty_split: bool) -> None:
        self.listed = tuple(listed)
        self.has_empty_split = has_empty_split

    def create_splits(self, parallelism: int) -> list[Listed]:
        return [Listed("0", self.listed)] if self.listed or self.has_empty_split else []


@settings(deadline=None, max_examples=examples(8))
@given(
    rows=st.lists(elements, min_size=1, max_size=20),
    cuts=st.lists(st.integers(0, 20), min_size=1, max_size=3),
    steps=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=2),
    has_watermarks=st.booleans(),
    idleness=st.sampled_from([None, 2, 9]),
    interval=st.sampled_from([0, 1, 4]),
    rate=st.sampled_from([100, 1000]),
    has_empty_split=st.booleans(),
    by_messages=PLACES,
)
def test_a_job_over_a_source_of_one_split_gives_the_elements_of_the_whole_in_their_order(
    rows: list[Element],
    cuts: list[int],
    steps: list[str],
    has_watermarks: bool,
    idleness: int | None,
    interval: int,
    rate: int,
    has_empty_split: bool,
    by_messages: list[bool],
) -> None:
    strategy = STRATEGY if has_watermarks else WatermarkStrategy.no_watermarks()
    if idleness is not None:
        strategy = strategy.with_idleness(Duration.of_millis(idleness))

    def build(parallelism: int, start: int, stop: int) -> DataStream:
        env = environment(parallelism, interval)
        env.get_config().set_arrival_rate(rate)
        stream = env.from_source(InOneSplit(rows[start:stop], has_empty_split), strategy, "listed", ELEMENT)
        for step in steps:
            stream = STEPS[step](stream)
        return stream

    whole = list(build(1, 0, len(rows)).execute_and_collect())
    assert in_parts(build, [1], bounds_of(cuts, len(rows)), by_messages) == whole


class InSplits(Source):
    """A source whose splits have parts of lists, in the order of the lists; some splits may be left out."""

    def __init__(self, parts: Sequence[Sequence[Element]], left_out: Collection[int] = ()) -> None:
        self.splits = [
            Listed(str(number), tuple(part)) for number, part in enumerate(parts) if number not in left_out
        ]

    def create_splits(self, parallelism: int) -> list[Listed]:
        return self.splits


def may_end_unseen(parts: Sequence[Sequence[Element]], order: Sequence[int], stop: int) -> bool:
    """Whether a subtask, each of one split, ends amid the elements up to a place, but might go on for all they tell.

    Its next element would come behind the last one, in the same round of polls.
    """
    counts = [order[:stop].count(number) for number in range(len(parts))]
    polls, last = max((count, number) for number, count in enumerate(counts))
    return any(
        count == len(part) and count == polls - 1 and number > last
        for number, (count, part) in enumerate(zip(counts, parts, strict=True))
    )


def emitted(parts: Sequence[Sequence[Element]], parallelism: int) -> list[int]:
    """Which split each element comes from, in the order in which a source emits them."""
    numbered = [[(0, str(number), 0) for _ in part] for number, part in enumerate(parts)]
    env = environment(parallelism, 1)
    stream = env.from_source(InSplits(numbered), WatermarkStrategy.no_watermarks(), "listed", ELEMENT)
    return [int(split) for _, split, _ in stream.execute_and_collect()]


def example_of_splits(parts: list[list[Element]], cuts: list[int], **others: Any) -> Any:
    """An explicit example for the job over several splits: what is not given is as usual."""
    usual: dict[str, Any] = {
        "steps": ["side output"],
        "parallelism": 1,
        "may_end_early": False,
        "idleness": None,
        "interval": 0,
        "rate": 100,
        "are_found_late": False,
        "by_messages": [False] * 4,
    }
    return example(parts=parts, cuts=cuts, **usual | others)


@settings(deadline=None, max_examples=examples(8))
@given(
    parts=st.lists(st.lists(elements, max_size=8), min_size=1, max_size=5),
    cuts=st.lists(st.integers(0, 40), min_size=1, max_size=3),
    steps=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=2),
    parallelism=st.sampled_from([1, 1, 2, 3]),
    may_end_early=st.booleans(),
    idleness=st.sampled_from([None, 2, 9]),
    interval=st.sampled_from([0, 1, 4]),
    rate=st.sampled_from([100, 1000]),
    are_found_late=st.booleans(),
    by_messages=PLACES,
)
@example_of_splits(
    [[(0, "a", 0), (0, "a", 0)], [(0, "b", 0)]], [1], steps=["map"], interval=1, are_found_late=True
)
@example_of_splits([[(0, "a", 0), (0, "a", 0)]], [2], parallelism=2, idleness=2, interval=1)
@example_of_splits([[(0, "a", 0), (0, "a", 0)], [(0, "a", 0)]], [3])
@example_of_splits([[(0, "a", 0)], [(0, "a", 0), (0, "a", 0), (0, "a", 0)]], [1])
@example_of_splits(
    [[], [(0, "a", 0)]],
    [1],
    parallelism=2,
    may_end_early=True,
    interval=1,
    by_messages=[False, True, False, True],
)
@example_of_splits([[(1, "a", 0)], [(0, "a", 0), (0, "a", 0)]], [1], may_end_early=True, interval=1)
@example_of_splits(
    [[(0, "a", 0)], [(0, "a", 8), (0, "a", 0), (0, "a", 0)], [(0, "a", 0), (0, "a", 0)]], [6], rate=1000
)
def test_a_job_over_a_source_of_several_splits_gives_the_elements_of_the_whole_in_their_order(
    parts: list[list[Element]],
    cuts: list[int],
    steps: list[str],
    parallelism: int,
    may_end_early: bool,
    idleness: int | None,
    interval: int,
    rate: int,
    are_found_late: bool,
    by_messages: list[bool],
) -> None:
    strategy = ENDS_EARLY if may_end_early else STRATEGY
    if idleness is not None:
        strategy = strategy.with_idleness(Duration.of_millis(idleness))
    if parallelism > 1:  # splits that have ended are there again, so that others stay with their subtasks
        parts = parts[:parallelism]
    order = emitted(parts, parallelism)
    if parallelism > 1:
        assume(not any(may_end_unseen(parts, order, cut) for cut in bounds_of(cuts, len(order))[1:-1]))

    def build(_: int, start: int, stop: int) -> DataStream:
        before, here = order[:start], order[:stop]
        given_here = [part[before.count(n) : here.count(n)] for n, part in enumerate(parts)]
        # With several subtasks those that have ended are there, so that others stay with their own.
        left_out = {n for n, part in enumerate(parts) if before.count(n) == len(part) and parallelism == 1}
        if are_found_late:
            last = max(here, default=-1)
            left_out |= set(range(last + 1, len(parts)))
        env = environment(parallelism, interval)
        env.get_config().set_arrival_rate(rate)
        stream = env.from_source(InSplits(given_here, left_out), strategy, "listed", ELEMENT)
        for step in steps:
            stream = STEPS[step](stream)
        return stream

    whole = list(build(1, 0, len(order)).execute_and_collect())
    assert in_parts(build, [parallelism], bounds_of(cuts, len(order)), by_messages) == whole


class Told(SinkFunction):
    """Notes what comes."""

    elements: ClassVar[list[Any]] = []

    def invoke(self, value: Any, context: Any = None) -> None:
        self.elements.append(value)


class Stopping(MapFunction):
    """Stops its job when it has seen so many elements."""

    left: ClassVar[int] = -1
    client: ClassVar[Queue[JobClient]] = Queue()
    stopped: ClassVar[list[Any]] = []

    def map(self, value: Any) -> Any:
        Stopping.left -= 1
        if Stopping.left == 0:
            self.stopped.append(self.client.get().stop_with_savepoint(False, "memory"))
        return value


@settings(deadline=None, max_examples=examples(6))
@given(
    parts=st.lists(st.lists(elements, max_size=8), min_size=2, max_size=4),
    script=st.lists(
        st.tuples(st.sampled_from(["collect", "timed", "watermark", "idle", "sleep"]), elements), max_size=9
    ),
    cut=st.integers(1, 30),
    step=st.sampled_from(sorted(STEPS)),
    parallelism=st.sampled_from([1, 2, 3]),
    interval=st.sampled_from([1, 4]),
)
@example(
    parts=[[(0, "a", 0), (49, "a", 0)], [(0, "a", 0)] * 3],
    script=[("collect", (0, "a", 0))],
    cut=1,
    step="sessions",
    parallelism=2,
    interval=1,
)
def test_a_job_that_is_stopped_amid_its_sources_gives_the_elements_of_the_whole_in_their_order(
    parts: list[list[Element]],
    script: list[tuple[str, Element]],
    cut: int,
    step: str,
    parallelism: int,
    interval: int,
) -> None:
    def build() -> StreamExecutionEnvironment:
        env = environment(parallelism, interval)
        splits = env.from_source(InSplits(parts), STRATEGY, "listed", ELEMENT)
        streams = (
            env.from_collection(parts[0], ELEMENT),
            env.add_source(Scripted(script, len(script)), "s", ELEMENT),
        )
        united = splits.union(*(each.assign_timestamps_and_watermarks(STRATEGY) for each in streams))
        STEPS[step](united.map(Stopping(), ELEMENT)).add_sink(Told()).set_parallelism(1)
        return env

    def run(left: int, **checkpoints: Any) -> list[Any]:
        Told.elements.clear()
        Stopping.stopped.clear()
        Stopping.left = left
        client = build().execute_async(**checkpoints)
        Stopping.client.put(client)
        client.get_job_execution_result().result()
        if left < 0 or not Stopping.stopped:
            Stopping.client.get()
        return Told.elements.copy()

    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("flinkcore.elements.arrivals.element_arrivals.ELEMENTS_AT_ONCE", 1)
        patch.chdir(folder)
        whole = run(-1)
        before = run(cut)
        path = Stopping.stopped[0].result() if Stopping.stopped else None
        assert whole == (before if path is None else before + run(-1, restore_from=path))


class Saving(MapFunction):
    """Triggers a savepoint of its job when it has seen so many elements."""

    left: ClassVar[int] = -1
    client: ClassVar[Queue[JobClient]] = Queue()
    saved: ClassVar[list[Any]] = []

    def map(self, value: Any) -> Any:
        Saving.left -= 1
        if Saving.left == 0:
            self.saved.append(self.client.get().trigger_savepoint("memory"))
        return value


@settings(deadline=None, max_examples=examples(6))
@given(
    parts=st.lists(st.lists(elements, max_size=8), min_size=2, max_size=4),
    cut=st.integers(1, 30),
    step=st.sampled_from(sorted(STEPS)),
    parallelism=st.sampled_from([1, 2, 3]),
    interval=st.sampled_from([1, 4]),
)
def test_a_job_with_a_savepoint_amid_its_run_gives_the_elements_that_it_would_have_given(
    parts: list[list[Element]], cut: int, step: str, parallelism: int, interval: int
) -> None:
    def build() -> StreamExecutionEnvironment:
        env = environment(parallelism, interval)
        splits = env.from_source(InSplits(parts), STRATEGY, "listed", ELEMENT)
        collection = env.from_collection(parts[0], ELEMENT).assign_timestamps_and_watermarks(STRATEGY)
        STEPS[step](splits.union(collection).map(Saving(), ELEMENT)).add_sink(Told()).set_parallelism(1)
        return env

    def run(left: int, **checkpoints: Any) -> list[Any]:
        Told.elements.clear()
        Saving.saved.clear()
        Saving.left = left
        client = build().execute_async(**checkpoints)
        Saving.client.put(client)
        client.get_job_execution_result().result()
        if left < 0 or not Saving.saved:
            Saving.client.get()
        return Told.elements.copy()

    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("flinkcore.elements.arrivals.element_arrivals.ELEMENTS_AT_ONCE", 1)
        patch.chdir(folder)
        told: list[int] = []
        complete = ElementCheckpoints.complete

        def noting(*arguments: Any) -> None:
            told.append(len(Told.elements))
            complete(*arguments)

        patch.setattr(ElementCheckpoints, "complete", noting)
        whole = run(-1)
        assert run(cut) == whole
        if told:
            assert run(-1, restore_from=Saving.saved[0].result()) == whole[told[0] :]
