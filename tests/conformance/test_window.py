"""The native window operators against Flink's WindowOperator, as far as they run the golden scenarios' programs."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from models.canonical import canonical_entries
from models.columnar_scenarios import (
    OVERFLOWING,
    aggregates_of,
    assigner_of,
    evictor_of,
    inner_trigger,
    shown,
    trigger_of,
    value_of,
    why_not_columnar,
)

from flinkcore._native.aggregates import Accumulators
from flinkcore._native.arrow import RecordBatch
from flinkcore._native.keys import KeyEncoder
from flinkcore._native.shared_accumulators import are_shareable
from flinkcore._native.window_operator import WindowOperator
from flinkcore.errors import ConfigurationError, DataError
from flinkcore.replay.stages.native_windows import window_kernel

ROWS = pa.schema([("key", pa.string()), ("value", pa.int64())])


def make_operator(
    item: dict[str, Any], clocks: list[int], watermarks: list[int], shareable: bool
) -> WindowOperator:
    aggregates = aggregates_of(item["function"])
    return WindowOperator(
        window_kernel(
            assigner_of(item),
            trigger_of(item),
            item["allowed_lateness"],
            evictor_of(item),
            shareable=shareable,
        ),
        keys=KeyEncoder(ROWS, ["key"]),
        accumulators=Accumulators(ROWS, aggregates),
        key_names=["key"],
        aggregate_names=[f"a{i}" for i in range(len(aggregates))],
        clocks=np.array(clocks, dtype=np.int64),
        watermarks=np.array(watermarks, dtype=np.int64),
        row_limit=1 << 18,
        byte_limit=1 << 28,
    )


def run(item: dict[str, Any], shareable: bool = False) -> dict[str, Any]:
    """Runs a scenario event by event: event i arrives at clock 2 i + 1, a watermark between its neighbours."""
    events = item["events"]
    advancing = [at for at, event in enumerate(events) if event[0] == "w"]
    operator = make_operator(
        item, [2 * at for at in advancing], [events[at][1] for at in advancing], shareable
    )
    keys = KeyEncoder(ROWS, ["key"])
    empty = pa.record_batch([[], []], schema=ROWS)
    entries: list[dict[str, Any]] = []
    late = 0

    def rows_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
        return batch.to_pylist()  # type: ignore[no-any-return]

    for at, event in enumerate(events):
        if event[0] == "w":
            batch, arrival = empty, 2 * at + 1
        elif event[0] == "r":
            batch, arrival = pa.record_batch([[event[2]], [event[3]]], schema=ROWS), 2 * at
        else:
            continue  # a status does nothing to windows
        timestamps = np.array([event[1]] if batch.num_rows else [], dtype=np.int64)
        native = RecordBatch(batch)
        keys.encode_batch(native)
        if batch.num_rows:
            operator.process(native, keys, None, timestamps, np.array([arrival], dtype=np.int64))
        else:
            operator.advance(arrival)
        operator._check()
        for row in rows_of(pa.record_batch(operator.take())):
            end = row["window_end"]
            last = 2**63 - 1 if end is None else end - 1
            entry = {"at": at, "type": "record", "ts": last, "value": value_of(item, row)}
            assert row["late_firing"] == (event[0] == "r" and last <= row["watermark"])
            if event[0] == "w":
                entry["timer"] = ["event", last, row["key"], row["window_start"]]
            entries.append(entry)
        for _ in operator.take_late():
            late += 1
            if item["late_output"]:
                entries.append({"at": at, "type": "side", "ts": event[1], "value": event[2:], "tag": "late"})
        if event[0] == "w":
            entries.append({"at": at, "type": "watermark", "ts": event[1]})
    return {"entries": entries, "late_dropped": 0 if item["late_output"] else late}


def with_times_of_timers(entries: list[dict[str, Any]], want: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A result does not tell at which time before its end a window fired: that is taken from the wanted ones."""
    timed = []
    for entry, wanted in zip(entries, want, strict=False):
        if "timer" in entry and "timer" in wanted:
            domain, _, key, start = entry["timer"]
            entry = {**entry, "timer": [domain, wanted["timer"][1], key, start]}
        timed.append(entry)
    return timed + entries[len(want) :]


def check(scenario: dict[str, Any]) -> None:
    item = scenario["input"]
    reason = why_not_columnar(item)
    if reason:
        pytest.skip(reason)
    want = scenario["output"]
    if scenario["name"] in OVERFLOWING or any(entry["type"] == "error" for entry in want["entries"]):
        with pytest.raises((ConfigurationError, DataError)):
            run(item)
        return
    wanted = shown(want["entries"])
    # Windows give the same whether they share slices or not.
    for shareable in {False, are_shareable(Accumulators(ROWS, aggregates_of(item["function"])))}:
        got = run(item, shareable)
        if inner_trigger(item)["type"] == "continuous_event_time":
            got["entries"] = with_times_of_timers(got["entries"], wanted)
        assert canonical_entries("window", item, got["entries"]) == canonical_entries("window", item, wanted)
        assert got["late_dropped"] == want["late_dropped"]


def test_columnar_windows_fire_as_flink_does(window_scenario: dict[str, Any]) -> None:
    check(window_scenario)


def test_columnar_windows_follow_the_seed_trace(seed_trace_scenario: dict[str, Any]) -> None:
    check(seed_trace_scenario)
