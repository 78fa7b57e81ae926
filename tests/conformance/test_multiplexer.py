"""WatermarkOutputMultiplexer against the traces of Flink's."""

from typing import Any

from models.canonical import canonical
from models.recorders import WatermarkOutputRecorder

from flinkcore.common import Watermark
from flinkcore.errors import LifecycleError
from flinkcore.runtime.sources.watermark_output_multiplexer import WatermarkOutputMultiplexer


class Listener:
    def __init__(self, recorder: WatermarkOutputRecorder, output_id: str) -> None:
        self.recorder = recorder
        self.output_id = output_id

    def on_watermark_update(self, watermark: int) -> None:
        self.recorder.add("split_watermark", id=self.output_id, ts=watermark)

    def on_idle_update(self, idle: bool) -> None:
        self.recorder.add("split_idle", id=self.output_id, idle=idle)


def apply(
    multiplexer: WatermarkOutputMultiplexer, recorder: WatermarkOutputRecorder, event: list[Any]
) -> None:
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
    recorder = WatermarkOutputRecorder()
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
