"""Outputs of the operator of a process function, collected into batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.joined_batches import joined
from flinkcore._internal.show.times import dated
from flinkcore.columnar.operator_plans.user_process import UserProcess
from flinkcore.columnar.stages.placed_events import Order, PlacedEvents
from flinkcore.columnar.stages.result_batches import ResultBatches, Subject
from flinkcore.columnar.stages.result_places import ResultPlaces
from flinkcore.columnar.stages.stage import StageContext
from flinkcore.columnar.stages.stage_output import PlacedOutput, StageOutput
from flinkcore.common import MAX_TIMESTAMP, OutputTag, Watermark
from flinkcore.errors import UserCodeError
from flinkcore.operators.keys.element_rows import element_keys, element_rows
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.records.output import OutputFullError
from flinkcore.operators.records.shown_values import shown
from flinkcore.operators.records.stream_elements import LatencyMarker, StreamRecord, WatermarkStatus

NO_ROW = -1

CALL_BYTES = 1 << 29
"""So much of one call is held, where another operator takes results in order: a call that never ends gives more."""


class ProcessOutput:
    """Takes results, side outputs, and late elements, whose rows go out as they came.

    An :class:`~flinkcore.operators.records.output.Output`.

    Parameters
    ----------
    context
        Context of the operator.
    process
        The operator.
    key_context
        Whose current key is that of the results.
    emitted_at
        Function that returns when current results are emitted, or None if results do not show it.

    Attributes
    ----------
    row
        Number of the element that results are given for, in `elements`; NO_ROW: it is a timer.
    elements
        Current elements, all of which have the key columns.
    record
        Record in which the operator gets each of them.
    is_second
        Which of them are of the second stream, if there are two.
    is_muted
        Whether what is given is dropped: another partition gives it.
    dropped
        Records for side outputs that nobody asked for.
    places
        Notes the places of results, where another operator follows.
    """

    def __init__(
        self,
        context: StageContext,
        process: UserProcess,
        key_context: KeyContext,
        emitted_at: Callable[[], int] | None,
    ) -> None:
        plan, name = context.plan, process.function_name
        self.row = NO_ROW
        self.elements: pa.RecordBatch | None = None
        self.record: StreamRecord[Any] | None = None
        self.is_second = np.empty(0, np.bool_)
        self.is_muted = False
        self.dropped = 0
        self.places: ResultPlaces | None = None
        self._timestamp: int | None = None
        self._call: tuple[Any, ...] = ()
        self._call_bytes = 0
        self._name = name
        self._has_windows = process.has_windows
        self._inputs = context.inputs
        self._keys = [list(each.key.names) for each in plan.inputs]
        self._late_rows: list[tuple[OutputTag | None, list[int]]] = [(tag, []) for tag in process.late_tags]
        self._key_context = key_context
        self._results = ResultBatches(
            f"the output of {name}",
            process.output_type,
            plan.result_schema(),
            self._described,
            self._when_full,
            plan.batch_bytes,
            emitted_at,
        )
        self._side_results = {
            tag: ResultBatches(
                f"the side output {tag.tag_id!r} of {name}",
                tag.type_info,
                plan.side_output_schema(tag),
                self._described,
                self._when_full,
                plan.batch_bytes,
                emitted_at,
            )
            for tag in process.tags
        }

    def collect(self, record: StreamRecord[Any]) -> None:
        """Take a result."""
        if self.is_muted:
            return
        row = self.row
        if self.places is not None:
            self._timestamp = record.timestamp
            self.places.add(row, record.timestamp)
        self._results.add(record.value, record.timestamp, row if row >= 0 else self._timer())

    def collect_side(self, output_tag: OutputTag, record: StreamRecord[Any]) -> None:
        """Take a late element, or a record of a side output, if it is wanted."""
        if self.is_muted:
            return
        for tag, late_rows in self._late_rows:
            if tag == output_tag:
                late_rows.append(self._late_row(output_tag, record))
                return
        results = self._side_results.get(output_tag)
        if results is None:
            self.dropped += 1
        else:
            self._timestamp = record.timestamp
            results.add(record.value, record.timestamp, self.row if self.row >= 0 else self._timer())

    def _when_full(self, batch: pa.RecordBatch) -> None:
        if self.places is not None:
            self._bound_call(self.places, batch)
        raise OutputFullError

    def _bound_call(self, places: ResultPlaces, batch: pa.RecordBatch) -> None:
        """Raise UserCodeError if one call has given too much: it is put in order when all of its step is there."""
        subject = self.row if self.row >= 0 else self._timer()
        call = subject, self._timestamp, places.moment
        if call != self._call:
            self._call, self._call_bytes = call, 0
        self._call_bytes += batch.nbytes + places.bytes_per_row * batch.num_rows
        if self._call_bytes > CALL_BYTES:
            raise UserCodeError(
                f"{self._name} gave more than {CALL_BYTES >> 20} MiB in one call, for "
                f"{self._described(subject, self._timestamp)}, and has not returned: results that another operator "
                "takes are held until the call has ended. Let it end, or give the rest at a timer; only the last "
                "operator of a job may give results without end"
            )

    def _late_row(self, output_tag: OutputTag, record: StreamRecord[Any]) -> int:
        """The number of a late element, which the operator hands on in the record that it got."""
        if record is not self.record:
            raise UserCodeError(
                f"{self._name} gave {shown(record.value)} to the side output {output_tag.tag_id!r}, which is that of "
                "late rows, as they came: give to another one"
            )
        return self.row

    def _timer(self) -> Subject:
        return (self._key_context.current_key,)

    def _described(self, subject: Subject, timestamp: int | None) -> str:
        if isinstance(subject, tuple):
            return f"{self._fired(timestamp)}{self._of_key(subject[0])}"
        assert self.elements is not None
        number = 0 if self._inputs is None else int(self.is_second[subject])
        batch = self._of_stream(number, self.elements.slice(subject, 1))
        names = self._keys[number]
        of_key = f" of the key {shown(element_keys(batch, names)[0])}" if names else ""
        if self._has_windows:
            return f"{self._fired(timestamp)}{of_key}"
        (element,) = element_rows(batch)
        of_stream = "" if self._inputs is None else f" of the {('first', 'second')[number]} stream"
        at = "without a timestamp" if timestamp is None else f"with the timestamp {dated(timestamp)}"
        return f"the element {shown(element)}{of_stream}{of_key} {at}"

    def _of_stream(self, number: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch if self._inputs is None else self._inputs.batch_of(number, batch)

    def _of_key(self, key: Any) -> str:
        return f" of the key {shown(key)}" if self._keys[0] else ""

    def _fired(self, timestamp: int | None) -> str:
        """Return the cause of a result that is not for an element, in words."""
        if timestamp is None:
            return "a processing-time timer"
        if not self._has_windows:
            return f"the timer at {dated(timestamp, ' ms')}"
        if timestamp == MAX_TIMESTAMP:
            return "the window without end"
        return f"the window up to {dated(timestamp + 1, ' ms')}"

    def emit_watermark(self, watermark: Watermark) -> None:
        """Drop it: an operator after this one has the watermarks of its own timeline."""

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        """Drop it likewise."""

    def emit_latency_marker(self, latency_marker: LatencyMarker) -> None:
        """Drop it likewise."""

    def take(self, order: Order = ()) -> Iterator[StageOutput]:
        """Yield what has come since the last time.

        Parameters
        ----------
        order
            Places of the current elements, if results have places.
        """
        for tag, results in ((None, self._results), *self._side_results.items()):
            batches = results.take()
            if not batches:
                continue
            if tag is None and self.places is not None:
                placed = PlacedEvents.of(joined(batches), *self.places.take(order))
                yield PlacedOutput(None, [], placed)
            else:
                yield StageOutput(tag, batches)
        for number, (tag, rows) in enumerate(self._late_rows):
            if rows:
                assert self.elements is not None
                yield StageOutput(
                    tag, [self._of_stream(number, self.elements).take(pa.array(rows, pa.int64()))]
                )
                rows.clear()

    def counts(self) -> dict[str, int]:
        """Records by what became of them."""
        side = sum(results.rows for results in self._side_results.values())
        return {"results": self._results.rows, "side_results": side, "dropped_side_results": self.dropped}
