"""The drawing of docs/replay.md, run."""

import re
from pathlib import Path
from typing import Any

import pyarrow as pa

from flinkcore.common import MIN_TIMESTAMP, Duration, OutputTag, Row, Time, WatermarkStrategy
from flinkcore.datastream import KeyedProcessFunction, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count

PAGE = (Path(__file__).parents[2] / "docs" / "replay.md").read_text(encoding="utf-8")
DRAWING = next(block for block in PAGE.split("```") if "arrival -->" in block).splitlines()


def line_of(label: str) -> str:
    """What the drawing has behind a label; columns stay where they are."""
    (line,) = [line for line in DRAWING if line.startswith(label)]
    return " " * len(label) + line[len(label) :]


ARRIVALS = {found.end(): int(found[0]) for found in re.finditer(r"\b\d+", line_of("arrival -->"))}
"""By the column where they end."""
BOUND_MS = int(re.findall(r"bound (\d+)", "\n".join(DRAWING))[0])
LATENESS_MS = int(re.findall(r"allowed lateness (\d+)", "\n".join(DRAWING))[0])
EVENTS = [
    {"ts": int(found[1]), "at": ARRIVALS[found.end()], "split": split, "key": "all"}
    for split in "AB"
    for found in re.finditer(r"t=(\d+)", line_of(f"split {split}"))
]
WATERMARKS = {
    ARRIVALS[found.end()]: MIN_TIMESTAMP if found[0] == "-" else int(found[0])
    for found in re.finditer(r"\d+|-", line_of("watermark"))
}
"""After each arrival."""
MARKED = [ARRIVALS[found.end()] for found in re.finditer(r"\^", line_of("window [0,10)"))]


def keyed() -> Any:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.get_config().set_auto_watermark_interval(1)
    log = pa.Table.from_pylist(sorted(EVENTS, key=lambda event: event["at"]))
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(BOUND_MS))
    stream = env.from_event_log(log, timestamp="ts", integer_times=True, arrival="at", split="split")
    return stream.assign_timestamps_and_watermarks(strategy).key_by("key")


class Meets(KeyedProcessFunction):
    """Tells which watermark each event meets."""

    def process_element(self, value: Row, ctx: Any) -> Any:
        yield value.at, ctx.timer_service().current_watermark()


def test_the_drawing_has_the_watermarks_of_its_log() -> None:
    result = keyed().process(Meets(), pa.schema({"at": pa.int64(), "watermark": pa.int64()})).execute()
    met = {row["at"]: row["watermark"] for row in result.to_arrow().to_pylist()}
    assert len(EVENTS) == len(met) == len(ARRIVALS) == len(WATERMARKS) == 11
    after = {at - 1: watermark for at, watermark in met.items() if at > 1}
    assert {**after, max(met): result.report.watermark_ms} == WATERMARKS


def test_the_drawing_says_what_becomes_of_its_window() -> None:
    late = OutputTag("late")
    windowed = keyed().window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    result = (
        windowed.allowed_lateness(Time.milliseconds(LATENESS_MS))
        .side_output_late_data(late)
        .aggregate(rows=count())
        .execute()
    )
    rows = [row for row in result.to_arrow().to_pylist() if row["window_start"] == 0]
    fires, again, gone, is_late = MARKED
    assert [(row["rows"], row["late_firing"], row["watermark"]) for row in rows] == [
        (3, False, WATERMARKS[fires]),
        (4, True, WATERMARKS[again]),
    ]
    assert f"fires with {rows[0]['rows']} rows   again with {rows[1]['rows']} " in "\n".join(DRAWING)
    assert [row["at"] for row in result.get_side_output(late).to_arrow().to_pylist()] == [is_late]
    assert WATERMARKS[fires - 1] < 9 <= WATERMARKS[fires]
    assert WATERMARKS[gone - 1] < 9 + LATENESS_MS <= WATERMARKS[gone]
