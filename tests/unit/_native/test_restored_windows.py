"""Rows that no operator has written are refused as windows of a checkpoint, whatever their checksums say."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from equipment.timelines import steps_with_watermarks

from flinkcore._native.aggregates import Accumulators
from flinkcore._native.count_windows import count_windows, sliced_count_windows
from flinkcore._native.keys import KeyEncoder
from flinkcore._native.session_windows import session_windows
from flinkcore._native.time_windows import sliced_windows, time_windows
from flinkcore._native.triggered_windows import global_windows, triggered_windows
from flinkcore._native.window_operator import WindowKernel, WindowOperator
from flinkcore.checkpoint.checkpoint_table import CheckpointTable
from flinkcore.columnar.stages.window_state import restore_windows, windows_to_table
from flinkcore.common import Duration, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.graph.key_columns import KeyColumns
from flinkcore.datastream.window import (
    ContinuousEventTimeTrigger,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    WindowAssigner,
)
from flinkcore.errors import SchemaError

SCHEMA = pa.schema([("key", pa.int64())])
TWIN = 128
NONE = -(2**63)

KERNELS = {
    "session": lambda: session_windows(gap=10, allowed_lateness=0),
    "continuous_session": lambda: session_windows(
        gap=10, allowed_lateness=0, trigger="continuous_event_time", every=5
    ),
    "continuous": lambda: triggered_windows(
        size=10, slide=10, offset=0, allowed_lateness=0, trigger="continuous_event_time", every=5
    ),
    "time": lambda: time_windows(size=10, slide=10, offset=0, allowed_lateness=0),
    "count": lambda: count_windows(size=3, slide=1, full_only=True),
    "sliced_count": lambda: sliced_count_windows(size=3, slide=1, full_only=True),
}
OTHER_KERNELS = {
    "sliding": lambda: time_windows(size=10, slide=5, offset=2, allowed_lateness=0),
    "cumulate": lambda: time_windows(size=10, slide=5, offset=0, allowed_lateness=0, cumulative=True),
    "sliced": lambda: sliced_windows(size=20, slide=10, offset=0, allowed_lateness=0),
    "global": lambda: global_windows(trigger="continuous_event_time", every=5),
    "by_count": lambda: triggered_windows(
        size=10, slide=10, offset=0, allowed_lateness=0, trigger="count", every=5
    ),
}
FURTHER = 64
COUNTED = ("count", "sliced_count")
STATES = {"count": 1, "sliced_count": 1, "by_count": 0}


def opened(kernel: WindowKernel, *, retracting: bool) -> tuple[WindowOperator, Accumulators]:
    accumulators = Accumulators(SCHEMA, [("count", None, None)])
    made = WindowOperator(
        kernel,
        keys=KeyEncoder(SCHEMA, ["key"]),
        accumulators=accumulators,
        key_names=["key"],
        aggregate_names=["n"],
        timeline=steps_with_watermarks([5, 2**40]),
        row_limit=100,
        byte_limit=100,
        retracting=retracting,
    )
    return made, accumulators


def table(kind: str, rows: list[dict[str, Any]]) -> CheckpointTable:
    """Hand-made rows of a checkpoint: each a window of key 7 but for what is said."""
    written = windows_to_table(
        *opened((KERNELS | OTHER_KERNELS)[kind](), retracting=kind not in COUNTED), ["key"], 128
    )
    usual = {"key_group": 0, "key.key": 7, "window_start": 0, "window_end": 10}
    usual |= {"trigger_state": STATES.get(kind, NONE), "flags": 0, "touched": 1, "0.words": 3}
    full = [{**dict.fromkeys(written.batch.schema.names, 0), **usual, **row} for row in rows]
    return CheckpointTable(
        pa.RecordBatch.from_pylist(full, schema=written.batch.schema), {}, written.attributes
    )


def restore(kind: str, rows: list[dict[str, Any]], *, retracting: bool = False) -> WindowOperator:
    made, accumulators = opened((KERNELS | OTHER_KERNELS)[kind](), retracting=retracting)
    restore_windows(made, accumulators, KeyColumns(("key",)), table(kind, rows))
    return made


@pytest.mark.parametrize("kind", KERNELS)
def test_another_entry_of_a_window_is_refused_where_nothing_is_withdrawn(kind: str) -> None:
    with pytest.raises(
        SchemaError, match=r"row 1 of the windows .* flags 128 .* is no window of this operator"
    ):
        restore(kind, [{}, {"flags": TWIN}], retracting=False)


@pytest.mark.parametrize("kind", ["session", "continuous"])
@pytest.mark.parametrize(
    "rows",
    [
        [{"flags": TWIN}],
        [{}, {"key.key": 8, "flags": TWIN}],
        [{}, {"window_start": 20, "window_end": 30, "flags": TWIN}],
        [{"window_start": 20, "window_end": 30}, {"flags": TWIN}],
    ],
    ids=["alone", "of another key", "of a later window", "of an earlier window"],
)
def test_another_entry_without_its_window_is_refused(kind: str, rows: list[dict[str, Any]]) -> None:
    with pytest.raises(SchemaError, match=rf"row {len(rows) - 1} of the windows"):
        restore(kind, rows, retracting=True)


@pytest.mark.parametrize("kind", KERNELS)
def test_a_window_ends_after_its_start(kind: str) -> None:
    with pytest.raises(SchemaError, match=r"row 0 of the windows of a checkpoint, \[10, 10\) ms"):
        restore(kind, [{"window_start": 10}], retracting=False)


@pytest.mark.parametrize("time_ms", [-1, 10])
def test_a_timer_outside_its_window_is_refused(time_ms: int) -> None:
    with pytest.raises(SchemaError, match=f"trigger state {time_ms},"):
        restore("continuous", [{"trigger_state": time_ms}], retracting=False)


@pytest.mark.parametrize(("kind", "time_ms"), [("session", 5), ("continuous_session", -1)])
def test_a_firing_before_the_end_that_the_trigger_of_a_session_cannot_have_set_is_refused(
    kind: str, time_ms: int
) -> None:
    with pytest.raises(SchemaError, match=f"flags 33 and trigger state {time_ms},"):
        restore(kind, [{"flags": 33, "trigger_state": time_ms}], retracting=False)


@pytest.mark.parametrize("kind", ["session", "continuous"])
def test_a_window_with_its_other_entry_is_opened_and_fires(kind: str) -> None:
    filled = {"flags": 1, "trigger_state": 9 if kind == "continuous" else NONE}
    made = restore(kind, [filled, {"flags": TWIN, "0.words": 0}], retracting=True)
    made._check()
    assert made.live_windows == 1
    assert made.finish()
    assert pa.record_batch(made.take()).select(["key", "n", "row_kind"]).to_pylist() == [
        {"key": 7, "n": 3, "row_kind": "+I"}
    ]
    assert made.live_windows == 0


@pytest.mark.parametrize("kind", COUNTED)
@pytest.mark.parametrize(
    "rows",
    [
        [{"trigger_state": NONE}],
        [{"trigger_state": 0}],
        [{"trigger_state": 2**62 + 1}],
        [{"trigger_state": 2, "flags": 1}],
        [{"trigger_state": 2}, {"trigger_state": 2}],
        [{"trigger_state": 2, "flags": FURTHER}],
        [{"trigger_state": 2}, {"trigger_state": 3, "flags": FURTHER}],
        [{"trigger_state": 2}, {"trigger_state": 2, "flags": FURTHER, "key.key": 8}],
        [{"trigger_state": 2}, *[{"trigger_state": 2, "flags": FURTHER}] * 2],
        [{"trigger_state": 2}, {"key.key": 8, "trigger_state": 2}, {"trigger_state": 2, "flags": FURTHER}],
    ],
    ids=[
        "no count",
        "no element",
        "too many elements",
        "an unknown flag",
        "twice",
        "no first window",
        "other counts",
        "a window of another key",
        "more windows than are open",
        "behind another key",
    ],
)
def test_windows_that_a_count_of_elements_does_not_leave_open_are_refused(
    kind: str, rows: list[dict[str, Any]]
) -> None:
    if len(rows) == 3 and kind == "sliced_count" and "key.key" not in rows[1]:
        rows = [*rows, rows[-1]]
    with pytest.raises(
        SchemaError, match=rf"row {len(rows) - 1} of the windows .* is no window of this operator"
    ):
        restore(kind, rows, retracting=False)


@pytest.mark.parametrize("kind", COUNTED)
def test_what_a_checkpoint_lacks_of_counted_elements_is_open_and_empty(kind: str) -> None:
    made = restore(kind, [{"trigger_state": 2}], retracting=False)
    made._check()
    assert made.live_windows == {"count": 2, "sliced_count": 3}[kind]


MOST = 2**63 - 1
REFUSED = r"row 0 of the windows .* is no window of this operator"


@pytest.mark.parametrize(
    ("kind", "start", "end"),
    [
        ("time", 1, 11),
        ("time", 0, 20),
        ("time", 0, 10**15),
        ("time", -MOST - 1, MOST),
        ("time", -MOST - 1, -MOST + 9),
        ("continuous", 0, 10**15),
        ("continuous", 10**15 - 1, 10**15 + 9),
        ("by_count", 5, 15),
        ("sliding", 0, 10),
        ("sliding", -MOST, -MOST + 10),
        ("cumulate", 5, 10),
        ("cumulate", 0, 15),
        ("cumulate", 0, 7),
        ("sliced", 0, 20),
        ("sliced", 5, 15),
        ("global", 0, 10),
    ],
)
def test_a_window_that_is_never_assigned_is_refused(kind: str, start: int, end: int) -> None:
    with pytest.raises(SchemaError, match=REFUSED):
        restore(kind, [{"window_start": start, "window_end": end}])


@pytest.mark.parametrize(
    ("kind", "start", "end"),
    [
        ("time", -10, 0),
        ("sliding", -3, 7),
        ("cumulate", 0, 5),
        ("cumulate", -10, 0),
        ("sliced", 10, 20),
        ("global", -MOST - 1, MOST),
    ],
)
def test_a_window_that_is_assigned_is_opened(kind: str, start: int, end: int) -> None:
    made = restore(kind, [{"window_start": start, "window_end": end}])
    assert made.live_windows == 1
    made._check()


@pytest.mark.parametrize("kind", ["time", "continuous", "sliced", "session", "global"])
def test_a_window_of_a_key_comes_once(kind: str) -> None:
    ends = {"window_start": -MOST - 1, "window_end": MOST} if kind == "global" else {}
    with pytest.raises(SchemaError, match=r"row 1 of the windows .* is no window of this operator"):
        restore(kind, [ends, ends])


def test_sessions_of_a_key_do_not_meet() -> None:
    assert restore("session", [{}, {"window_start": 20, "window_end": 30}]).live_windows == 2
    with pytest.raises(SchemaError, match=r"row 1 of the windows .* is no window of this operator"):
        restore("session", [{}, {"window_start": 5, "window_end": 30}])


def test_sessions_are_written_in_the_order_in_which_their_keys_came() -> None:
    # That of the slots of their table would crowd the first slots of the table that they are read into.
    keys = list(range(300, 0, -1))
    made = restore("session", [{"key.key": key} for key in keys])
    assert pa.record_batch(made.windows()[0]).column("key").to_pylist() == keys


@pytest.mark.parametrize("count", [-1, 5, MOST])
def test_a_count_beyond_that_of_the_trigger_is_refused(count: int) -> None:
    with pytest.raises(SchemaError, match=REFUSED):
        restore("by_count", [{"trigger_state": count}])


@pytest.mark.parametrize(("column", "value"), [("0.words", 2**64 - 3), ("touched", 2)])
def test_numbers_that_an_aggregate_never_has_are_refused(column: str, value: int) -> None:
    with pytest.raises(SchemaError, match=rf"row 1 of the windows of a checkpoint has {value} among the"):
        restore("time", [{}, {"key.key": 8, column: value}])


def firings(
    windows: WindowAssigner[Any, Any], every_ms: int, table: pa.Table, **checkpoints: Any
) -> list[Any]:
    """What windows with a continuous trigger give, in order."""
    stream = (
        StreamExecutionEnvironment()
        .set_parallelism(1)
        .from_event_log(table, timestamp="ts")
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(9))
        )
    )
    triggered = stream.key_by("key").window(windows).trigger(ContinuousEventTimeTrigger(every_ms))
    rows = triggered.aggregate(n=count()).execute(**checkpoints).to_arrow().to_pylist()
    return [(row["window_start"], row["window_end"], row["n"], row["watermark"]) for row in rows]


def test_a_session_that_fires_at_the_last_timestamp_of_a_part_is_restored(tmp_path: Path) -> None:
    # [295, 300) fires at 299 next; merged with [297, 302), it still does.
    log, windows = pa.table({"key": ["a", "a", "a"], "ts": [295, 297, 320]}), EventTimeSessionWindows(5)
    parts = firings(windows, 5, log[:2], stop_with_checkpoint=tmp_path / "cut")
    parts += firings(windows, 5, log[2:], restore_from=tmp_path / "cut")
    assert parts == firings(windows, 5, log)


def test_windows_that_fire_at_one_time_do_so_in_the_same_order_after_a_restore(tmp_path: Path) -> None:
    log, windows = pa.table({"key": ["a", "a"], "ts": [4, 4]}), SlidingEventTimeWindows(30, 5, 0)
    parts = firings(windows, 1, log[:1], stop_with_checkpoint=tmp_path / "cut")
    parts += firings(windows, 1, log[1:], restore_from=tmp_path / "cut")
    whole = firings(windows, 1, log)
    assert parts == whole
    assert len({start for start, *_ in whole}) == 6
