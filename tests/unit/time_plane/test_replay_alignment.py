"""Replays whose splits are aligned with each other, in one process."""

from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from equipment.forged_checkpoints import forge_table, with_column
from models.aligned_replay import AlignedReplayModel
from models.timed_log import Log, steps, table_of
from models.watermarks import Event, ReplayModel
from models.windows import Firing, WindowModel

from flinkcore._native.event_log import hold_back
from flinkcore._native.packed_steps import StepPacker
from flinkcore._native.timeline import SplitMerge, SplitRecords
from flinkcore.cli import main
from flinkcore.columnar.results.result import JobResult
from flinkcore.common import Duration, OutputTag, Row, Time, WatermarkStrategy
from flinkcore.common.watermark_generators import AscendingTimestampsWatermarks
from flinkcore.common.watermark_strategy import WatermarkAlignmentParams
from flinkcore.datastream import (
    DataStream,
    KeyedProcessFunction,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
)
from flinkcore.datastream.aggregates import collect
from flinkcore.errors import ConfigurationError, DataError, FlinkcoreError, SchemaError
from flinkcore.time_plane.generator_spec import GeneratorSpec
from flinkcore.time_plane.timeline import TimePlane

LATE = OutputTag("late")
END = 2**63 - 1
BOUNDED = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))


def plane_of(rows: list[tuple[Any, ...]], drift: int, update: int, idleness: int | None = None) -> TimePlane:
    """Of rows (split, arrival, timestamp), with a tick each 100 ms."""
    alignment = WatermarkAlignmentParams("group", drift, update)
    log = Log([Event(*row) for row in sorted(rows, key=lambda row: row[1])])
    return log.time_plane(GeneratorSpec(0, idleness), 100, alignment=alignment)


def fast_and_slow(until: int = 3_000) -> list[tuple[Any, ...]]:
    """Split a brings 10 s of event time in a second, and has ended at 1,000; split b one second, to the end."""
    fast = [("a", at, 10 * at) for at in range(50, 1_001, 50)]
    return fast + [("b", at, at) for at in range(50, until + 1, 50)]


def test_a_split_that_is_ahead_is_paused_until_the_others_have_caught_up() -> None:
    plane = plane_of(fast_and_slow(9_500), drift=1_000, update=200)
    # At 600 its watermark of 200, 1999, is beyond that of split b, 599, and the drift. What arrived until 600 is read
    # by then: its watermark is 5999, and allowed when split b has come to 4999. Then all the rest is read, up to 9999.
    assert plane.paused.of(0) == [(600, 5_000), (5_600, 9_000)]
    assert plane.paused.of(1) == []


def test_what_waits_is_read_one_ms_after_the_update_and_the_end_reads_everything() -> None:
    log = Log([Event(*row) for row in sorted(fast_and_slow(), key=lambda row: row[1])])
    plane = log.time_plane(GeneratorSpec(0), 100, alignment=WatermarkAlignmentParams("group", 1_000, 200))
    assert plane.paused.of(0) == [(600, 3_000)]
    arrivals, splits, _ = plane.enter(0).order(log.chunks()[0][0])
    assert arrivals[splits == 0].tolist() == [*range(50, 601, 50), *[3_000] * 8]
    assert arrivals[splits == 1].tolist() == list(range(50, 3_001, 50))
    assert steps(plane)[-2:] == [(3_000, 2_999), (END, END)]


def test_idleness_stands_still_while_a_split_is_paused() -> None:
    rows = fast_and_slow(8_000)
    aligned = plane_of(rows, drift=1_000, update=200, idleness=500)
    assert aligned.paused.of(0) == [(600, 5_000), (5_600, 8_000)]
    # The rest is read at 5,001. Nothing comes from split a after that; the count starts at 5,200, and stops at 5,600.
    assert aligned.splits.idle_spans(0) == []
    unaligned = Log([Event(*row) for row in rows]).time_plane(GeneratorSpec(0, 500), 100)
    assert unaligned.splits.idle_spans(0) == [(1_700, 8_000)]


def test_an_idle_split_holds_nobody_back() -> None:
    rows = fast_and_slow(1_000)
    silent = [("b", at, at) for at in range(50, 101, 50)] + [
        ("a", at, 10 * at) for at in range(50, 3_000, 50)
    ]
    assert plane_of(silent, drift=1_000, update=200, idleness=300).paused.of(0) == []
    assert plane_of(silent, drift=1_000, update=200).paused.of(0) == [(600, 2_950)]
    assert plane_of(rows, drift=2**70, update=200).paused.of(0) == []


