"""The native window operators against the row-by-row model, on random logs, batches and partitions."""

import math
from collections.abc import Sequence
from decimal import Decimal
from itertools import accumulate, groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from equipment.example_counts import examples
from equipment.timelines import steps_with_watermarks
from hypothesis import example, given, settings
from hypothesis import strategies as st
from models.aggregates import SPREADS, is_spread, result_of
from models.windows import Firing, WindowModel

from flinkcore._native.aggregates import Accumulators
from flinkcore._native.arrow import RecordBatch
from flinkcore._native.count_windows import count_windows, sliced_count_windows
from flinkcore._native.key_groups import compute_key_group_range_for_operator_index, key_groups
from flinkcore._native.keys import KeyEncoder
from flinkcore._native.session_windows import session_windows
from flinkcore._native.time_windows import sliced_windows, time_windows
from flinkcore._native.triggered_windows import global_windows, triggered_windows
from flinkcore._native.window_calendar import WindowCalendar
from flinkcore._native.window_operator import WindowKernel, WindowOperator
from flinkcore.columnar.stages.window_state import restore_windows, windows_to_table
from flinkcore.datastream.graph.key_columns import KeyColumns

EVENT = st.tuples(st.integers(0, 3), st.integers(-40, 120), st.integers(0, 4))  # arrival step, timestamp, key
STEP = st.tuples(st.integers(0, 6), st.integers(1, 25))  # clock step, watermark step


@st.composite
def jobs(draw: st.DrawFn, purging: bool = True, counting: bool = True) -> dict[str, Any]:
    kinds = ["tumbling", "sliding", "cumulate", "calendar", "session", "global"]
    kind = draw(st.sampled_from([*kinds, "count"] if counting else kinds))
    if kind == "count":
        slide = draw(st.integers(1, 6))
        shares = draw(st.booleans())
        size = slide * draw(st.integers(2, 5)) if shares else draw(st.integers(1, 9))
        elements = {"elements": size, "elements_slide": slide}
        fires = {"trigger": "count", "every": 1, "purges": False, "shares": shares}
        return {"lateness": 0, **elements, "full_only": draw(st.booleans()), **fires}
    job: dict[str, Any] = {"lateness": draw(st.sampled_from([0, 0, 1, 10, 60, 2**63 - 1]))}
    if kind == "session":
        job["gap"] = draw(st.integers(1, 15))
    elif kind == "global":
        job["lateness"] = 0
    elif kind == "calendar":
        widths = draw(st.lists(st.sampled_from([1, 5, 5, 12, 12, 12, 13]), min_size=30, max_size=40))
        job["bounds"] = tuple(accumulate([*widths, 400], initial=-60))
    else:
        job |= {"slide": draw(st.integers(1, 12)), "offset": draw(st.integers(-5, 5))}
        if kind == "cumulate":
            job |= {"size": job["slide"] * draw(st.integers(1, 6)), "cumulative": True}
        else:
            job["size"] = draw(st.integers(1, 30)) if kind == "sliding" else job["slide"]
    of_end = ["end_of_stream"] if kind == "global" and purging else []
    trigger = draw(st.sampled_from(["event_time", "count", "continuous_event_time", *of_end]))
    every = draw(st.integers(1, 12)) if trigger in ("count", "continuous_event_time") else 1
    purges = trigger == "end_of_stream" or (purging and draw(st.booleans()))
    job |= {"trigger": trigger, "every": every, "purges": purges}
    shares = (
        trigger == "event_time" and not job["purges"] and "size" in job and job["size"] % job["slide"] == 0
    )
    return job | {"shares": shares and draw(st.booleans())}


def calendar_between(bounds: tuple[int, ...]) -> WindowCalendar:
    """Windows of one length that follow each other are a run."""
    widths = np.diff(bounds)
    firsts = np.flatnonzero(np.append(True, widths[1:] != widths[:-1]))
    return WindowCalendar(np.array(bounds)[firsts], widths[firsts], bounds[0], bounds[-1] - 1)


