"""`over`: frames by rows and time, by event time and arrival; what is late, and what is refused."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from flinkcore.common import Duration, Time, Watermark, WatermarkGenerator, WatermarkOutput, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.aggregates import (
    collect,
    count,
    count_distinct,
    first,
    last,
    max_,
    mean,
    min_,
    sum_,
)
from flinkcore.errors import ArgumentTypeError, ConfigurationError, DataError, SchemaError


class Behind(WatermarkGenerator[Any]):
    """After each event, its timestamp less 1,000 ms."""

    last = -(2**63)

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        if event_timestamp - 1_000 > self.last:
            self.last = event_timestamp - 1_000
            output.emit_watermark(Watermark(self.last))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


def keyed(rows: list[tuple[str, int | None, int]], parallelism: int = 1, **columns: Any) -> Any:
    """A stream of (key, value, timestamp) by key; row n arrives at n ms."""
    users, values, times = zip(*rows, strict=True)
    table = pa.table(
        {
            "user": pa.array(users, pa.string()),
            "v": pa.array(values, pa.int64()),
            "ts": pa.array(times, pa.int64()),
            "at": pa.array(range(len(rows)), pa.int64()),
            **columns,
        }
    )
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    log = env.from_event_log(table, timestamp="ts", arrival="at", timestamp_unit="ms", arrival_unit="ms")
    return log.assign_timestamps_and_watermarks(WatermarkStrategy.for_generator(Behind)).key_by("user")


def found(stream: Any, *names: str) -> list[tuple[Any, ...]]:
    table = stream.execute().to_arrow()
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))


# (key, value, timestamp): timestamp 2,000 comes when the watermark is 2,000.
ROWS = [
    ("a", 1, 1_000),
    ("a", 2, 1_000),
    ("a", 4, 3_000),
    ("a", 8, 2_000),
    ("a", 16, 3_000),
    ("a", 32, 5_000),
]


def test_a_frame_of_rows_goes_back_from_each_row() -> None:
    over = keyed(ROWS).over(1).aggregate(total=sum_("v"), least=min_("v"), n=count())
    assert found(over, "v", "total", "least", "n") == [
        (1, 1, 1, 1),
        (2, 3, 1, 2),
        (8, 10, 2, 2),
        (4, 12, 4, 2),
        (16, 20, 4, 2),
        (32, 48, 16, 2),
    ]


def test_rows_of_one_timestamp_have_one_result_in_a_frame_of_time() -> None:
    over = keyed(ROWS).over(Time.seconds(2)).aggregate(total=sum_("v"), values=collect("v"))
    assert found(over, "v", "total", "values") == [
        (1, 3, [1, 2]),
        (2, 3, [1, 2]),
        (8, 11, [1, 2, 8]),
        (4, 31, [1, 2, 8, 4, 16]),
        (16, 31, [1, 2, 8, 4, 16]),
        (32, 52, [4, 16, 32]),
    ]


def test_without_a_bound_rows_at_the_watermark_are_late() -> None:
    for unit, totals in (("range", [3, 3, 23, 23, 55]), ("rows", [1, 3, 7, 23, 55])):
        result = keyed(ROWS).over(unit=unit).aggregate(total=sum_("v")).execute()
        assert result.to_arrow().column("total").to_pylist() == totals
        assert result.report.late == 1
        assert "1 late" in str(result.report)


def test_a_late_row_of_a_bounded_frame_comes_with_the_next_watermark() -> None:
    over = keyed(ROWS).over(1).aggregate(n=count()).with_emitted_at()
    emitted = over.execute().to_arrow()
    times = emitted.column("emitted_at").cast(pa.int64()).to_pylist()
    assert dict(zip(emitted.column("v").to_pylist(), times, strict=True))[8] == 5


def test_a_bounded_frame_drops_rows_at_the_last_timestamp_that_has_come_up() -> None:
    rows = [("a", 1, 1_000), ("a", 2, 5_000), ("a", 4, 1_000), ("a", 8, 1_001), ("b", 1, 9_000)]
    result = keyed(rows).over(3).aggregate(total=sum_("v")).execute()
    assert sorted(result.to_arrow().column("total").to_pylist()) == [1, 1, 9, 11]
    assert result.report.late == 1


def test_a_bounded_frame_drops_timestamps_up_to_1970_as_flink_does() -> None:
    rows = [("a", 1, -5_000), ("a", 2, 0), ("a", 4, 1)]
    assert found(keyed(rows).over(3).aggregate(n=count()), "v", "n") == [(4, 1)]
    assert found(keyed(rows).over().aggregate(n=count()), "v", "n") == [(1, 1), (2, 2), (4, 3)]


def test_a_frame_of_time_forgets_a_key_that_has_been_silent() -> None:
    """As Flink 2.3 has it: row 2 comes after the clean-up at 13,001, so it does not see row 1, nor is it late."""
    rows = [("a", 1, 10_000), ("b", 1, 50_000), ("a", 2, 9_000), ("a", 4, 10_500), ("b", 2, 60_000)]
    over = keyed(rows).over(Time.seconds(2)).aggregate(total=sum_("v"))
    assert found(over, "user", "total") == [("a", 1), ("a", 2), ("a", 6), ("b", 1), ("b", 2)]


def test_a_time_of_clean_up_that_was_put_off_makes_earlier_rows_late() -> None:
    """As Flink 2.3 has it: the timer at 13,001 counts as the last timestamp of the key."""
    rows = [
        ("a", 1, 10_000),
        ("a", 2, 12_000),
        ("b", 1, 14_500),
        ("a", 4, 12_500),
        ("a", 8, 13_300),
        ("b", 2, 20_000),
    ]
    over = keyed(rows).over(Time.seconds(2)).aggregate(total=sum_("v"))
    assert found(over, "user", "v", "total") == [
        ("a", 1, 1),
        ("a", 2, 3),
        ("a", 8, 10),
        ("b", 1, 1),
        ("b", 2, 2),
    ]


def test_by_arrival_no_row_waits_and_none_is_late() -> None:
    over = keyed(ROWS).over(1, by="arrival").aggregate(values=collect("v"), seen=count_distinct("user"))
    assert found(over, "values", "seen") == [
        ([1], 1),
        ([1, 2], 1),
        ([2, 4], 1),
        ([4, 8], 1),
        ([8, 16], 1),
        ([16, 32], 1),
    ]


def test_nulls_count_as_in_sql() -> None:
    rows = [("a", 3, 1_000), ("a", None, 2_000), ("a", 1, 3_000), ("a", None, 9_000), ("a", 7, 9_500)]
    over = (
        keyed(rows)
        .over(timedelta(seconds=2))
        .aggregate(
            total=sum_("v"),
            mean=mean("v"),
            least=min_("v"),
            seen=count_distinct("v"),
            first=first("v"),
            last=last("v"),
        )
    )
    assert found(over, "total", "mean", "least", "seen", "first", "last") == [
        (3, 3.0, 3, 1, 3, 3),
        (3, 3.0, 3, 1, 3, None),
        (4, 2.0, 1, 2, 3, 1),
        (None, None, None, 0, None, None),
        (7, 7.0, 7, 1, None, 7),
    ]


def test_a_sum_of_floats_subtracts_what_leaves_as_in_flink() -> None:
    rows = [("a", n, 1_000 * (n + 1)) for n in range(4)]
    floats = pa.array([1e17, 1.0, 3.0, float("nan")])
    sums = found(keyed(rows, x=floats).over(0).aggregate(total=sum_("x")), "total")
    assert repr(sums) == "[(1e+17,), (1.0,), (3.0,), (nan,)]"
    sums = found(keyed(rows, x=floats).over(1).aggregate(total=sum_("x")), "total")
    assert repr(sums) == "[(1e+17,), (1e+17,), (3.0,), (nan,)]"


@pytest.mark.parametrize("parallelism", [1, 3])
def test_rows_by_key_are_the_same_at_any_parallelism(parallelism: int) -> None:
    rows = [(f"u{n * 7 % 5}", n, 1_000 + n * 300 % 4_000) for n in range(60)]
    over = keyed(rows, parallelism).over(Time.seconds(1)).aggregate(total=sum_("v"), highest=max_("v"))
    expected = keyed(rows).over(Time.seconds(1)).aggregate(total=sum_("v"), highest=max_("v"))
    names = ("user", "v", "total", "highest")
    assert sorted(found(over, *names)) == sorted(found(expected, *names))


def test_a_decimal_that_does_not_fit_names_the_aggregate() -> None:
    rows = [("a", 1, 1_000), ("a", 2, 2_000)]
    big = pa.array([Decimal("9" * 38)] * 2, pa.decimal128(38, 0))
    with pytest.raises(DataError, match="sum of column 'd' over the rows of a key does not fit"):
        keyed(rows, d=big).over(1).aggregate(total=sum_("d")).execute().to_arrow()


def test_frames_that_cannot_be_are_refused() -> None:
    stream = keyed(ROWS)
    with pytest.raises(ConfigurationError, match="from 0 to"):
        stream.over(-1)
    with pytest.raises(ConfigurationError, match="negative"):
        stream.over(Duration.of_seconds(-1))
    with pytest.raises(ConfigurationError, match="by arrival all frames are of rows"):
        stream.over(Time.seconds(1), by="arrival")
    with pytest.raises(ConfigurationError, match="a length of time one of a range"):
        stream.over(Time.seconds(1), unit="rows")
    with pytest.raises(ConfigurationError, match="'event_time' or 'arrival', not 'time'"):
        stream.over(by="time")
    with pytest.raises(ConfigurationError, match="'rows' or 'range', not 'groups'"):
        stream.over(unit="groups")
    with pytest.raises(ArgumentTypeError, match="length of time"):
        stream.over("10 rows")
    with pytest.raises(ConfigurationError, match="needs at least one"):
        stream.over(1).aggregate()
    with pytest.raises(ArgumentTypeError, match="takes an aggregate"):
        stream.over(1).aggregate(n="count")
    with pytest.raises(SchemaError, match="cannot be named 'v'"):
        stream.over(1).aggregate(v=count()).execute().to_arrow()
    with pytest.raises(SchemaError, match="there is no column 'w'"):
        stream.over(1).aggregate(n=sum_("w")).execute().to_arrow()


def test_rows_that_withdraw_others_are_refused() -> None:
    changes = keyed(ROWS).aggregate(n=count(), changes=True)
    with pytest.raises(ConfigurationError, match="over takes rows that are only added"):
        changes.key_by("n").over(1).aggregate(m=count()).execute().to_arrow()


def test_explain_shows_the_frame() -> None:
    shown = keyed(ROWS).over(9).aggregate(mean=mean("v")).explain()
    assert "9 rows before each row (rows) by event time: mean = mean(v)" in shown
    shown = keyed(ROWS).over(Time.minutes(1)).aggregate(n=count()).explain()
    assert "60000 ms before each row (range) by event time" in shown
    assert (
        "all rows up to each row (rows) by arrival"
        in keyed(ROWS).over(by="arrival").aggregate(n=count()).explain()
    )
