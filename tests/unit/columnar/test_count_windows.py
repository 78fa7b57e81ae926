"""Windows of so many elements that overlap, over columns: what they give, between checkpoints too, and in a row."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from equipment.timelines import packed_steps

from flinkcore._native.aggregates import Accumulators
from flinkcore._native.count_windows import count_windows, sliced_count_windows
from flinkcore._native.keys import KeyEncoder
from flinkcore._native.window_operator import WindowOperator
from flinkcore.common import Duration, WatermarkStrategy
from flinkcore.datastream import DataStream, StreamExecutionEnvironment
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
    sum_,
)
from flinkcore.datastream.window import CountEvictor, CountTrigger, GlobalWindows, PurgingTrigger, Trigger
from flinkcore.datastream.windowed_streams import WindowedStream
from flinkcore.errors import ConfigurationError

NO_WATERMARK = -(2**63)


def log_of(users: str, parallelism: int = 1) -> DataStream:
    """Rows with the numbers of their places as times and values."""
    env = StreamExecutionEnvironment().set_parallelism(parallelism)
    table = pa.table({"user": list(users), "ts": range(len(users)), "v": range(len(users))})
    return env.from_event_log(table, timestamp="ts")


def last_ones(size: int, slide: int, after: bool = False, purges: bool = False) -> WindowedStream:
    """Java's count windows over rows of one user."""
    trigger: Trigger[Any, Any] = CountTrigger.of(slide)
    windows = log_of("a" * 9).key_by("user").window(GlobalWindows.create())
    return windows.trigger(PurgingTrigger.of(trigger) if purges else trigger).evictor(
        CountEvictor.of(size, after)
    )


def values(stream: DataStream) -> list[Any]:
    return stream.to_arrow()["v"].to_pylist()  # type: ignore[no-any-return]


def test_full_windows_fire_with_their_last_element_and_have_no_bounds() -> None:
    stream = log_of("aabaabab").key_by("user").count_window(3, 2).aggregate(v=collect("v"), n=count())
    result = stream.execute()
    nothing = {"window_start": None, "window_end": None, "late_firing": False, "watermark": NO_WATERMARK}
    assert result.to_arrow().to_pylist() == [
        {"user": "a", "v": [0, 1, 3], "n": 3, **nothing},
        {"user": "a", "v": [3, 4, 6], "n": 3, **nothing},
        {"user": "b", "v": [2, 5, 7], "n": 3, **nothing},
    ]
    assert (result.report.windowed, result.report.in_no_window, result.report.on_time_firings) == (8, 0, 3)


def test_elements_between_windows_are_counted() -> None:
    result = log_of("a" * 9).key_by("user").count_window(2, 5).aggregate(v=collect("v")).execute()
    assert result.to_arrow()["v"].to_pylist() == [[0, 1], [5, 6]]
    assert (result.report.windowed, result.report.in_no_window) == (4, 5)


def test_windows_of_all_rows_need_no_key() -> None:
    stream = log_of("abcabc").count_window_all(4, 1).aggregate(v=collect("user"))
    assert stream.to_arrow().column_names == ["window_start", "window_end", "v", "late_firing", "watermark"]
    assert ["".join(window) for window in values(stream)] == ["abca", "bcab", "cabc"]


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        (last_ones(5, 3), [range(3), range(1, 6), range(4, 9)]),
        (last_ones(2, 4), [range(2, 4), range(6, 8)]),
        (last_ones(100, 4), [range(4), range(8)]),
        (last_ones(2**63 - 1, 4), [range(4), range(8)]),
        (last_ones(2, 0), [range(max(0, n - 2), n) for n in range(1, 10)]),
        (last_ones(1, 2**63 - 1), []),
        (last_ones(2, 4, after=True), [range(4), range(2, 8)]),
        (last_ones(2**63 - 1, 4, after=True), [range(4), range(8)]),
        (last_ones(0, 4, after=True), [range(4), range(4, 8)]),
        (last_ones(5, 3, purges=True), [range(3), range(3, 6), range(6, 9)]),
        (last_ones(2, 3, purges=True), [range(1, 3), range(4, 6), range(7, 9)]),
        (last_ones(2, 3, after=True, purges=True), [range(3), range(3, 6), range(6, 9)]),
    ],
)
def test_an_evictor_leaves_the_last_elements_at_each_firing(
    windows: WindowedStream, expected: list[range]
) -> None:
    result = windows.aggregate(v=collect("v")).execute()
    assert result.to_arrow()["v"].to_pylist() == [list(each) for each in expected]
    assert (result.report.windowed, result.report.in_no_window) == (9, 0)