def kernel_of(job: dict[str, Any]) -> WindowKernel:
    trigger = {name: job[name] for name in ("trigger", "every", "purges")}
    if "elements" in job:
        kernel = sliced_count_windows if job["shares"] else count_windows
        return kernel(size=job["elements"], slide=job["elements_slide"], full_only=job["full_only"])
    if "gap" in job:
        return session_windows(gap=job["gap"], allowed_lateness=job["lateness"], **trigger)
    if "size" not in job and "bounds" not in job:
        return global_windows(**trigger)
    windows = {name: job[name] for name in ("size", "slide", "offset", "cumulative") if name in job}
    if "bounds" in job:
        windows["calendar"] = calendar_between(job["bounds"])
    windows["allowed_lateness"] = job["lateness"]
    if job["shares"]:
        return sliced_windows(**windows)
    if job["trigger"] == "event_time":
        return time_windows(**windows, purges=job["purges"])
    return triggered_windows(**windows, **trigger)


def key_column(kind: str, numbers: list[int]) -> pa.Array:
    if kind == "int64":
        return pa.array(numbers, pa.int64())
    return pa.array([["", "a", "b" * 20, "ä", "ab"][n] for n in numbers], pa.string())


COLLECTED = (("elements", ("collect", "value", None)), ("n", ("count", None, None)))
OF_ANY_SIZE = (
    *COLLECTED,
    ("names", ("collect", "name", None)),
    ("last_name", ("last", "name", None)),
    ("least_name", ("min", "name", None)),
    ("names_known", ("count_distinct", "name", None)),
)
SHAREABLE = (
    ("elements", ("sum", "value", None)),
    ("n", ("count", None, None)),
    ("greatest", ("max", "value", None)),
)
"""The values are powers of two, so that their sum tells them."""
OF_DECIMALS = tuple(
    (f"{function}_price", (function, "price", None)) for function in ("sum", "mean", "min", "max")
)
OF_VALUES = (
    tuple(
        (f"{function}_{column}", (function, column, None))
        for function in ("first", "last", "count", "min", "max", "count_distinct", "collect")
        for column in ("price", "text", "real")
    )
    + tuple(
        (f"{function}_{column}", (function, column, None))
        for function in SPREADS
        for column in ("price", "real")
    )
    + tuple((f"{function}_pairs", (function, "pairs", None)) for function in ("first", "last", "collect"))
)
PAIRS = pa.list_(pa.struct([("n", pa.int64()), ("of", pa.string())]))
VALUES = pa.schema({"price": pa.decimal128(9, 2), "text": pa.string(), "real": pa.float64(), "pairs": PAIRS})
KEY_GROUPS = 16
NO_LIMIT = {"row_limit": 2**62, "byte_limit": 2**30}


def operator_of(
    job: dict[str, Any],
    schema: pa.Schema,
    watermarks: list[int],
    aggregates: Sequence[tuple[str, tuple[str, str | None, str | None]]] = COLLECTED,
    limits: dict[str, int] = NO_LIMIT,
    retracting: bool = False,
    accumulators: Accumulators | None = None,
    steps_done: int = 0,
) -> WindowOperator:
    if accumulators is None:
        accumulators = Accumulators(schema, [spec for _, spec in aggregates])
    return WindowOperator(
        kernel_of(job),
        keys=KeyEncoder(schema, ["key"]),
        accumulators=accumulators,
        key_names=["key"],
        aggregate_names=[name for name, _ in aggregates],
        timeline=steps_with_watermarks(watermarks, range(1, 2 * len(watermarks), 2)),
        retracting=retracting,
        steps_done=steps_done,
        **limits,
    )