def test_a_split_without_a_watermark_holds_nobody_back_yet() -> None:
    rows = [("a", at, 10 * at) for at in range(50, 2_000, 50)] + [
        ("b", at, at) for at in range(1_050, 2_000, 50)
    ]
    # Split b reports its first watermark at 1,200.
    assert plane_of(rows, drift=1_000, update=200).paused.of(0) == [(1_200, 1_950)]


def test_a_split_that_is_found_idle_while_paused_is_resumed() -> None:
    # The idle count of split a starts at 200; at 360, where it is paused, it is at 160.
    slow = [("b", at, at) for at in range(50, 2_001, 50)] + [
        ("b", at, 10 * at) for at in range(2_050, 2_301, 50)
    ]
    plane = plane_of([("a", 50, 10_000), ("a", 1_000, 10_500), *slow], drift=0, update=120, idleness=150)
    assert plane.paused.of(0) == [(360, 2_160)]
    assert plane.splits.idle_spans(0) == [(400, 2_200)]


def test_without_ticks_there_is_nothing_to_align() -> None:
    log = Log([Event(*row) for row in fast_and_slow()])
    plane = log.time_plane(GeneratorSpec(0), 0, alignment=WatermarkAlignmentParams("group", 0, 200))
    assert len(plane.paused.split) == 0
    assert steps(plane) == [(3_000, 2_999), (END, END)]


# ---- whole jobs


def random_log(seed: int, n: int = 400) -> list[Event]:
    random = np.random.default_rng(seed)
    arrival = np.cumsum(random.choice([0, 0, 1, 1, 2, 30], n))
    split = random.choice(["b", "a", "c"], n)
    speed = np.select([split == "a", split == "b"], [3, 2], 1)
    timestamp = arrival * speed - random.integers(0, 40, n)
    return [Event(*row) for row in zip(split.tolist(), arrival.tolist(), timestamp.tolist(), strict=True)]


def job(data: Any, strategy: WatermarkStrategy, *, parallelism: int = 1, **options: Any) -> DataStream:
    env = StreamExecutionEnvironment().set_parallelism(parallelism)
    env.get_config().set_auto_watermark_interval(10)
    return (
        env.from_event_log(
            data,
            **({"timestamp": "ts", "arrival": "arrival", "split": "split", "integer_times": True} | options),
        )
        .assign_timestamps_and_watermarks(strategy)
        .key_by("key")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(20)))
        .allowed_lateness(Time.milliseconds(9))
        .side_output_late_data(LATE)
        .aggregate(rows=collect("row"))
    )


def run_windows(timeline: ReplayModel, log: list[Event]) -> tuple[WindowModel, int]:
    """The window operator row by row over a timeline, and the most windows that were open at once."""
    windows = WindowModel(size=20, slide=20, lateness=9)
    most = 0
    items = chain(
        ((timeline.place_of(row), 0, row) for row in range(len(log))),
        ((place, 1, step) for place, (_, step) in zip(timeline.places, timeline.steps, strict=True)),
    )
    for _, is_step, item in sorted(items):
        if is_step:
            windows.advance(item)
        else:
            windows.element(f"k{item % 5}", log[item].timestamp_ms, item)
            most = max(most, sum(len(live) for live in windows.windows.values()))
    return windows, most


def fired(firings: list[Firing]) -> list[Any]:
    return sorted((f.key, f.start, f.end, f.elements, f.late, f.watermark) for f in firings)


def rows(table: pa.Table) -> list[Any]:
    names = ("key", "window_start", "window_end", "rows", "late_firing", "watermark")
    return sorted(tuple(row[name] for name in names) for row in table.to_pylist())


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize(("idleness_ms", "update_ms"), [(None, 20), (25, 20), (25, 7), (None, 150)])
@pytest.mark.parametrize("seed", [1, 2])
def test_an_aligned_replay_fires_what_the_row_by_row_model_fires(
    seed: int, idleness_ms: int | None, update_ms: int, parallelism: int
) -> None:
    log = random_log(seed)
    strategy = BOUNDED.with_watermark_alignment("clicks", Time.milliseconds(50), Time.milliseconds(update_ms))
    if idleness_ms is not None:
        strategy = strategy.with_idleness(Duration.of_millis(idleness_ms))
    model = AlignedReplayModel(log, 5, idleness_ms, 10, max_drift_ms=50, update_interval_ms=update_ms)
    windows, _ = run_windows(model, log)
    result = job(table_of(log), strategy, parallelism=parallelism).execute()
    assert rows(result.to_arrow()) == fired(windows.firings)
    late = result.get_side_output(LATE).to_arrow().column("row").to_pylist()
    assert sorted(late) == sorted(windows.late)
    told = [(split, *span) for split in "abc" for span in result.report.paused_spans(split)]
    assert told == model.paused_spans
    assert len(told) > 1


