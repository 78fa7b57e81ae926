"""WatermarkOutputMultiplexer against the traces of Flink's."""

from typing import Any

from models.canonical import canonical

from flinkcore.common import Watermark
from flinkcore.errors import LifecycleError
from flinkcore.runtime.watermark_output_multiplexer import WatermarkOutputMultiplexer


class Recorder:
    """The underlying output, and what hears of the splits."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.at = -1

    def add(self, kind: str, **fields: Any) -> None:
        self.entries.append({"at": self.at, "type": kind, **fields})

    def emit_watermark(self, watermark: Watermark) -> None:
        self.add("watermark", ts=watermark.timestamp)

    def mark_idle(self) -> None:
        self.add("status", status="idle")

    def mark_active(self) -> None:
        self.add("status", status="active")


class Listener:
    def __init__(self, recorder: Recorder, output_id: str) -> None:
        self.recorder = recorder
        self.output_id = output_id

    def on_watermark_update(self, watermark: int) -> None:
        self.recorder.add("split_watermark", id=self.output_id, ts=watermark)

    def on_idle_update(self, idle: bool) -> None:
        self.recorder.add("split_idle", id=self.output_id, idle=idle)


def apply(multiplexer: WatermarkOutputMultiplexer, recorder: Recorder, event: list[Any]) -> None:
    match event:
        case ["periodic"]:
            multiplexer.on_periodic_emit()
        case ["register", output_id]:
            multiplexer.register_new_output(output_id, Listener(recorder, output_id))
        case ["unregister", output_id]:
            recorder.add("unregistered", id=output_id, found=multiplexer.unregister_output(output_id))
        case [verb, output_id, call, *timestamp]:
            immediate = verb == "immediate"
            get = multiplexer.get_immediate_output if immediate else multiplexer.get_deferred_output
            output = get(output_id)
            if call == "watermark":
                output.emit_watermark(Watermark(*timestamp))
            elif call == "idle":
                output.mark_idle()
            else:
                output.mark_active()


def trace(events: list[list[Any]]) -> dict[str, Any]:
    recorder = Recorder()
    multiplexer = WatermarkOutputMultiplexer(recorder)
    for recorder.at, event in enumerate(events):
        try:
            apply(multiplexer, recorder, event)
        except LifecycleError:
            recorder.add("error")
    return {"entries": recorder.entries}


def test_every_call_puts_out_what_flinks_multiplexer_does(multiplexer_scenario: dict[str, Any]) -> None:
    item = multiplexer_scenario["input"]
    expected = multiplexer_scenario["output"]
    assert canonical("multiplexer", item, trace(item["events"])) == canonical("multiplexer", item, expected)
