"""Watermark generators against the traces of Flink's."""

from collections.abc import Callable
from typing import Any

import pytest
from equipment.canonical import canonical
from equipment.recorders import WatermarkOutputRecorder
from jobs.golden_generators import periodic_assigner, python_generator
from models.watermarks import generator_of

from flinkcore._native.watermark_generator import WatermarkGenerator
from flinkcore.common import MIN_TIMESTAMP
from flinkcore.datastream.timestamps import AssignerWithPeriodicWatermarksAdapter
from flinkcore.errors import ConfigurationError, FlinkcoreError


def native(parameters: dict[str, Any], idleness_ms: int | None = None) -> WatermarkGenerator:
    kind = parameters["type"]
    if kind == "idleness":
        return native(parameters["of"], parameters["timeout"])
    if kind == "bounded":
        return WatermarkGenerator(parameters["delay"], idleness_ms)
    if kind == "ascending":
        return WatermarkGenerator(0, idleness_ms)
    if kind == "none":
        return WatermarkGenerator(None, idleness_ms)
    pytest.skip(f"the generator {kind!r} is not one of the columnar path")


def trace(build: Callable[[], Any], events: list[list[Any]]) -> dict[str, Any]:
    entries: list[dict[str, Any]] = []
    try:
        generator = build()
    except ConfigurationError:
        return {"entries": [{"at": -1, "type": "error"}]}
    clock_ms = 0
    for at, (verb, *arguments) in enumerate(events):
        outputs = []
        if verb == "e":
            outputs = generator.on_event(arguments[0]) or []
        elif verb == "t":
            clock_ms += arguments[0]
        else:
            outputs = generator.on_periodic_emit(clock_ms)
        entries += (
            {"at": at, "type": kind, "ts" if kind == "watermark" else "status": out} for kind, out in outputs
        )
    return {"entries": entries}


def test_every_call_puts_out_what_flinks_generator_does(
    watermark_generators_scenario: dict[str, Any],
) -> None:
    item = watermark_generators_scenario["input"]
    output = trace(lambda: native(item["generator"]), item["events"])
    expected = watermark_generators_scenario["output"]
    assert canonical("watermark_generators", item, output) == canonical(
        "watermark_generators", item, expected
    )


def test_the_model_of_the_property_tests_is_flinks_generator(
    watermark_generators_scenario: dict[str, Any],
) -> None:
    item = watermark_generators_scenario["input"]
    expected = watermark_generators_scenario["output"]
    if item["generator"]["type"].startswith("legacy"):
        pytest.skip("the model has no legacy generators")
    if any(entry["type"] == "error" for entry in expected["entries"]):
        pytest.skip("the model does not check its parameters")
    output = trace(lambda: generator_of(item["generator"]), item["events"])
    assert canonical("watermark_generators", item, output) == canonical(
        "watermark_generators", item, expected
    )


def drive_generator(item: dict[str, Any], recorder: WatermarkOutputRecorder) -> None:
    clock_ms = 0
    generator = python_generator(item["generator"], lambda: clock_ms)
    for recorder.at, (verb, *arguments) in enumerate(item["events"]):
        if verb == "e":
            generator.on_event(arguments[0], arguments[0], recorder)
        elif verb == "p":
            generator.on_periodic_emit(recorder)
        else:
            clock_ms += arguments[0]


def drive_assigner(item: dict[str, Any], recorder: WatermarkOutputRecorder) -> None:
    assigner = periodic_assigner(item["generator"])
    generator = AssignerWithPeriodicWatermarksAdapter(assigner)
    for recorder.at, (verb, *arguments) in enumerate(item["events"]):
        if verb == "e":
            timestamp = assigner.extract_timestamp(arguments[0], MIN_TIMESTAMP)
            recorder.add("extract", ts=timestamp)
            generator.on_event(arguments[0], timestamp, recorder)
        elif verb == "p":
            generator.on_periodic_emit(recorder)


def test_every_call_of_a_generator_in_python_puts_out_what_flinks_does(
    watermark_generators_scenario: dict[str, Any],
) -> None:
    item = watermark_generators_scenario["input"]
    recorder = WatermarkOutputRecorder()
    drive = drive_assigner if item["generator"]["type"].startswith("legacy") else drive_generator
    try:
        drive(item, recorder)
    except FlinkcoreError:
        recorder.add("error")
    expected = watermark_generators_scenario["output"]
    assert canonical("watermark_generators", item, {"entries": recorder.entries}) == canonical(
        "watermark_generators", item, expected
    )