def test_windows_that_overlap_have_all_aggregates() -> None:
    env = StreamExecutionEnvironment()
    log = pa.table(
        {
            "user": ["a"] * 5,
            "ts": range(5),
            "x": [0.5, None, 2.0, -1.0, 0.25],
            "name": ["one", "two", None, "two", "a longer one"],
        }
    )
    windows = env.from_event_log(log, timestamp="ts").key_by("user").count_window(3, 1)
    stream = windows.aggregate(
        n=count("x"),
        total=sum_("x"),
        middle=mean("x"),
        low=min_("name"),
        high=max_("x"),
        opening=first("name"),
        closing=last("name"),
        names=count_distinct("name"),
        cheapest=min_by("name", "x"),
        dearest=max_by("name", "x"),
        all=collect("name"),
    )
    rows = stream.to_arrow().drop_columns(["user", "window_start", "window_end", "late_firing", "watermark"])
    assert [list(row.values()) for row in rows.to_pylist()] == [
        [2, 2.5, 1.25, "one", 2.0, "one", None, 2, "one", None, ["one", "two", None]],
        [2, 1.0, 0.5, "two", 2.0, "two", "two", 1, "two", None, ["two", None, "two"]],
        [
            3,
            1.25,
            1.25 / 3,
            "a longer one",
            2.0,
            None,
            "a longer one",
            2,
            "two",
            None,
            [None, "two", "a longer one"],
        ],
    ]


FORMS: dict[str, Callable[[DataStream], WindowedStream]] = {
    "full": lambda log: log.key_by("user").count_window(5, 2),
    "sparse": lambda log: log.key_by("user").count_window(2, 3),
    "last": lambda log: (
        log.key_by("user")
        .window(GlobalWindows.create())
        .trigger(CountTrigger.of(2))
        .evictor(CountEvictor.of(5))
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("cut", range(1, 12))
@pytest.mark.parametrize("parallelism", [1, 3])
def test_windows_go_on_from_a_checkpoint_anywhere(
    form: str, cut: int, parallelism: int, tmp_path: Path
) -> None:
    users = "abacabaabbab"

    def job(start: int, stop: int, parallelism: int) -> DataStream:
        env = StreamExecutionEnvironment().set_parallelism(parallelism)
        rows = range(start, stop)
        table = pa.table(
            {"user": list(users[start:stop]), "ts": rows, "v": rows, "name": [f"n{i % 3}" for i in rows]}
        )
        log = env.from_event_log(table, timestamp="ts", arrival="ts")
        return FORMS[form](log).aggregate(
            v=collect("v"), names=count_distinct("name"), low=min_("name"), n=count()
        )

    def shown(*results: pa.Table) -> list[str]:
        return sorted(str(row) for result in results for row in result.to_pylist())

    before = job(0, cut, parallelism).execute(stop_with_checkpoint=tmp_path / "cut").to_arrow()
    after = job(cut, len(users), 4 - parallelism).execute(restore_from=tmp_path / "cut").to_arrow()
    assert shown(before, after) == shown(job(0, len(users), 1).to_arrow())


def test_a_checkpoint_of_windows_of_another_form_is_refused(tmp_path: Path) -> None:
    log = log_of("abab")
    log.key_by("user").count_window(3, 1).aggregate(n=count()).execute(
        stop_with_checkpoint=tmp_path / "cut"
    ).to_arrow()
    for other in (log.key_by("user").count_window(3, 2), FORMS["last"](log)):
        with pytest.raises(ConfigurationError, match="is of another job"):
            other.aggregate(n=count()).execute(restore_from=tmp_path / "cut").to_arrow()


def test_windows_behind_windows_of_counts_see_their_results_in_order() -> None:
    log = log_of("abababab", parallelism=2).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0))
    )
    of_users = log.key_by("user").count_window(2, 1).aggregate(total=sum_("v"))
    pairs = of_users.count_window_all(3, 1).aggregate(v=collect("total"), users=collect("user"))
    assert values(pairs) == [[2, 4, 6], [4, 6, 8], [6, 8, 10], [8, 10, 12]]
    assert ["".join(users) for users in pairs.to_arrow()["users"].to_pylist()] == ["aba", "bab", "aba", "bab"]


def test_results_go_to_parquet(tmp_path: Path) -> None:
    log_of("abaab").key_by("user").count_window(2, 1).aggregate(v=sum_("v")).write_parquet(
        str(tmp_path / "out")
    )
    import pyarrow.parquet as pq

    assert sorted(pq.read_table(tmp_path / "out")["v"].to_pylist()) == [2, 5, 5]


