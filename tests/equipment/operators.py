"""Operators for tests: one that writes down what it gets, and some that pass it on."""

from typing import Any

from equipment.recorders import Recorder

from flinkcore.common import Watermark
from flinkcore.operators.records.stream_elements import LatencyMarker, StreamRecord, WatermarkStatus
from flinkcore.operators.stream_operator import OneInputStreamOperator, TwoInputStreamOperator


class InputRecorder(Recorder):
    def process_element(self, record: StreamRecord[Any]) -> None:
        self.add("record", ts=record.timestamp, value=record.value)

    def process_watermark(self, watermark: Watermark) -> None:
        self.add("watermark", ts=watermark.timestamp)

    def process_watermark_status(self, status: WatermarkStatus) -> None:
        self.add("status", status=status.value)

    def process_latency_marker(self, latency_marker: LatencyMarker) -> None:
        self.add("latency", marker=latency_marker)


class Forward(OneInputStreamOperator):
    """Passes records on as they are."""

    def process_element(self, record: StreamRecord[Any]) -> None:
        self._output.collect(record)


class Union(TwoInputStreamOperator):
    """Passes records on with the number of their input."""

    def process_element1(self, record: StreamRecord[Any]) -> None:
        self._output.collect(StreamRecord((1, record.value), record.timestamp))

    def process_element2(self, record: StreamRecord[Any]) -> None:
        self._output.collect(StreamRecord((2, record.value), record.timestamp))
