"""The native window operators against Flink's WindowOperator, as far as they run the golden scenarios' programs."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from equipment.canonical import canonical_entries, canonical_values, without_times_of_timers
from equipment.timelines import packed_steps
from jobs.columnar_scenarios import (
    MAX,
    MIN,
    ROWS,
    accumulators_of,
    aggregates_of,
    assigner_of,
    event_timers_of,
    evictor_of,
    inner_trigger,
    shown,
    tells_timers,
    trigger_of,
    value_of,
    why_not_columnar,
)
from jobs.window_scenarios import wanted_output

from flinkcore._native.aggregates import are_shareable
from flinkcore._native.arrow import RecordBatch
from flinkcore._native.keys import KeyEncoder
from flinkcore._native.window_operator import WindowOperator
from flinkcore.columnar.operator_plans.native_windows import window_kernel
from flinkcore.errors import ConfigurationError, DataError


def make_operator(item: dict[str, Any], watermarks: list[int], shareable: bool) -> WindowOperator:
    return WindowOperator(
        window_kernel(
            assigner_of(item),
            trigger_of(item),
            item["allowed_lateness"],
            evictor_of(item),
            shareable=shareable,
        ),
        keys=KeyEncoder(ROWS, ["key"]),
        accumulators=accumulators_of(item),
        key_names=["key"],
        aggregate_names=[f"a{i}" for i in range(len(aggregates_of(item["function"])))],
        # At this clock a step is an advance even if the watermark stays the same, as each watermark of a scenario is.
        timeline=packed_steps([2**63 - 1] * len(watermarks), watermarks),
        row_limit=1 << 18,
        byte_limit=1 << 28,
    )


class ColumnarRun:
    """Runs a scenario event by event; each watermark is a step of the timeline."""

    def __init__(self, item: dict[str, Any], shareable: bool) -> None:
        self.item = item
        self.entries: list[dict[str, Any]] = []
        self.late = 0
        self.watermark = MIN
        self.steps = 0
        watermarks = [event[1] for event in item["events"] if event[0] == "w"]
        self.operator = make_operator(item, watermarks, shareable)
        self.keys = KeyEncoder(ROWS, ["key"])

    def apply(self, at: int) -> None:
        item, operator, event = self.item, self.operator, self.item["events"][at]
        if event[0] not in "rw":
            return  # a status does nothing to windows
        if event[0] == "r":
            batch = pa.record_batch([[event[2]], [event[3]]], schema=ROWS)
            native = RecordBatch(batch)
            self.keys.encode_batch(native)
            operator.process(native, self.keys, None, np.array([event[1]]), np.array([self.steps]))
        else:
            self.steps += 1
            operator.advance(self.steps)
            self.watermark = event[1]
        operator._check()
        for row in pa.record_batch(operator.take()).to_pylist():
            last = MAX if row["window_end"] is None else row["window_end"] - 1
            entry = {"at": at, "type": "record", "ts": last, "value": value_of(item, row)}
            assert row["late_firing"] == (event[0] == "r" and last <= self.watermark)
            assert row["watermark"] == self.watermark
            if event[0] == "w":
                entry["timer"] = ["event", last, row["key"], row["window_start"]]
            self.entries.append(entry)
        for _ in operator.take_late():
            self.late += 1
            if item["late_output"]:
                self.entries.append(
                    {"at": at, "type": "side", "ts": event[1], "value": event[2:], "tag": "late"}
                )
        if event[0] == "w":
            self.entries.append({"at": at, "type": "watermark", "ts": event[1]})

    def counts(self) -> dict[str, int]:
        windows = pa.record_batch(self.operator.windows()[0]).to_pylist()
        return {
            "late_dropped": 0 if self.item["late_output"] else self.late,
            "event_timers": event_timers_of(self.item, windows, self.watermark),
            "processing_timers": 0,
        }


def run(item: dict[str, Any], shareable: bool) -> dict[str, Any]:
    """Returns the output of a scenario; an error ends it."""
    try:
        columnar = ColumnarRun(item, shareable)
    except ConfigurationError:
        return {"entries": [{"at": -1, "type": "error"}]}
    for at in range(len(item["events"])):
        try:
            columnar.apply(at)
        except DataError:
            columnar.entries.append({"at": at, "type": "error"})
            break
    return {"entries": columnar.entries, **columnar.counts()}


def check(scenario: dict[str, Any]) -> None:
    item = scenario["input"]
    reason = why_not_columnar(item)
    if reason:
        pytest.skip(reason)
    want = dict(wanted_output(scenario))
    wanted = canonical_entries("window", item, shown(want.pop("entries")))
    # Windows give the same whether they share slices or not.
    for shareable in {False, are_shareable(accumulators_of(item))}:
        got = run(item, shareable)
        entries = got.pop("entries")
        if inner_trigger(item)["type"] == "continuous_event_time":
            untimed = without_times_of_timers(wanted, canonical_values("window", item, entries))
            assert untimed[1] == untimed[0]
        else:
            assert canonical_entries("window", item, entries) == wanted
        told = want.keys() - (set() if tells_timers(item, shareable) else {"event_timers"})
        assert {name: got[name] for name in told} == {name: want[name] for name in told}


def test_columnar_windows_fire_as_flink_does(window_scenario: dict[str, Any]) -> None:
    check(window_scenario)


def test_columnar_windows_follow_the_seed_trace(seed_trace_scenario: dict[str, Any]) -> None:
    check(seed_trace_scenario)
