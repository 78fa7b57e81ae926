"""Joins of what operators give, or of that and a log, against operators in a row and plain models of joins."""

from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
from equipment.example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from jobs.scripted_logs import RESULTS, ROWS, WATERMARKS, by_key
from jobs.two_inputs import happenings, operator_run
from jobs.two_logs import Rows, TwoLogs
from models.chained_operators import TOLD, Counts, Followers, Leader, happenings_behind
from models.joined_logs import co_group, interval_join
from models.process_replay import Emitted, Scripted

from flinkcore.columnar.stages import function_stage
from flinkcore.common import OutputTag, Row, Time
from flinkcore.datastream import (
    DataStream,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.functions import CoGroupFunction, ProcessJoinFunction
from flinkcore.datastream.window import WindowOperation

NAMES = "user", "who"
LATE = OutputTag("left"), OutputTag("right")
PAIRS = pa.schema({"user": pa.string(), "left": pa.int64(), "right": pa.int64()})
GROUPS = pa.schema({"user": pa.string(), "first": pa.list_(pa.int64()), "second": pa.list_(pa.int64())})
ASSIGNERS = {
    "tumbling": TumblingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(3)),
    "sliding": SlidingEventTimeWindows.of(Time.milliseconds(12), Time.milliseconds(5)),
    "session": EventTimeSessionWindows.with_gap(Time.milliseconds(6)),
}

logs = st.tuples(st.lists(ROWS, max_size=25), st.lists(ROWS, max_size=25))
jobs = {
    "rows": logs,
    "leaders": st.sampled_from(
        [("function", "tumbling"), ("sliding", "log"), ("log", "function"), ("session", "function")]
    ),
    "bounds": st.tuples(*[st.sampled_from(WATERMARKS)] * 2),
    "idlenesses": st.tuples(*[st.sampled_from([None, 1, 10, 60])] * 2),
    "interval": st.sampled_from([1, 5, 50]),
    "parallelism": st.sampled_from([1, 3]),
    "batch_rows": st.sampled_from([1, 3, 100]),
}


class Pairs(ProcessJoinFunction[Row, Row]):
    def process_element(self, left: Row, right: Row, ctx: ProcessJoinFunction.Context) -> Any:
        yield left.user, left.number, right.number


class Groups(CoGroupFunction[Row, Row]):
    def co_group(self, first: list[Row], second: list[Row]) -> Any:
        user = first[0].user if first else second[0].who
        return [(user, [row.number for row in first], [row.number for row in second])]


class TwoOperators:
    """What operators over two logs give, as streams of a job and as what happens to an operator behind them."""

    def __init__(self, leaders: tuple[str, str], given_logs: TwoLogs) -> None:
        self.logs = given_logs
        self.streams = [
            self._stream(kind, NAMES[log], given_logs.streams[log]) for log, kind in enumerate(leaders)
        ]
        self._leaders = [self._leader(kind, NAMES[log]) for log, kind in enumerate(leaders)]

    def _stream(self, kind: str, name: str, stream: DataStream) -> DataStream:
        if kind == "log":
            return stream.select(name, "number")
        keyed = stream.key_by(name)
        if kind != "function":
            counted = keyed.window(ASSIGNERS[kind]).allowed_lateness(8).aggregate(number=count())
            return counted.select(name, "number")
        # Results of processing-time timers have no timestamps, which joins ask for.
        results = keyed.process(Scripted(), RESULTS).filter(pc.field("what") != "PROCESSING_TIME")
        return results.select("number", **{name: pc.field("user")})

    def _leader(self, kind: str, name: str) -> Leader | None:
        def key_of(row: Row) -> Any:
            return getattr(row, name)

        if kind == "log":
            return None
        if kind != "function":
            windows = ASSIGNERS[kind]
            operation = WindowOperation(
                windows, windows.get_default_trigger(), allowed_lateness_ms=8, window_function=Counts()
            )
            return Leader(operation, key_of, lambda value: Row(**{name: value[0], "number": value[3]}))
        return Leader(
            Scripted(),
            key_of,
            lambda value: (
                None if value[1] == "PROCESSING_TIME" else Row(**{name: value[0], "number": value[2]})
            ),
        )

    def happened(self) -> Any:
        """What happens to an operator behind these."""
        return happenings_behind(self._leaders, happenings(self.logs.models(), self.logs.rows()))


def two_operators(
    rows: Rows, leaders: Any, bounds: Any, idlenesses: Any, interval: int, parallelism: int, batch_rows: int
) -> TwoOperators:
    return TwoOperators(leaders, TwoLogs(rows, bounds, idlenesses, interval, parallelism, batch_rows))


def emitted(table: pa.Table) -> list[Emitted]:
    return [(None, tuple(row.values())[:-1], row["time"]) for row in table.to_pylist()]


@settings(deadline=None, max_examples=examples(30))
@given(lower=st.integers(-12, 12), width=st.sampled_from([0, 2, 8, 30]), job=st.fixed_dictionaries(jobs))
def test_an_interval_join_of_results_gives_the_pairs_of_the_model(
    lower: int, width: int, job: dict[str, Any]
) -> None:
    operators = two_operators(**job)
    left, right = operators.streams
    join = left.key_by("user").interval_join(right.key_by("who")).between(lower, lower + width)
    join = join.side_output_left_late_data(LATE[0]).side_output_right_late_data(LATE[1])
    result = join.process(Pairs(), PAIRS, timestamp_column="time").execute()
    replayed = emitted(result.to_arrow())
    expected = interval_join(operators.happened(), lower, lower + width)
    assert by_key(replayed) == by_key([each for each in expected if each[0] is None])
    for name, tag in zip(NAMES, LATE, strict=True):
        late = [(row[name], row["number"]) for row in result.get_side_output(tag).to_arrow().to_pylist()]
        assert sorted(late) == sorted(value for output, value, _ in expected if output == tag.tag_id)


@settings(deadline=None, max_examples=examples(30))
@given(
    size=st.sampled_from([1, 5, 20]),
    slides=st.sampled_from([1, 2]),
    lateness=st.sampled_from([0, 0, 3, 40]),
    job=st.fixed_dictionaries(jobs),
)
def test_windows_of_results_fire_with_the_groups_of_the_model(
    size: int, slides: int, lateness: int, job: dict[str, Any]
) -> None:
    operators = two_operators(**job)
    slide = -(-size // slides)
    first, second = operators.streams
    assigner = SlidingEventTimeWindows.of(Time.milliseconds(size), Time.milliseconds(slide))
    groups = first.co_group(second).where("user").equal_to("who").window(assigner).allowed_lateness(lateness)
    replayed = emitted(groups.apply(Groups(), GROUPS, timestamp_column="time").to_arrow())
    expected, _ = co_group(operators.happened(), size, slide, lateness)
    assert by_key(replayed) == by_key(expected)


@settings(deadline=None, max_examples=examples(30))
@given(slice_rows=st.sampled_from([1, 4, 4096]), job=st.fixed_dictionaries(jobs))
def test_a_function_sees_the_results_of_two_operators_in_the_order_of_the_model(
    slice_rows: int, job: dict[str, Any]
) -> None:
    operators = two_operators(**job)
    connected = operators.streams[0].connect(operators.streams[1]).key_by("user", "who")
    with patch.object(function_stage, "SLICE_ROWS", slice_rows):
        replayed = emitted(connected.process(Followers(), TOLD, timestamp_column="time").to_arrow())
    assert by_key(replayed) == by_key(operator_run(Followers(), operators.happened()))