def test_alignment_gives_the_rows_with_fewer_open_windows() -> None:
    log = [Event(*row) for row in sorted(fast_and_slow(9_000), key=lambda row: row[1])]
    aligned = BOUNDED.with_watermark_alignment("clicks", Time.seconds(1), Time.milliseconds(200))
    unaligned_rows, aligned_rows = (
        [row[:4] for row in rows(job(table_of(log), strategy).execute().to_arrow())]
        for strategy in (BOUNDED, aligned)
    )
    assert aligned_rows == unaligned_rows
    _, unaligned_windows = run_windows(ReplayModel(log, 5, None, 10), log)
    model = AlignedReplayModel(log, 5, None, 10, max_drift_ms=1_000, update_interval_ms=200)
    _, aligned_windows = run_windows(model, log)
    assert model.paused_spans[0][0] == "a"
    assert aligned_windows < unaligned_windows


def test_the_report_tells_who_was_paused_and_for_how_long() -> None:
    log = [Event(*row) for row in fast_and_slow()]
    strategy = BOUNDED.with_watermark_alignment("clicks", Time.seconds(1), Time.milliseconds(200))
    result = job(table_of(log), strategy).execute()
    result.to_arrow()
    report = result.report
    assert report.paused_ms == {"a": 2_400}
    assert report.paused_spans("a") == [(600, 3_000)]
    assert report.paused_spans("b") == []
    with pytest.raises(ConfigurationError, match="the log has no split 'z'"):
        report.paused_spans("z")
    told = "1 split paused by watermark alignment, for 2,400 ms in all; longest 'a', 2,400 ms"
    assert told in str(report).splitlines()
    unaligned = job(table_of(log), BOUNDED).execute()
    unaligned.to_arrow()
    assert "paused" not in str(unaligned.report)
    assert unaligned.report.paused_ms == {}


def test_a_log_of_one_split_is_never_paused() -> None:
    strategy = BOUNDED.with_watermark_alignment("clicks", Time.milliseconds(0), Time.milliseconds(10))
    aligned, unaligned = (
        job(table_of(random_log(3)), given, split=None).execute() for given in (strategy, BOUNDED)
    )
    assert rows(aligned.to_arrow()) == rows(unaligned.to_arrow())
    assert aligned.report.paused_ms == {}


# ---- bad settings


@pytest.mark.parametrize(
    "strategy",
    [
        WatermarkStrategy.for_generator(AscendingTimestampsWatermarks),
        WatermarkStrategy.for_percentile_out_of_orderness(Duration.of_millis(5), 0.9, 10),
    ],
)
def test_generators_that_are_called_event_by_event_cannot_be_aligned(strategy: WatermarkStrategy) -> None:
    aligned = strategy.with_watermark_alignment("clicks", Time.seconds(1))
    with pytest.raises(ConfigurationError, match=r"cannot align splits .* take for_bounded_out_of_orderness"):
        job(table_of(random_log(1)), aligned).execute()


def test_an_update_interval_beyond_all_arrivals_is_refused() -> None:
    aligned = BOUNDED.with_watermark_alignment("clicks", Time.seconds(1), Time.milliseconds(2**60 + 1))
    with pytest.raises(ConfigurationError, match=r"update interval .* at most 2\*\*60 ms"):
        job(table_of(random_log(1)), aligned).execute()


@pytest.mark.parametrize(("interval_ms", "update_ms"), [(150, 200), (200, 150), (0, 200)])
def test_records_that_are_too_coarse_are_refused(interval_ms: int, update_ms: int) -> None:
    with pytest.raises(ConfigurationError, match="no multiples of that of records, 100 ms"):
        SplitMerge(
            SplitRecords(splits=1, interval_ms=100),
            StepPacker(),
            interval_ms=interval_ms or 50,
            out_of_orderness_ms=0,
            idleness_ms=None,
            first_arrival_ms=0,
            last_arrival_ms=300,
            max_drift_ms=0,
            update_interval_ms=update_ms,
        )


def held_back(**changed: Any) -> list[int]:
    """Arrivals of splits 0 and 1, the second of which is paused from 5 to 9 and from 12 to the end."""
    columns = {
        "arrivals_ms": [5, 6, 9, 10, 4, 5, 6, 9, 10, 12, 13, 20],
        "splits": np.array([0] * 4 + [1] * 8, np.int32),
        "offsets": [0, 0, 2],
        "from_ms": [5, 12],
        "to_ms": [9, 20],
        "read_ms": [10, 20],
    }
    arrays = {name: np.array(column) for name, column in (columns | changed).items()}
    hold_back(**arrays)
    return arrays["arrivals_ms"].tolist()


