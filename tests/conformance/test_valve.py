"""StatusWatermarkValve against the traces of Flink's."""

from typing import Any

import numpy as np
from equipment.canonical import canonical
from models.valve import ValveModel

from flinkcore._native.valve import ACTIVE_KIND, IDLE_KIND, WATERMARK_KIND, StatusWatermarkValve


def one_by_one(valve: StatusWatermarkValve | ValveModel, events: list[list[Any]]) -> dict[str, Any]:
    entries = []
    for at, (verb, channel, value) in enumerate(events):
        put = valve.input_watermark if verb == "w" else valve.input_watermark_status
        for kind, emitted in put(channel, value):
            entries.append({"at": at, "type": kind, "ts" if kind == "watermark" else "status": emitted})
    return {"entries": entries}


def as_one_batch(valve: StatusWatermarkValve, events: list[list[Any]]) -> dict[str, Any]:
    kinds = {"idle": IDLE_KIND, "active": ACTIVE_KIND}
    rows, emitted_kinds, timestamps = valve.input_batch(
        np.array([channel for _, channel, _ in events], np.int32),
        np.array([WATERMARK_KIND if verb == "w" else kinds[value] for verb, _, value in events], np.int8),
        np.array([value if verb == "w" else 0 for verb, _, value in events], np.int64),
    )
    entries = []
    for at, kind, timestamp in zip(rows.tolist(), emitted_kinds.tolist(), timestamps.tolist(), strict=True):
        if kind == WATERMARK_KIND:
            entries.append({"at": at, "type": "watermark", "ts": timestamp})
        else:
            entries.append({"at": at, "type": "status", "status": "idle" if kind == IDLE_KIND else "active"})
    return {"entries": entries}


def test_every_input_puts_out_what_flinks_valve_does(valve_scenario: dict[str, Any]) -> None:
    item = valve_scenario["input"]
    valve = StatusWatermarkValve(item["channels"])
    output = one_by_one(valve, item["events"])
    valve._check()
    assert canonical("valve", item, output) == canonical("valve", item, valve_scenario["output"])


def test_a_batch_puts_out_what_flinks_valve_does(valve_scenario: dict[str, Any]) -> None:
    item = valve_scenario["input"]
    output = as_one_batch(StatusWatermarkValve(item["channels"]), item["events"])
    assert canonical("valve", item, output) == canonical("valve", item, valve_scenario["output"])


def test_the_model_of_the_property_tests_is_flinks_valve(valve_scenario: dict[str, Any]) -> None:
    item = valve_scenario["input"]
    output = one_by_one(ValveModel(item["channels"]), item["events"])
    assert canonical("valve", item, output) == canonical("valve", item, valve_scenario["output"])
