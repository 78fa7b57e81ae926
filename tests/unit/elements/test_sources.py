"""Sources with splits in jobs: timestamps, watermarks of splits, readers of one's own, alignment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from equipment.timestamped_source import TimestampedSource

from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore.common import (
    Configuration,
    Duration,
    Row,
    TimestampAssigner,
    Types,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from flinkcore.common.boundedness import Boundedness
from flinkcore.datastream import DataStream, ProcessFunction, RuntimeExecutionMode, StreamExecutionEnvironment
from flinkcore.datastream.connectors import NumberSequenceSource
from flinkcore.datastream.connectors.base import (
    InputStatus,
    ReaderOutput,
    Source,
    SourceReader,
    SourceReaderContext,
    SourceSplit,
)
from flinkcore.errors import ConfigurationError, UnsupportedOperationError, UserCodeError

MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps()


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


class Times(ProcessFunction):
    """Gives each value with its timestamp, the watermark that it meets, and the time of the clock."""

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        timers = ctx.timer_service()
        yield value, ctx.timestamp(), timers.current_watermark(), timers.current_processing_time()


def timed(stream: DataStream) -> list[Any]:
    return list(stream.process(Times()).execute_and_collect())


class AtEachEvent(WatermarkGenerator[Any]):
    """The watermark is the timestamp of the last event."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


PUNCTUATED = WatermarkStrategy.for_generator(AtEachEvent)