def test_only_what_arrives_while_its_split_is_paused_is_held_back() -> None:
    assert held_back() == [5, 6, 9, 10, 4, 5, 10, 10, 10, 12, 20, 20]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"arrivals_ms": [1]}, "1 arrivals and 12 splits"),
        ({"to_ms": [9]}, "the columns of spans have lengths 2, 1 and 2"),
        ({"offsets": [0, 1, 3]}, "spans 1 to 3 of 2"),
        ({"offsets": [0, 2]}, "row 4: split code 1, but there are 1 splits"),
    ],
)
def test_spans_that_do_not_fit_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        held_back(**changed)


# ---- checkpoints


def in_parts(
    log: list[Event], cuts: list[int], strategy: WatermarkStrategy, folder: Path, **options: Any
) -> list[JobResult]:
    """The results of a job over the parts of a log; all but the last stop with a checkpoint."""
    results = []
    bounds = [0, *(sum(event.arrival_ms <= cut for event in log) for cut in cuts), len(log)]
    for number, (start, stop) in enumerate(pairwise(bounds)):
        checkpoints: dict[str, Any] = {}
        if number > 0:
            checkpoints["restore_from"] = folder / str(number - 1)
        if number < len(cuts):
            checkpoints["stop_with_checkpoint"] = folder / str(number)
        part = table_of(log).slice(start, stop - start)
        result = job(part, strategy, parallelism=1 + number, **options).execute(**checkpoints)
        result.to_arrow()
        results.append(result)
    return results


def test_events_of_paused_splits_wait_in_checkpoints_until_they_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = [Event(*row) for row in sorted(fast_and_slow(), key=lambda row: row[1])]
    strategy = BOUNDED.with_watermark_alignment("clicks", Time.seconds(1), Time.milliseconds(200))
    whole = job(table_of(log), strategy).execute()
    parts = in_parts(log, [800, 1_500, 2_950], strategy, tmp_path)
    assert [row for part in parts for row in rows(part.to_arrow())] != []
    assert sorted(row for part in parts for row in rows(part.to_arrow())) == rows(whole.to_arrow())
    assert [part.report.paused_spans("a") for part in parts] == [
        [(600, 800)],
        [(600, 1_500)],
        [(600, 2_950)],
        [(600, 3_000)],
    ]
    assert [part.report.waiting for part in parts] == [4, 8, 8, 0]
    assert [part.report.events_read for part in parts] == [32, 14 + 4 + 4, 29 + 8, 1 + 8]
    assert (
        f"  {8:>14,} waiting in the checkpoint for paused splits (36 %)" in str(parts[1].report).splitlines()
    )
    main(["checkpoint", "show", str(tmp_path / "1")])
    assert "  8 events waiting for paused splits" in capsys.readouterr().out.splitlines()


