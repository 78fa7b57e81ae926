"""Memory of open windows, from a single key on, and its way to the next ones."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from equipment.timelines import steps_with_watermarks

from flinkcore._native.aggregates import Accumulators
from flinkcore._native.arrow import RecordBatch
from flinkcore._native.count_windows import count_windows, sliced_count_windows
from flinkcore._native.keys import KeyEncoder
from flinkcore._native.session_windows import session_windows
from flinkcore._native.time_windows import different_panes, sliced_windows, time_windows
from flinkcore._native.triggered_windows import triggered_windows
from flinkcore._native.window_calendar import WindowCalendar
from flinkcore._native.window_operator import WindowKernel, WindowOperator

KEYS = {"int64": pa.int64(), "string": pa.string()}
SPECS = [
    ("count", None, None),
    ("sum", "v", None),
    ("max", "v", None),
    ("min", "v", None),
    ("count", "v", None),
]
ENTRY_BYTES = 5 * 8 + 1


class Windows:
    """An operator over rows with a key and a value, whose watermarks are 0, 10, 20 and so on up to the last one."""

    def __init__(self, kernel: WindowKernel, kind: str = "int64", steps: int = 0, **settings: Any) -> None:
        self.schema = pa.schema([("key", KEYS[kind]), ("v", pa.int64())])
        self.kind = kind
        self.accumulators = Accumulators(self.schema, SPECS)
        self.operator = WindowOperator(
            kernel,
            keys=KeyEncoder(self.schema, ["key"]),
            accumulators=self.accumulators,
            key_names=["key"],
            aggregate_names=["n", "total", "top", "low", "values"],
            timeline=steps_with_watermarks(np.append(10 * np.arange(steps), 2**63 - 1)),
            row_limit=1 << 20,
            byte_limit=1 << 30,
            **settings,
        )

    def add(self, keys: Any, timestamps: Any, steps_before: int = 0) -> None:
        """Take in rows, whose values are their keys."""
        keys, timestamps = np.asarray(keys, np.int64), np.asarray(timestamps, np.int64)
        names = [f"k{key}" for key in keys.tolist()] if self.kind == "string" else keys
        batch = RecordBatch(pa.record_batch([pa.array(names), pa.array(keys)], schema=self.schema))
        encoder = KeyEncoder(self.schema, ["key"])
        encoder.encode_batch(batch)
        taken = self.operator.process(
            batch, encoder, None, timestamps, np.full(len(keys), steps_before, np.int64)
        )
        assert taken == len(keys)

    def results(self) -> list[dict[str, Any]]:
        assert self.operator.finish()
        self.operator._check()
        return self.taken()

    def taken(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = pa.record_batch(self.operator.take()).to_pylist()
        return rows


def tumbling(lateness: int = 0) -> WindowKernel:
    return time_windows(size=10, slide=10, offset=0, allowed_lateness=lateness)


def calendar() -> WindowKernel:
    days = WindowCalendar(np.array([0]), np.array([10]), 0, 1 << 30)
    return time_windows(calendar=days, allowed_lateness=0)


@pytest.mark.parametrize("kind", ["int64", "string"])
@pytest.mark.parametrize(
    ("kernel", "most"),
    [
        (tumbling, 200),
        (lambda: time_windows(size=20, slide=10, offset=0, allowed_lateness=0), 2 * 200),
        (calendar, 200),
        (lambda: sliced_windows(size=20, slide=10, offset=0, allowed_lateness=0), 200),
        (
            lambda: triggered_windows(size=10, slide=10, allowed_lateness=0, trigger="count", every=5),
            200 + 1.5 * 9,
        ),
        (
            lambda: triggered_windows(
                size=10, slide=10, allowed_lateness=0, trigger="continuous_event_time", every=3
            ),
            # A trigger's state and timer, and the bucket of its time; there is room for twice as many buckets.
            200 + 1.5 * 9 + 16 + 2 * 32,
        ),
        (lambda: session_windows(gap=10, allowed_lateness=0), 300),
        (lambda: count_windows(size=3, slide=3, full_only=True), 200),
        (lambda: sliced_count_windows(size=4, slide=2, full_only=True), 200),
    ],
    ids=[
        "tumbling",
        "sliding",
        "calendar",
        "sliced",
        "count",
        "continuous",
        "session",
        "counted",
        "sliced counted",
    ],
)
def test_a_window_of_one_key_takes_some_200_bytes_beyond_its_accumulators(
    kernel: Any, most: float, kind: str
) -> None:
    n = 10_000
    windows = Windows(kernel(), kind)
    windows.add(np.arange(n), 10 * np.arange(n))
    windows.operator._check()
    assert n <= windows.operator.live_windows <= n + 1
    assert windows.operator.memory_bytes() <= most * n + 70_000
    entries = 2 if most == 2 * 200 else 1
    assert windows.accumulators.memory_bytes() <= ENTRY_BYTES * (2 * entries * n + 512)


def test_the_bytes_of_a_key_are_held_once_per_window() -> None:
    schema = pa.schema([("key", pa.string()), ("v", pa.int64())])
    batch = RecordBatch(pa.record_batch([pa.array(["x" * 1_000]), pa.array([1])], schema=schema))
    encoder = KeyEncoder(schema, ["key"])
    encoder.encode_batch(batch)
    windows = Windows(tumbling(), "string")
    for window in range(100):
        windows.operator.process(batch, encoder, None, np.array([10 * window]), np.array([0]))
    assert 100_000 < windows.operator.memory_bytes() < 130_000


@pytest.mark.parametrize("kind", ["int64", "string"])
@pytest.mark.parametrize("settings", [{}, {"retracting": True}], ids=["plain", "with twins"])
def test_a_window_grows_over_all_sizes_key_by_key(kind: str, settings: dict[str, bool]) -> None:
    kernel = (
        triggered_windows(size=10, slide=10, allowed_lateness=0, trigger="continuous_event_time", every=10)
        if settings
        else tumbling()
    )
    windows = Windows(kernel, kind, **settings)
    for key in range(700):
        windows.add([key, key // 2], [3, 4])
        windows.operator._check()
    results = windows.results()
    seen = np.bincount(np.concatenate([np.arange(700), np.arange(700) // 2])).tolist()
    assert [row["n"] for row in results] == seen
    assert [row["total"] for row in results] == [key * n for key, n in enumerate(seen)]


def test_windows_that_grow_by_turns_keep_their_keys_apart() -> None:
    windows = Windows(tumbling())
    for key in range(300):
        for window in range(7):
            if key % (window + 1) == 0:
                windows.add([key], [10 * window])
    windows.operator._check()
    results = windows.results()
    assert [(row["window_start"], row["total"]) for row in results] == [
        (10 * window, key) for window in range(7) for key in range(0, 300, window + 1)
    ]


def test_a_key_that_a_window_has_is_found_whatever_its_size() -> None:
    for n_keys in (1, 2, 8, 9, 10, 21, 22, 255, 256, 257):
        windows = Windows(tumbling())
        for _ in range(3):
            windows.add(np.arange(n_keys), np.full(n_keys, 5))
        windows.operator._check()
        assert [row["n"] for row in windows.results()] == [3] * n_keys


def test_closed_windows_leave_their_memory_to_the_next() -> None:
    windows = Windows(tumbling(), steps=101)
    held = []
    for step in range(100):
        windows.add(np.arange(500), np.full(500, 10 * step), steps_before=step)
        windows.operator._check()
        held.append((windows.operator.memory_bytes(), len(windows.accumulators)))
    assert held[5:] == [held[5]] * 95
    assert windows.operator.live_windows <= 2


@pytest.mark.parametrize(("n_keys", "most"), [(1, 200), (5, 600), (30, 8_000)])
def test_windows_of_few_keys_stay_small_though_the_last_one_was_crowded(n_keys: int, most: int) -> None:
    windows = Windows(tumbling(), steps=2)
    windows.add(np.arange(50_000), np.zeros(50_000))
    crowded = windows.operator.memory_bytes()
    assert crowded > 2_000_000
    windows.add(
        np.tile(np.arange(n_keys), 1_000), 10 * np.repeat(np.arange(1, 1_001), n_keys), steps_before=2
    )
    windows.operator._check()
    assert windows.operator.live_windows == 1_000
    assert (
        windows.operator.memory_bytes() < crowded + 1_000 * most + 20_000
    )  # one has the memory of the crowded one
    windows.add(np.arange(10_000), np.full(10_000, 5_000), steps_before=2)
    windows.operator._check()
    assert len(windows.results()) == 50_000 + 999 * n_keys + 10_000


def test_windows_close_at_the_front_while_others_open_everywhere() -> None:
    windows = Windows(tumbling(lateness=30), steps=400)
    expected: dict[tuple[int, int], int] = {}
    generator = np.random.default_rng(5)
    for step in range(0, 400, 3):
        times = 10 * step + generator.integers(-25, 500, 40)
        keys = generator.integers(0, 3, 40)
        windows.add(keys, times, steps_before=step)
        windows.operator._check()
        for key, time in zip(keys.tolist(), times.tolist(), strict=True):
            at = key, time - time % 10
            expected[at] = expected.get(at, 0) + 1
    results = [*windows.results()]
    counts = windows.operator.counts()
    assert counts["late"] == 0
    found = {(row["key"], row["window_start"]): row["n"] for row in results}
    assert found == expected


def test_sliding_windows_give_back_what_they_derive() -> None:
    windows = Windows(sliced_windows(size=50, slide=10, offset=0, allowed_lateness=0), steps=200)
    held = []
    for step in range(200):
        n_keys = 400 if step % 50 < 25 else 3
        windows.add(np.arange(n_keys), np.full(n_keys, 10 * step), steps_before=step)
        windows.operator._check()
        held.append(windows.operator.memory_bytes())
    assert held[74] <= 1.1 * held[24]
    assert held[199] < held[174] / 4


def test_timers_of_windows_give_their_memory_back() -> None:
    kernel = triggered_windows(
        size=10, slide=10, allowed_lateness=0, trigger="continuous_event_time", every=3
    )
    windows = Windows(kernel, steps=2_000)
    windows.add(np.arange(1_000), 10 * np.arange(1_000))
    held = windows.operator.memory_bytes()
    windows.add([1], [20_000], steps_before=2_000)
    windows.operator._check()
    assert windows.operator.live_windows == 1
    assert windows.operator.memory_bytes() < held / 2


@pytest.mark.parametrize("kind", ["int64", "string"])
def test_different_panes_of_keys_are_counted_up_to_a_limit(kind: str) -> None:
    generator = np.random.default_rng(3)
    keys, times = generator.integers(0, 30, 2_000), generator.integers(-300, 300, 2_000)
    schema = pa.schema([("key", KEYS[kind])])
    names: Any = [f"k{key}" for key in keys.tolist()] if kind == "string" else keys
    encoder = KeyEncoder(schema, ["key"])
    encoder.encode_batch(RecordBatch(pa.record_batch([pa.array(names)], schema=schema)))
    rows = generator.permutation(2_000)[:1_500].astype(np.uint32)

    def panes(rows: npt.NDArray[np.uint32], most: int = 2_000, **windows: Any) -> int:
        return different_panes(encoder, rows, times, most=most, **(windows or {"width": 20, "offset": 7}))

    expected = len({(int(keys[row]), (int(times[row]) - 7) // 20) for row in rows})
    assert panes(rows) == expected
    assert panes(rows, most=expected) == expected
    assert panes(rows, most=expected - 1) == expected
    assert panes(rows, most=10) == 11
    assert panes(rows, most=0) == 1
    assert panes(rows[:0]) == 0
    months = WindowCalendar(np.array([-300, 0]), np.array([30, 60]), -300, 299)
    in_months = {
        (int(keys[row]), int(times[row]) // 60 if times[row] >= 0 else (int(times[row]) + 300) // 30 - 10)
        for row in rows
    }
    assert panes(rows, calendar=months) == len(in_months)
    with pytest.raises(IndexError, match="a timestamp and a key each"):
        panes(np.array([2_000], np.uint32))
