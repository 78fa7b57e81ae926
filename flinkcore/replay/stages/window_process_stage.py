"""The functions over windows of a plan, over the key groups of one partition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from flinkcore.common import OutputTag
from flinkcore.datastream.window import WindowOperation
from flinkcore.replay.plans.keyed_operator import UserProcess, WindowProcess
from flinkcore.replay.plans.stage_plan import StagePlan
from flinkcore.replay.results.result import Output
from flinkcore.replay.stages.placed_events import Order
from flinkcore.replay.stages.process_output import ProcessOutput
from flinkcore.replay.stages.process_stage import KeyedOneInputOperator, ProcessStage, ProcessStages
from flinkcore.replay.stages.restored_namespaces import check_window_namespaces
from flinkcore.runtime.checkpoint import OperatorSnapshot
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.key_context import KeyContext
from flinkcore.runtime.state import KeyedStateBackend
from flinkcore.runtime.windowing import make_window_operator


class WindowOutput(ProcessOutput):
    """Takes results, side outputs, and late elements, whose rows go out as they came.

    Parameters
    ----------
    plan, process, key_context
        As of :class:`ProcessOutput`.
    """

    def __init__(self, plan: StagePlan, process: WindowProcess, key_context: KeyContext) -> None:
        super().__init__(plan, process, key_context)
        self._late_tag = process.function.late_tag
        self._late_rows: list[int] = []

    def collect_side(self, output_tag: OutputTag, record: StreamRecord[Any]) -> None:
        """Take a late element, or a record of a side output, if it is wanted."""
        if output_tag == self._late_tag:
            self._late_rows.append(self._late_row(output_tag, record))
        else:
            super().collect_side(output_tag, record)

    def take(self, order: Order = ()) -> Iterator[Output]:
        """Give what has come since the last time; see `ProcessOutput.take`."""
        yield from super().take(order)
        if self._late_rows:
            assert self.elements is not None
            rows, self._late_rows = pa.array(self._late_rows, pa.int64()), []
            yield Output(self._late_tag, [self.elements.take(rows)])


class WindowProcessStage(ProcessStage):
    """Runs a copy of the functions over windows of ordered events of one partition, on the replay clock.

    Parameters, errors and what happens when are those of :class:`ProcessStage`.
    """

    def _make_output(self, plan: StagePlan, process: UserProcess, key_context: KeyContext) -> ProcessOutput:
        assert isinstance(process, WindowProcess)
        return WindowOutput(plan, process, key_context)

    def _make_operator(self, function: WindowOperation, backend: KeyedStateBackend) -> KeyedOneInputOperator:
        self._windows = make_window_operator(function, None, self._output, backend, self._clock)
        return self._windows

    def _check_restored(self, snapshot: OperatorSnapshot) -> None:
        check_window_namespaces(snapshot, self._windows.operation)

    def counts(self) -> dict[str, int]:
        """Counts of events by what became of them, of timers and of results so far."""
        counts = super().counts()
        late, in_no_window = self._windows.num_late_records, self._windows.num_records_in_no_window
        windowed = counts.pop("processed") - late - in_no_window
        return {"windowed": windowed, "late": late, "in_no_window": in_no_window, **counts}


class WindowProcessStages(ProcessStages):
    """Makes window process stages; parameters as of :class:`ProcessStages`."""

    stage_class = WindowProcessStage