def test_what_waits_is_read_though_nothing_arrives_any_more_with_a_warning(tmp_path: Path) -> None:
    log = [Event(*row) for row in sorted(fast_and_slow(), key=lambda row: row[1])]
    strategy = BOUNDED.with_watermark_alignment("clicks", Time.seconds(1), Time.milliseconds(200))
    whole = job(table_of(log), strategy).execute()
    with pytest.warns(UserWarning, match="nothing has arrived since the checkpoint"):
        parts = in_parts(log, [1_500, 3_000], strategy, tmp_path)
    assert sorted(row for part in parts for row in rows(part.to_arrow())) == rows(whole.to_arrow())
    assert ["nothing has arrived" in "".join(part.report.warnings) for part in parts] == [False, False, True]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_job_of_aligned_splits_goes_on_at_another_parallelism(seed: int, tmp_path: Path) -> None:
    log = random_log(seed)
    strategy = BOUNDED.with_watermark_alignment("clicks", Time.milliseconds(0), Time.milliseconds(20))
    whole = job(table_of(log), strategy).execute()
    last = log[-1].arrival_ms
    parts = in_parts(log, [last // 3, last // 2], strategy, tmp_path)
    assert sum(part.report.waiting for part in parts) > 0
    assert sorted(row for part in parts for row in rows(part.to_arrow())) == rows(whole.to_arrow())


class Told(KeyedProcessFunction):
    def process_element(self, value: Row, ctx: Any) -> Any:
        yield value.row, repr(sorted(value.as_dict().items()))


TOLD = pa.schema({"row": pa.int64(), "told": pa.string()})


def told(table: pa.Table, **checkpoints: Any) -> list[Any]:
    """What a function that takes all columns sees."""
    env = StreamExecutionEnvironment().set_parallelism(1)
    env.get_config().set_auto_watermark_interval(100)
    strategy = BOUNDED.with_watermark_alignment("clicks", Time.seconds(1), Time.milliseconds(200))
    log = env.from_event_log(table, timestamp="ts", integer_times=True, arrival="arrival", split="split")
    result = log.assign_timestamps_and_watermarks(strategy).key_by("key").process(Told(), TOLD)
    return sorted(map(str, result.execute(**checkpoints).to_arrow().to_pylist()))


def with_nested_columns(table: pa.Table) -> pa.Table:
    numbers = table["row"].to_pylist()
    columns = {
        "map": pa.array([[("k", n)] if n % 3 else None for n in numbers], pa.map_(pa.string(), pa.int64())),
        "pair": pa.array([[n, None] for n in numbers], pa.list_(pa.int32(), 2)),
        "list": pa.array([["ü"] * (n % 3) for n in numbers]),
        "struct": pa.array([{"a": n, "b": {"c": str(n)}} if n % 4 else None for n in numbers]),
        "price": pa.array(numbers).cast(pa.decimal128(21, 2)),
        "day": pa.array(numbers, pa.int32()).cast(pa.date32()),
        "nothing": pa.nulls(len(numbers)),
    }
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table


def test_columns_of_any_type_wait(tmp_path: Path) -> None:
    log = [Event(*row) for row in sorted(fast_and_slow(), key=lambda row: row[1])]
    table = with_nested_columns(table_of(log))
    cut = sum(event.arrival_ms <= 1_500 for event in log)
    first = told(table.slice(0, cut), stop_with_checkpoint=tmp_path / "c")
    assert 0 < len(first) < cut
    assert sorted(first + told(table.slice(cut), restore_from=tmp_path / "c")) == told(table)


def test_events_that_wait_with_other_columns_than_the_job_takes_are_refused(tmp_path: Path) -> None:
    log = [Event(*row) for row in sorted(fast_and_slow(), key=lambda row: row[1])]
    table = table_of(log)
    cut = sum(event.arrival_ms <= 1_500 for event in log)
    told(table.slice(0, cut), stop_with_checkpoint=tmp_path / "c")
    more = table.append_column("more", table["row"]).slice(cut)
    with pytest.raises(SchemaError, match="lacks 'more' of type int64: events of paused splits wait there"):
        told(more, restore_from=tmp_path / "c")


@pytest.mark.parametrize(
    ("column", "row", "value", "message"),
    [
        ("arrival_ms", 0, 600, "did not arrive while its split was paused"),
        ("arrival_ms", 0, 1_001, "did not arrive while its split was paused"),
        ("split", 0, 1, "did not arrive while its split was paused"),
        ("split", 0, 2, "is of a split that the checkpoint has not"),
        ("position", 0, 20, "has a position beyond its split"),
        ("position", 1, 12, "does not come behind the one before it in its split"),
        ("arrival_ms", 0, 750, "does not come behind the one before it in its split"),
        ("timestamp_ms", 0, 2**63 - 1, "no bounds within 64 bits"),
    ],
)
def test_forged_events_that_wait_are_refused(
    column: str, row: int, value: int, message: str, tmp_path: Path
) -> None:
    log = [Event(*row) for row in sorted(fast_and_slow(), key=lambda row: row[1])]
    strategy = BOUNDED.with_watermark_alignment("clicks", Time.seconds(1), Time.milliseconds(200))
    in_parts(log, [1_500], strategy, tmp_path)

    def change(batch: pa.RecordBatch) -> pa.RecordBatch:
        name = f"__flinkcore_waiting {column}"
        values = batch.column(name).to_pylist()
        values[row] = value
        return with_column(batch, name, pa.array(values, batch.column(name).type))

    forge_table(tmp_path / "0", "waiting_rows", change)
    with pytest.raises(FlinkcoreError, match=message):
        job(table_of(log).slice(0, 0), strategy).execute(restore_from=tmp_path / "0").to_arrow()


def test_views_of_lists_that_wait_for_paused_splits_are_lists_in_the_checkpoint(tmp_path: Path) -> None:
    table = table_of(random_log(1))
    views = table.append_column("views", pa.array([[1]] * table.num_rows, pa.list_view(pa.int64())))
    lists = table.append_column("views", pa.array([[1]] * table.num_rows, pa.list_(pa.int64())))
    assert told(views, stop_with_checkpoint=tmp_path / "c") == told(
        lists, stop_with_checkpoint=tmp_path / "d"
    )