def timeline_of(steps: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    clocks = [int(c) for c in np.cumsum([clock for clock, _ in steps])]
    watermarks = [int(w) - 30 for w in np.cumsum([step for _, step in steps])]
    return [*clocks, 2**63 - 1], [*watermarks, 2**63 - 1]


def batch_of(kind: str, events: list[tuple[int, int, int]]) -> tuple[pa.RecordBatch, np.ndarray]:
    """Return rows with a value and a text each, and their timestamps."""
    batch = pa.record_batch(
        {
            "key": key_column(kind, [key for _, _, key in events]),
            "value": pa.array(range(len(events)), pa.int64()),
            "name": pa.array([[None, "", "x", "y" * 30][t % 4] for _, t, _ in events], pa.string()),
        }
    )
    timestamps = np.array([timestamp for _, timestamp, _ in events], dtype=np.int64)
    return batch, timestamps


def watermarks_before(clocks: list[int], events: list[tuple[int, int, int]]) -> np.ndarray:
    """How many watermarks come before each event; one at a clock comes after what arrives then."""
    arrivals = np.cumsum([step for step, _, _ in events], dtype=np.int64)
    return np.searchsorted(clocks, arrivals, side="left")


def model_of(
    job: dict[str, Any],
    keys: list[Any],
    events: list[tuple[int, int, int]],
    clocks: list[int],
    watermarks: list[int],
) -> WindowModel:
    """The model behind the last event and watermark; the elements are the numbers of the events."""
    model = WindowModel(**{name: value for name, value in job.items() if name != "shares"})
    at = 0
    for value, ((_, timestamp, key), before) in enumerate(
        zip(events, watermarks_before(clocks, events).tolist(), strict=True)
    ):
        for watermark in watermarks[at:before]:
            model.advance(watermark)
        at = before
        model.element(keys[key], timestamp, value)
    for watermark in watermarks[at:]:
        model.advance(watermark)
    return model


def in_order_of_timers(firings: list[Firing], model: list[Firing]) -> list[list[tuple[Any, ...]]]:
    """Firings in order, but for the open one of timers of one watermark and one time; the model tells those."""
    rest = iter(firings)
    runs = [
        list(run)
        for _, run in groupby(
            enumerate(model),
            key=lambda item: (item[1].watermark, item[1].time, item[1].time is None and item[0]),
        )
    ]
    taken = [[firing for _, firing in zip(run, rest, strict=False)] for run in runs]
    return [
        sorted((str(f.key), str(f.start), f.end, tuple(f.elements), f.late, f.watermark) for f in run)
        for run in [*taken, list(rest)]
    ]


@pytest.mark.parametrize("kind", ["int64", "string"])
@settings(deadline=None, max_examples=examples(75))
@given(job=jobs(), events=st.lists(EVENT, max_size=60), steps=st.lists(STEP, max_size=20), data=st.data())
def test_native_windows_agree_with_the_model(
    kind: str,
    job: dict[str, Any],
    events: list[tuple[int, int, int]],
    steps: list[tuple[int, int]],
    data: st.DataObject,
) -> None:
    clocks, watermarks = timeline_of(steps)
    before = watermarks_before(clocks, events)
    fits = job["trigger"] != "continuous_event_time" and "bounds" not in job  # calendars have an end
    if fits and data.draw(st.booleans()):
        events = [(step, timestamp * 977, key) for step, timestamp, key in events]
        watermarks = [watermark * 977 for watermark in watermarks[:-1]] + watermarks[-1:]
    if data.draw(st.booleans()):  # a generator that ends before its log
        ended = data.draw(st.integers(0, len(watermarks) - 1))
        watermarks[ended:] = [2**63 - 1] * len(watermarks[ended:])

    model = model_of(job, key_column(kind, list(range(5))).to_pylist(), events, clocks, watermarks)
    batch = pa.record_batch(
        {
            "key": key_column(kind, [key for _, _, key in events]),
            "value": pa.array([1 << i if job["shares"] else i for i in range(len(events))], pa.int64()),
        }
    )
    timestamps = np.array([timestamp for _, timestamp, _ in events], dtype=np.int64)
    operator = operator_of(job, batch.schema, watermarks, SHAREABLE if job["shares"] else COLLECTED)
    encoder = KeyEncoder(batch.schema, ["key"])
    late: list[int] = []
    results: list[dict[str, Any]] = []
    start = 0
    while start < batch.num_rows:
        stop = data.draw(st.integers(start + 1, batch.num_rows))
        part = batch.slice(start, stop - start)
        native = RecordBatch(part)
        encoder.encode_batch(native)
        rows = None
        if data.draw(st.booleans()):
            rows = np.arange(part.num_rows, dtype=np.uint32)
        taken = operator.process(native, encoder, rows, timestamps[start:stop], 2 * before[start:stop])
        assert taken == part.num_rows
        late += [int(row) + start for row in operator.take_late()]
        operator._check()
        if data.draw(st.booleans()):
            results += pa.record_batch(operator.take()).to_pylist()
        start = stop
    assert operator.finish()
    operator._check()
    results += pa.record_batch(operator.take()).to_pylist()

    if job["shares"]:
        for r in results:
            assert r["greatest"] == 1 << (r["elements"].bit_length() - 1)
            r["elements"] = [i for i in range(len(events)) if r["elements"] >> i & 1]
    firings = [
        Firing(r["key"], r["window_start"], r["window_end"], r["elements"], r["late_firing"], r["watermark"])
        for r in results
    ]
    assert in_order_of_timers(firings, model.firings) == in_order_of_timers(model.firings, model.firings)
    assert late == model.late
    counts = operator.counts()
    assert (counts["windowed"], counts["late"], counts["in_no_window"]) == (
        model.windowed,
        len(model.late),
        model.in_no_window,
    )
    assert all(len(r["elements"]) == r["n"] for r in results)
    if "elements" in job:
        assert job["shares"] or operator.live_windows == model.open_counted
    else:
        is_global = not {"gap", "size", "bounds"} & job.keys()
        assert operator.live_windows == (is_global and bool(events))


@settings(deadline=None, max_examples=examples(100))
@given(
    kind=st.sampled_from(["int64", "string"]),
    job=jobs(),
    events=st.lists(EVENT, max_size=60),
    steps=st.lists(STEP, max_size=12),
    row_limit=st.sampled_from([1, 2, 7, 2**62]),
    byte_limit=st.sampled_from([1, 8, 40, 200, 2**30]),
    batch_rows=st.integers(1, 61),
)
def test_limits_of_results_cut_batches_and_change_no_row(
    kind: str,
    job: dict[str, Any],
    events: list[tuple[int, int, int]],
    steps: list[tuple[int, int]],
    row_limit: int,
    byte_limit: int,
    batch_rows: int,
) -> None:
    clocks, watermarks = timeline_of(steps)
    batch, timestamps = batch_of(kind, events)
    before = watermarks_before(clocks, events)
    windows_per_row = -(-job["size"] // job["slide"]) if "size" in job else 1

    def run(limits: dict[str, int]) -> tuple[list[dict[str, Any]], list[int], dict[str, int]]:
        aggregates = SHAREABLE if job["shares"] else OF_ANY_SIZE
        operator = operator_of(job, batch.schema, watermarks, aggregates, limits)
        encoder = KeyEncoder(batch.schema, ["key"])
        results: list[dict[str, Any]] = []
        late: list[int] = []

        def take() -> None:
            operator._check()
            rows = pa.record_batch(operator.take())
            rows.validate(full=True)
            assert rows.num_rows <= limits["row_limit"] + windows_per_row  # a late row fires as a whole
            results.extend(rows.to_pylist())

        for start in range(0, batch.num_rows, batch_rows):
            part = batch.slice(start, batch_rows)
            native = RecordBatch(part)
            encoder.encode_batch(native)
            times = timestamps[start : start + batch_rows], 2 * before[start : start + batch_rows]
            taken = 0
            while taken < part.num_rows:
                taken = operator.process(native, encoder, None, *times, taken)
                if operator.is_full:
                    take()
                else:
                    assert taken == part.num_rows
            late += [int(row) + start for row in operator.take_late()]
        while not operator.finish():
            assert operator.is_full
            take()
        take()
        return results, late, operator.counts()

    assert run({"row_limit": row_limit, "byte_limit": byte_limit}) == run(NO_LIMIT)


@settings(deadline=None, max_examples=examples(75))
@given(
    kind=st.sampled_from(["int64", "string"]),
    job=jobs(purging=False, counting=False),
    events=st.lists(EVENT, max_size=60),
    steps=st.lists(STEP, max_size=20),
    row_limit=st.sampled_from([1, 3, 2**62]),
    batch_rows=st.integers(1, 61),
)
def test_results_less_what_is_withdrawn_are_the_final_ones(
    kind: str,
    job: dict[str, Any],
    events: list[tuple[int, int, int]],
    steps: list[tuple[int, int]],
    row_limit: int,
    batch_rows: int,
) -> None:
    clocks, watermarks = timeline_of(steps)
    model = model_of(job, key_column(kind, list(range(5))).to_pylist(), events, clocks, watermarks)
    batch = pa.record_batch(
        {
            "key": key_column(kind, [key for _, _, key in events]),
            "value": pa.array([1 << i if job["shares"] else i for i in range(len(events))], pa.int64()),
        }
    )
    timestamps = np.array([timestamp for _, timestamp, _ in events], dtype=np.int64)
    before = watermarks_before(clocks, events)
    limits = {"row_limit": row_limit, "byte_limit": 2**30}
    aggregates = SHAREABLE if job["shares"] else COLLECTED
    operator = operator_of(job, batch.schema, watermarks, aggregates, limits, retracting=True)
    encoder = KeyEncoder(batch.schema, ["key"])
    results: list[dict[str, Any]] = []

    def take() -> None:
        operator._check()
        results.extend(pa.record_batch(operator.take()).to_pylist())

    for start in range(0, batch.num_rows, batch_rows):
        part = batch.slice(start, batch_rows)
        native = RecordBatch(part)
        encoder.encode_batch(native)
        times = timestamps[start : start + batch_rows], 2 * before[start : start + batch_rows]
        taken = 0
        while taken < part.num_rows:
            taken = operator.process(native, encoder, None, *times, taken)
            take()
    while not operator.finish():
        take()
    take()

    standing: dict[tuple[Any, ...], list[int]] = {}
    given: list[Firing] = []
    for r in results:
        elements = (
            [i for i in range(len(events)) if r["elements"] >> i & 1] if job["shares"] else r["elements"]
        )
        window = r["key"], r["window_start"], r["window_end"]
        if r["row_kind"] in ("-U", "-D"):
            assert standing.pop(window) == elements
            continue
        assert r["row_kind"] == ("+U" if given_before(results, r) else "+I")
        assert window not in standing
        standing[window] = elements
        given.append(Firing(*window, elements, r["late_firing"], r["watermark"]))
    assert standing == model.results
    assert in_order_of_timers(given, model.firings) == in_order_of_timers(model.firings, model.firings)
    assert operator.counts()["retractions"] == len(results) - len(given)


VALUE = st.fixed_dictionaries(
    {
        "price": st.none() | st.sampled_from([Decimal(n) for n in ("0.00", "1.25", "-7.01", "9999999.99")]),
        "text": st.none() | st.sampled_from(["", "a", "ä" * 20]),
        "real": st.none() | st.sampled_from([0.0, 1.5, -2.25, 0.1, math.nan]),
        "pairs": st.sampled_from([None, [], [None, {"n": 1, "of": None}], [{"n": None, "of": "ä"}] * 3]),
    }
)


@settings(deadline=None, max_examples=examples(100))
@given(
    job=jobs(),
    events=st.lists(st.tuples(EVENT, VALUE), max_size=40),
    steps=st.lists(STEP, max_size=12),
    batch_rows=st.integers(1, 41),
    withdraws=st.booleans(),
)
def test_aggregates_of_a_window_are_those_of_its_elements(
    job: dict[str, Any],
    events: list[tuple[tuple[int, int, int], dict[str, Any]]],
    steps: list[tuple[int, int]],
    batch_rows: int,
    withdraws: bool,
) -> None:
    """However windows are made of entries, which are shared, merged, taken out of one another and used again."""
    placed, values = [place for place, _ in events], [value for _, value in events]
    _, watermarks = timeline = timeline_of(steps)
    before = watermarks_before(timeline[0], placed)
    numbers = [1 << i if job["shares"] else i for i in range(len(events))]
    batch = pa.record_batch(
        {
            "key": pa.array([key for _, _, key in placed], pa.int64()),
            "value": pa.array(numbers, pa.int64()),
            **{
                name: pa.array([value[name] for value in values], VALUES.field(name).type)
                for name in VALUES.names
            },
        }
    )
    timestamps = np.array([timestamp for _, timestamp, _ in placed], dtype=np.int64)
    named = OF_DECIMALS if job["shares"] else (*OF_DECIMALS, *OF_VALUES)
    aggregates = (*(SHAREABLE if job["shares"] else COLLECTED), *named)
    retracting = withdraws and not job.get("purges") and "elements" not in job
    operator = operator_of(job, batch.schema, watermarks, aggregates, retracting=retracting)
    encoder = KeyEncoder(batch.schema, ["key"])
    results: list[dict[str, Any]] = []
    for start in range(0, batch.num_rows, batch_rows):
        part = batch.slice(start, batch_rows)
        native = RecordBatch(part, any_type=True)
        encoder.encode_batch(native)
        until = start + part.num_rows
        operator.process(native, encoder, None, timestamps[start:until], 2 * before[start:until])
        results += pa.record_batch(operator.take()).to_pylist()
        operator._check()
    assert operator.finish()
    results += pa.record_batch(operator.take()).to_pylist()

    for r in results:
        elements = r["elements"]
        if job["shares"]:
            elements = [i for i in range(len(events)) if elements >> i & 1]
        rows = [values[i] for i in elements]
        for name, spec in named:
            if spec[0] in SPREADS:
                assert is_spread(spec[0], r[name], [row[spec[1]] for row in rows if row[spec[1]] is not None])
            else:
                assert repr(r[name]) == repr(result_of(rows, spec, VALUES)), (name, rows)


def given_before(results: list[dict[str, Any]], result: dict[str, Any]) -> bool:
    """Whether the last row of the same window before this one withdraws a result of it, to be replaced."""
    window = [result[name] for name in ("key", "window_start", "window_end")]
    last = None
    for row in results:
        if row is result:
            break
        if [row[name] for name in ("key", "window_start", "window_end")] == window:
            last = row["row_kind"]
    return last == "-U"


@settings(deadline=None, max_examples=examples(100))
@given(
    kind=st.sampled_from(["int64", "string"]),
    jobs_and_modes=st.one_of(
        st.tuples(jobs(), st.just(False)), st.tuples(jobs(purging=False, counting=False), st.just(True))
    ),
    events=st.lists(EVENT, min_size=1, max_size=60),
    steps=st.lists(STEP, max_size=12),
    cut=st.integers(0, 60),
    partitions=st.tuples(st.integers(1, 3), st.integers(1, 3)),
)
@example(
    kind="int64",
    jobs_and_modes=(
        {
            "lateness": 2**63 - 1,
            "gap": 4,
            "trigger": "event_time",
            "every": 1,
            "purges": False,
            "shares": False,
        },
        True,
    ),
    events=[(2, 63, 3), (14, 32, 0), (0, 118, 2), (0, 67, 3), (0, 119, 3), (0, 41, 1), (0, 96, 0)],
    steps=[(6, 3), (3, 2), (6, 3)],
    cut=5,
    partitions=(3, 2),
)
def test_windows_go_on_from_a_checkpoint_in_other_partitions_as_if_they_had_not_stopped(
    kind: str,
    jobs_and_modes: tuple[dict[str, Any], bool],
    events: list[tuple[int, int, int]],
    steps: list[tuple[int, int]],
    cut: int,
    partitions: tuple[int, int],
) -> None:
    job, retracting = jobs_and_modes
    clocks, watermarks = timeline_of(steps)
    batch, timestamps = batch_of(kind, events)
    before = watermarks_before(clocks, events)
    groups = key_groups(batch.select(["key"]), KEY_GROUPS)
    results: list[str] = []

    def run(
        operator: WindowOperator, start: int, stop: int, own: tuple[int, int] = (0, KEY_GROUPS - 1)
    ) -> list[str]:
        native, encoder = RecordBatch(batch), KeyEncoder(batch.schema, ["key"])
        encoder.encode_batch(native)
        numbers = np.arange(len(events))
        rows = np.flatnonzero(
            (numbers >= start) & (numbers < stop) & (groups >= own[0]) & (groups <= own[1])
        ).astype(np.uint32)
        assert operator.process(native, encoder, rows, timestamps, 2 * before) == len(rows)
        late = [repr(batch.slice(int(row), 1).to_pylist()) for row in operator.take_late()]
        assert operator.finish()
        operator._check()
        return [*late, *map(repr, pa.record_batch(operator.take()).to_pylist())]

    def ranges(count: int) -> list[tuple[int, int]]:
        return [compute_key_group_range_for_operator_index(KEY_GROUPS, count, i) for i in range(count)]

    aggregates = SHAREABLE if job["shares"] else OF_ANY_SIZE
    specs = [spec for _, spec in aggregates]

    def operator_at(accumulators: Accumulators, steps: int | None = None, done: int = 0) -> WindowOperator:
        return operator_of(
            job,
            batch.schema,
            watermarks[:steps],
            aggregates,
            retracting=retracting,
            accumulators=accumulators,
            steps_done=2 * done,
        )

    whole = run(operator_at(Accumulators(batch.schema, specs)), 0, len(events))
    cut = 1 + cut % len(events)
    done = int(before[cut - 1])
    tables = []
    for own in ranges(partitions[0]):
        accumulators = Accumulators(batch.schema, specs)
        operator = operator_at(accumulators, done)
        results += run(operator, 0, cut, own)
        tables.append(windows_to_table(operator, accumulators, ["key"], KEY_GROUPS))
    for own in ranges(partitions[1]):
        accumulators = Accumulators(batch.schema, specs)
        operator = operator_at(accumulators, None, done)
        for table in tables:
            restore_windows(operator, accumulators, KeyColumns(("key",)), table.of_key_groups(*own))
            operator._check()
        results += run(operator, cut, len(events), own)
    assert sorted(results) == sorted(whole)
