"""What the operator of a process function emits, on its way to batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from flinkcore.common import MAX_TIMESTAMP, OutputTag, Watermark
from flinkcore.errors import UserCodeError
from flinkcore.replay.plans.keyed_operator import UserProcess
from flinkcore.replay.plans.stage_plan import StagePlan
from flinkcore.replay.results.result import Output, PlacedOutput
from flinkcore.replay.stages.element_rows import element_keys, element_rows
from flinkcore.replay.stages.placed_events import Order, PlacedEvents
from flinkcore.replay.stages.result_places import ResultPlaces
from flinkcore.replay.stages.row_results import RowResults, Subject
from flinkcore.runtime.elements import LatencyMarker, StreamRecord, WatermarkStatus
from flinkcore.runtime.key_context import KeyContext
from flinkcore.runtime.messages import shown
from flinkcore.runtime.output import OutputFullError

NO_ROW = -1

CALL_BYTES = 1 << 29
"""So much of one call is held, where another operator takes results in order: a call that never ends gives more."""


class ProcessOutput:
    """Takes results and side outputs; an :class:`~flinkcore.runtime.output.Output`.

    Parameters
    ----------
    plan
        The job.
    process
        Its operator.
    key_context
        Whose current key is that of the results.

    Attributes
    ----------
    row
        Number of the element that results are given for, in `elements`; NO_ROW: it is a timer.
    elements
        The elements at hand, all of which have the key columns.
    record
        What the operator gets each of them in.
    dropped
        Records for side outputs that nobody asked for.
    places
        Notes the places of results, where another operator follows.
    """

    def __init__(self, plan: StagePlan, process: UserProcess, key_context: KeyContext) -> None:
        name = process.function_name
        self.row = NO_ROW
        self.elements: pa.RecordBatch | None = None
        self.record: StreamRecord[Any] | None = None
        self.dropped = 0
        self.places: ResultPlaces | None = None
        self._timestamp: int | None = None
        self._call: tuple[Any, ...] = ()
        self._call_bytes = 0
        self._name = name
        self._gives_windows = process.gives_windows
        self._keys = list(plan.keys)
        self._key_context = key_context
        self._results = RowResults(
            f"the output of {name}",
            process.output_type,
            plan.result_schema(),
            self._described,
            self._when_full,
        )
        self._side_results = {
            tag: RowResults(
                f"the side output {tag.tag_id!r} of {name}",
                tag.type_info,
                plan.side_output_schema(tag),
                self._described,
                self._when_full,
            )
            for tag in process.tags
        }

    def collect(self, record: StreamRecord[Any]) -> None:
        """Take a result."""
        row = self.row
        if self.places is not None:
            self._timestamp = record.timestamp
            self.places.add(row, record.timestamp)
        self._results.add(record.value, record.timestamp, row if row >= 0 else self._timer())

    def collect_side(self, output_tag: OutputTag, record: StreamRecord[Any]) -> None:
        """Take a record of a side output, if it is wanted."""
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
        batch = self.elements.slice(subject, 1)
        (key,) = element_keys(batch, self._keys)
        if self._gives_windows:
            return f"{self._fired(timestamp)}{self._of_key(key)}"
        (element,) = element_rows(batch)
        return f"the element {shown(element)}{self._of_key(key)} with the timestamp {timestamp}"

    def _of_key(self, key: Any) -> str:
        return f" of the key {shown(key)}" if self._keys else ""

    def _fired(self, timestamp: int | None) -> str:
        """What gave a result that is not for an element."""
        if timestamp is None:
            return "a processing-time timer"
        if not self._gives_windows:
            return f"the timer at {timestamp} ms"
        return (
            "the window without end" if timestamp == MAX_TIMESTAMP else f"the window up to {timestamp + 1} ms"
        )

    def emit_watermark(self, watermark: Watermark) -> None:
        """Drop it: nothing comes after this operator."""

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        """Drop it likewise."""

    def emit_latency_marker(self, latency_marker: LatencyMarker) -> None:
        """Drop it likewise."""

    def take(self, order: Order = ()) -> Iterator[Output]:
        """Give what has come since the last time.

        Parameters
        ----------
        order
            Where results have places: those of the elements at hand.
        """
        for tag, results in ((None, self._results), *self._side_results.items()):
            batches = results.take()
            if not batches:
                continue
            if tag is None and self.places is not None:
                placed = PlacedEvents.of(pa.concat_batches(batches), *self.places.take(order))
                yield PlacedOutput(None, [], placed)
            else:
                yield Output(tag, batches)

    def counts(self) -> dict[str, int]:
        """Records by what became of them."""
        side = sum(results.rows for results in self._side_results.values())
        return {"results": self._results.rows, "side_results": side, "dropped_side_results": self.dropped}