class Later(TimestampAssigner):
    """A second later than the source says; counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        self.calls += 1
        return self.calls * 1000 + record_timestamp


# ---- event time ----


def test_the_assigner_is_given_the_timestamp_of_the_source(env: StreamExecutionEnvironment) -> None:
    source = TimestampedSource({"a": [("x", 1), ("y", 2)], "b": [("z", 7)]})
    stream = env.from_source(source, MONOTONOUS, "timed")
    assert [(value, timestamp) for value, timestamp, *_ in timed(stream)] == [("x", 1), ("z", 7), ("y", 2)]
    each_of_its_own = env.from_source(source, MONOTONOUS.with_timestamp_assigner(Later()), "timed")
    assert [(value, at) for value, at, *_ in timed(each_of_its_own)] == [
        ("x", 1001),
        ("z", 1007),
        ("y", 2002),
    ]


def test_the_least_watermark_of_the_splits_counts_until_a_split_ends(env: StreamExecutionEnvironment) -> None:
    source = TimestampedSource({"a": [(1, 10), (2, 20), (3, 30), (4, 40)], "b": [("z", 5)]})
    watermarks = [watermark for _, _, watermark, _ in timed(env.from_source(source, PUNCTUATED, "timed"))]
    # The end of b, which the fetch of 2 finds, counts with the watermark of 3.
    assert watermarks == [MIN_TIMESTAMP, MIN_TIMESTAMP, 5, 5, 30]


def test_a_split_that_comes_back_from_idleness_holds_the_watermark_where_it_is(
    env: StreamExecutionEnvironment,
) -> None:
    class Reader(ScriptReader):
        script = (
            lambda a, b: (a.emit_watermark(Watermark(100)), b.mark_idle()),
            lambda a, b: b.collect("back", 50),
            lambda a, b: a.collect("ahead", 200),
            lambda a, b: b.collect("behind", 120),
            lambda a, b: a.collect("last", 300),
        )

    watermarks = [
        (value, at) for value, _, at, _ in timed(env.from_source(Scripted(Reader), PUNCTUATED, "a, b"))
    ]
    # A valve would have left b out until it had caught up, and have said 200 before "behind".
    assert watermarks == [("back", 100), ("ahead", 100), ("behind", 100), ("last", 120)]


def test_batch_mode_has_timestamps_and_the_last_watermark_only(env: StreamExecutionEnvironment) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    source = TimestampedSource({"a": [("x", 1), ("y", 2)], "b": [("z", 7)]})
    assert timed(env.from_source(source, PUNCTUATED, "timed")) == [
        ("x", 1, MIN_TIMESTAMP, 1),
        ("z", 7, MIN_TIMESTAMP, 1),
        ("y", 2, MIN_TIMESTAMP, 2),
    ]


def test_records_get_their_declared_type_before_their_timestamp(env: StreamExecutionEnvironment) -> None:
    class AtOfRow(TimestampAssigner):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            return int(value["at"])

    named = Types.ROW_NAMED(["name", "at"], [Types.STRING(), Types.LONG()])
    source = TimestampedSource({"a": [(("x", 11), None)]})
    for mode in (RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH):
        env.set_runtime_mode(mode)
        stream = env.from_source(source, MONOTONOUS.with_timestamp_assigner(AtOfRow()), "timed", named)
        assert [found[:2] for found in timed(stream)] == [(Row(name="x", at=11), 11)]


# ---- arrivals ----


def test_each_split_gives_its_elements_at_the_rate(env: StreamExecutionEnvironment) -> None:
    @dataclass(frozen=True)
    class Letters(SourceSplit):
        split_id: str

        def elements(self) -> Any:
            return iter(self.split_id)

    class Words(Source):
        def create_splits(self, parallelism: int) -> list[Letters]:
            return [Letters("abc"), Letters(""), Letters("x"), Letters("yz")]

    env.get_config().set_arrival_rate(100)
    for parallelism in (1, 3):
        stream = env.from_source(Words(), MONOTONOUS, "words").set_parallelism(parallelism)
        arrivals = [
            (value, now) for value, _, _, now in timed(stream.map(lambda value: value).set_parallelism(1))
        ]
        assert sorted(arrivals) == [("a", 10), ("b", 20), ("c", 30), ("x", 10), ("y", 10), ("z", 20)]


@pytest.mark.parametrize("rate", [1000, 2500, 7])
def test_splits_without_a_reader_of_their_own_arrive_as_if_they_had_one(
    env: StreamExecutionEnvironment, rate: int
) -> None:
    class Alone(NumberSequenceSource):
        def create_reader(self, context: SourceReaderContext) -> SourceReader[Any, Any]:
            return super().create_reader(context)

    env.get_config().set_arrival_rate(rate)
    found = []
    for kind in (NumberSequenceSource, Alone):
        numbers = env.from_source(kind(1, 600), MONOTONOUS, "numbers").set_parallelism(1)
        others = env.from_source(kind(1, 3), MONOTONOUS, "others").set_parallelism(1)
        found.append((timed(numbers), timed(numbers.union(others))))
    assert found[0] == found[1]
    assert len(found[0][1]) == 603


@dataclass(frozen=True)
class Part(SourceSplit):
    split_id: str


class Scripted(Source):
    """The splits a and b, with a reader of a given class."""

    def __init__(
        self, reader: type[SourceReader[Any, Any]], boundedness: Boundedness = Boundedness.BOUNDED
    ) -> None:
        self._reader = reader
        self._boundedness = boundedness

    @property
    def boundedness(self) -> Boundedness:
        return self._boundedness

    def create_splits(self, parallelism: int) -> list[Part]:
        return [Part("a"), Part("b")]

    def create_reader(self, context: SourceReaderContext) -> SourceReader[Any, Any]:
        return self._reader(context)  # type: ignore[call-arg]


class ScriptReader(SourceReader[Any, Part]):
    """Does one thing of its script after the other, each with the outputs of both splits."""

    script: Sequence[Any] = ()
    noted: list[Any] = []  # noqa: RUF012 - classes of tests have their own

    def __init__(self, context: SourceReaderContext) -> None:
        self.context = context
        self._left = iter(type(self).script)

    def start(self) -> None:
        pass

    def poll_next(self, output: ReaderOutput[Any]) -> InputStatus:
        step = next(self._left, None)
        if step is None:
            return InputStatus.END_OF_INPUT
        done = step(*(output.create_output_for_split(split) for split in ("a", "b")))
        return done if isinstance(done, InputStatus) else InputStatus.MORE_AVAILABLE

    def snapshot_state(self, checkpoint_id: int) -> Sequence[Part]:
        raise AssertionError("jobs take no checkpoint")

    def add_splits(self, splits: Sequence[Part]) -> None:
        self.splits = splits

    def notify_no_more_splits(self) -> None:
        pass

    def close(self) -> None:
        self.noted.append("closed")


def test_a_reader_that_has_nothing_is_polled_again_a_millisecond_later(
    env: StreamExecutionEnvironment,
) -> None:
    class Waiting(ScriptReader):
        script = (
            lambda a, b: a.collect("first"),
            lambda a, b: InputStatus.NOTHING_AVAILABLE,
            lambda a, b: InputStatus.NOTHING_AVAILABLE,
            lambda a, b: a.collect("second"),
        )

    env.get_config().set_arrival_rate(50)
    found = [
        (value, now) for value, _, _, now in timed(env.from_source(Scripted(Waiting), MONOTONOUS, "waiting"))
    ]
    assert found == [("first", 20), ("second", 22)]


def test_a_source_without_end_gives_results_before_each_poll_and_is_closed(
    env: StreamExecutionEnvironment,
) -> None:
    class Endless(ScriptReader):
        noted: list[Any] = []  # noqa: RUF012

        def poll_next(self, output: ReaderOutput[Any]) -> InputStatus:
            self.noted.append("poll")
            output.collect(len(self.noted))
            return InputStatus.MORE_AVAILABLE

    source = Scripted(Endless, Boundedness.CONTINUOUS_UNBOUNDED)
    with env.from_source(source, MONOTONOUS, "endless").execute_and_collect() as results:
        assert [next(results) for _ in range(4)] == [1, 2, 3, 4]
        assert Endless.noted == ["poll"] * 4
    assert Endless.noted[-1] == "closed"
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    with pytest.raises(ConfigurationError, match="unbounded"):
        list(env.from_source(source, MONOTONOUS, "endless").execute_and_collect())


def test_a_reader_knows_its_subtask_and_the_clock(env: StreamExecutionEnvironment) -> None:
    class Telling(ScriptReader):
        def poll_next(self, output: ReaderOutput[Any]) -> InputStatus:
            context = self.context
            place = context.subtask_index, context.parallelism, [split.split_id for split in self.splits]
            output.collect((*place, context.current_processing_time()))
            return (
                InputStatus.MORE_AVAILABLE
                if context.current_processing_time() < 2
                else InputStatus.END_OF_INPUT
            )

    stream = env.from_source(Scripted(Telling), MONOTONOUS, "telling").set_parallelism(2)
    results = list(stream.execute_and_collect())
    assert results == [(0, 2, ["a"], 1), (1, 2, ["b"], 1), (0, 2, ["a"], 2), (1, 2, ["b"], 2)]


def test_a_failing_reader_is_closed(env: StreamExecutionEnvironment) -> None:
    class Failing(ScriptReader):
        noted: list[Any] = []  # noqa: RUF012

        def poll_next(self, output: ReaderOutput[Any]) -> InputStatus:
            return None  # type: ignore[return-value]

    with pytest.raises(UserCodeError, match=r"Failing.poll_next gave None"):
        list(env.from_source(Scripted(Failing), MONOTONOUS, "failing").execute_and_collect())
    assert Failing.noted == ["closed"]


# ---- alignment ----

ALIGNED = PUNCTUATED.with_watermark_alignment("group", Duration.of_millis(20), Duration.of_millis(5))


def aligned_environment(**settings: str) -> StreamExecutionEnvironment:
    name = "pipeline.watermark-alignment."
    values = {name + key.replace("_", "-"): value for key, value in {"buffer_size": "0", **settings}.items()}
    return StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(values))


def steps(step_ms: int) -> list[tuple[int, int]]:
    return [(timestamp, timestamp) for timestamp in range(0, 1001, step_ms)]


def furthest_ahead(found: list[Any]) -> int:
    """How far the fast elements, of even tens, were ahead of the slow ones at most."""
    slow, ahead = 0, 0
    for name, timestamp in found:
        slow = timestamp if name == "slow" else slow
        ahead = max(ahead, timestamp - slow) if name == "fast" and slow < 1000 else ahead
    return ahead


def named(
    env: StreamExecutionEnvironment, strategy: WatermarkStrategy, name: str, step_ms: int
) -> DataStream:
    elements = [((name, at), at) for _, at in steps(step_ms)]
    return env.from_source(TimestampedSource({name: elements}), strategy, name)


@pytest.mark.parametrize(("strategy", "ahead"), [(ALIGNED, range(20, 121)), (PUNCTUATED, range(700, 1001))])
def test_a_source_waits_for_the_slower_ones_of_its_group(strategy: WatermarkStrategy, ahead: range) -> None:
    env = aligned_environment()
    found = list(
        named(env, strategy, "fast", 10).union(named(env, strategy, "slow", 2)).execute_and_collect()
    )
    assert len(found) == 101 + 501
    assert furthest_ahead(found) in ahead


@pytest.mark.parametrize(("strategy", "ahead"), [(ALIGNED, range(20, 121)), (PUNCTUATED, range(700, 1001))])
def test_a_split_waits_for_the_slower_ones_of_its_source(strategy: WatermarkStrategy, ahead: range) -> None:
    splits = {name: [((name, at), at) for _, at in steps(by)] for name, by in (("fast", 10), ("slow", 2))}
    found = list(
        aligned_environment().from_source(TimestampedSource(splits), strategy, "both").execute_and_collect()
    )
    assert len(found) == 101 + 501
    assert furthest_ahead(found) in ahead


def test_splits_that_give_their_elements_by_themselves_can_wait() -> None:
    class Timed(TimestampAssigner):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            return int(value[1])

    @dataclass(frozen=True)
    class Steps(SourceSplit):
        split_id: str
        step_ms: int

        def elements(self) -> Any:
            return ((self.split_id, at) for _, at in steps(self.step_ms))

    class Both(Source):
        def create_splits(self, parallelism: int) -> list[Steps]:
            return [Steps("fast", 10), Steps("slow", 2)]

    env = aligned_environment().set_parallelism(2)
    for parallelism in (1, 2):
        stream = env.from_source(Both(), ALIGNED.with_timestamp_assigner(Timed()), "both")
        found = list(stream.set_parallelism(parallelism).execute_and_collect())
        assert len(found) == 101 + 501
        assert furthest_ahead(found) in range(20, 121)


class Unpausable(ScriptReader):
    script = tuple(lambda a, b, at=at: (a.collect(at, at), b.collect(0, 0)) for at in range(0, 400, 4))


def test_a_reader_that_cannot_pause_its_splits_fails_unless_that_is_allowed() -> None:
    stream = aligned_environment().from_source(Scripted(Unpausable), ALIGNED, "unpausable")
    with pytest.raises(
        UnsupportedOperationError, match=r"Unpausable cannot pause.*allow-unaligned-source-splits to true"
    ):
        list(stream.execute_and_collect())
    env = aligned_environment(allow_unaligned_source_splits="true")
    allowed = env.from_source(Scripted(Unpausable), ALIGNED, "unpausable")
    assert len(list(allowed.execute_and_collect())) == 200


def test_alignment_is_refused_where_nothing_can_wait(env: StreamExecutionEnvironment) -> None:
    elements = env.from_collection([1, 2], Types.INT())
    with pytest.raises(
        ConfigurationError, match="assign_timestamps_and_watermarks cannot wait for other streams"
    ):
        list(elements.assign_timestamps_and_watermarks(ALIGNED).execute_and_collect())
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    with pytest.raises(ConfigurationError, match="BATCH has no watermarks to align"):
        list(env.from_source(NumberSequenceSource(1, 2), ALIGNED, "numbers").execute_and_collect())


def test_the_size_of_the_buffer_is_not_negative() -> None:
    with pytest.raises(ConfigurationError, match=r"pipeline.watermark-alignment.buffer-size must be"):
        aligned_environment(buffer_size="-1")