@pytest.mark.parametrize("mode", ["retracting", "delta"])
def test_what_an_evictor_leaves_has_no_difference_and_is_not_withdrawn(mode: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{mode} windows remember what they gave, but CountEvictor"):
        getattr(last_ones(5, 3), mode)().aggregate(n=count())


def test_windows_that_fire_once_withdraw_nothing_and_differ_from_nothing() -> None:
    for windows in (
        log_of("aaaa").key_by("user").count_window(2),
        log_of("aaaa").key_by("user").count_window(2, 1),
    ):
        with pytest.raises(ConfigurationError, match="give one result each, when they are full"):
            windows.retracting().aggregate(n=count())
        whole = windows.aggregate(v=sum_("v")).to_arrow()
        assert windows.delta().aggregate(v=sum_("v")).to_arrow().equals(whole)
        assert whole.num_rows


@pytest.mark.parametrize(
    ("size", "slide"), [(0, 1), (-1, 1), (1, 0), (1, -1), (2**62 + 1, 1), (1, 2**62 + 1)]
)
def test_the_kernel_refuses_counts_out_of_range(size: int, slide: int) -> None:
    with pytest.raises(ConfigurationError, match="both numbers must be at least 1, and at most 2\\*\\*62"):
        count_windows(size=size, slide=slide, full_only=True)


@pytest.mark.parametrize(("size", "slide"), [(0, 1), (-3, 2), (3, -1), (True, 1), (2.0, 1)])
def test_count_windows_of_a_stream_have_whole_sizes_and_slides(size: Any, slide: Any) -> None:
    for call in (log_of("a").key_by("user").count_window, log_of("a").count_window_all):
        with pytest.raises(ConfigurationError, match="must be a whole number of at least"):
            call(size, slide)


@pytest.mark.parametrize("full_only", [True, False])
@pytest.mark.parametrize(("size", "slide"), [(40, 1), (40, 4), (96, 48)])
def test_windows_give_the_same_whether_they_share_slices_or_not(
    size: int, slide: int, full_only: bool, tmp_path: Path
) -> None:
    n = 1000

    def job(start: int, stop: int, *, shares: bool) -> DataStream:
        env = StreamExecutionEnvironment().set_parallelism(2)
        rows = range(start, stop)
        table = pa.table(
            {
                "user": [i * i % 7 for i in rows],
                "ts": rows,
                "v": pa.array([None if i % 3 == 0 else i * 7 % 101 for i in rows], pa.int64()),
            }
        )
        keyed = env.from_event_log(table, timestamp="ts", arrival="ts").key_by("user")
        windows = keyed.count_window(size, slide)
        if not full_only:
            windows = keyed.window(GlobalWindows.create()).trigger(CountTrigger.of(slide))
            windows = windows.evictor(CountEvictor.of(size))
        aggregates = {"n": count(), "known": count("v"), "v": sum_("v"), "low": min_("v"), "high": max_("v")}
        return windows.aggregate(**aggregates if shares else {**aggregates, "all": collect("v")})

    def shown(*results: pa.Table) -> list[str]:
        names = ["user", "n", "known", "v", "low", "high", "late_firing", "watermark"]
        return sorted(str(row) for result in results for row in result.select(names).to_pylist())

    one_by_one = shown(job(0, n, shares=False).to_arrow())
    assert len(one_by_one) > n // slide // 2
    assert shown(job(0, n, shares=True).to_arrow()) == one_by_one
    before = job(0, 457, shares=True).execute(stop_with_checkpoint=tmp_path / "cut").to_arrow()
    after = job(457, n, shares=True).execute(restore_from=tmp_path / "cut").to_arrow()
    assert shown(before, after) == one_by_one


@pytest.mark.parametrize(("size", "slide"), [(4, 4), (5, 2), (0, 1), (4, 0), (2, -1), (2, 4), (2**62 + 2, 2)])
def test_the_kernel_of_slices_refuses_windows_that_are_not_made_of_them(size: int, slide: int) -> None:
    with pytest.raises(ConfigurationError, match="the size must be a multiple of the slide"):
        sliced_count_windows(size=size, slide=slide, full_only=True)


@pytest.mark.parametrize(
    ("aggregate", "retracting", "message"),
    [
        (("collect", "v", None), False, "windows share slices only where results do not depend on the order"),
        (("count", None, None), True, "cannot withdraw results"),
    ],
)
def test_the_kernel_of_slices_refuses_what_it_cannot_share(
    aggregate: tuple[str, str | None, str | None], retracting: bool, message: str
) -> None:
    schema = pa.schema({"user": pa.string(), "v": pa.int64()})
    with pytest.raises(ConfigurationError, match=message):
        WindowOperator(
            sliced_count_windows(size=4, slide=2, full_only=True),
            keys=KeyEncoder(schema, ["user"]),
            accumulators=Accumulators(schema, [aggregate]),
            key_names=["user"],
            aggregate_names=["a"],
            timeline=packed_steps([], []),
            row_limit=10,
            byte_limit=10,
            retracting=retracting,
        )
