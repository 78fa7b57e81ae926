"""The walk-through of late records shows what Flink's window operator did with them."""

import json
from pathlib import Path
from typing import Any

from flinkcore.common import MAX_TIMESTAMP
from flinkcore.examples.late_records import START_MS, Outcome, WindowFiring, lines, walk_through

GOLDEN = Path(__file__).parents[2] / "golden" / "seed_trace.jsonl"


def traced() -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """Events and output entries of the trace with the watermarks of bounded out-of-orderness."""
    for line in GOLDEN.read_text().splitlines():
        scenario = json.loads(line)
        if scenario["name"] == "seed_trace-edge-bounded_out_of_orderness":
            return scenario["input"]["events"], scenario["output"]["entries"]
    raise AssertionError("the trace is not there")


def firings(entries: list[dict[str, Any]], at: int) -> list[WindowFiring]:
    return [
        WindowFiring((entry["value"]["start"], entry["value"]["end"]), entry["value"]["elements"])  # type: ignore[arg-type]
        for entry in entries
        if entry["at"] == at and entry["type"] == "record"
    ]


def test_every_step_is_that_of_the_trace() -> None:
    events, entries = traced()
    expected, watermark = [], -(2**63)
    for at, event in enumerate(events):
        if event[0] == "w":
            watermark = event[1]
            element = None if watermark == MAX_TIMESTAMP else expected.pop()
            fired = [] if element is None else element.at_once
            is_late = element is not None and element.is_late
            which = None if element is None else element.element
            expected.append(Outcome(which, watermark, fired, firings(entries, at), is_late))
        else:
            is_late = any(entry["at"] == at and entry["type"] == "side" for entry in entries)
            expected.append(Outcome((event[3], event[1]), watermark, firings(entries, at), [], is_late))
    assert list(walk_through()) == expected


def test_the_text_tells_of_every_record() -> None:
    text = list(lines())
    assert text[1] == "     0  11:34:22.000  11:34:11.999"
    assert text[6].strip() == "fires: [11:34:21, 11:34:24) with 0"
    assert sum("side output" in line for line in text) == 1
    assert len(text) == 22
    assert START_MS % 3000 == 0
