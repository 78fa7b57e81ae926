"""A join of two streams, over the key groups of one partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from flinkcore.common import OutputTag
from flinkcore.datastream.functions.join_functions import TaggedUnion
from flinkcore.datastream.interval_join_operation import IntervalJoinOperation
from flinkcore.datastream.window import WindowOperation
from flinkcore.replay.plans.connected_process import ConnectedProcess
from flinkcore.replay.plans.join_process import IntervalJoinProcess, WindowJoinProcess
from flinkcore.replay.plans.keyed_operator import UserProcess
from flinkcore.replay.plans.stage_plan import StagePlan
from flinkcore.replay.results.result import Output
from flinkcore.replay.stages.connected_stage import (
    ConnectedOutput,
    ConnectedStage,
    ConnectedStages,
    ElementCall,
)
from flinkcore.replay.stages.placed_events import Order
from flinkcore.replay.stages.restored_namespaces import check_namespaces, check_window_namespaces, is_void
from flinkcore.runtime.checkpoint import OperatorSnapshot
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.key_context import KeyContext
from flinkcore.runtime.operators import IntervalJoinOperator
from flinkcore.runtime.operators.interval_join_operator import (
    CLEANUP_NAMESPACE_LEFT,
    CLEANUP_NAMESPACE_RIGHT,
    CLEANUP_TIMER_NAME,
)
from flinkcore.runtime.state import KeyedStateBackend
from flinkcore.runtime.windowing import make_window_operator


class IntervalJoinOutput(ConnectedOutput):
    """Takes results, side outputs, and late elements, whose rows go out as they came.

    Parameters are those of :class:`ConnectedOutput`.
    """

    def __init__(
        self, plan: StagePlan, process: IntervalJoinProcess, key_context: KeyContext, *inputs: Any
    ) -> None:
        super().__init__(plan, process, key_context, *inputs)
        self._late_tags = process.late_tags
        self._late_rows: tuple[list[int], list[int]] = ([], [])

    def collect_side(self, output_tag: OutputTag, record: StreamRecord[Any]) -> None:
        """Take a late element, or a record of a side output, if it is wanted."""
        if output_tag in self._late_tags:
            late_rows = self._late_rows[self._late_tags.index(output_tag)]
            late_rows.append(self._late_row(output_tag, record))
        else:
            super().collect_side(output_tag, record)

    def take(self, order: Order = ()) -> Iterator[Output]:
        """Give what has come since the last time."""
        yield from super().take(order)
        for number, (tag, rows) in enumerate(zip(self._late_tags, self._late_rows, strict=True)):
            if rows:
                assert self.elements is not None
                batch = self._inputs.batch_of(number, self.elements)
                yield Output(tag, [batch.take(pa.array(rows, pa.int64()))])
                rows.clear()


class IntervalJoinStage(ConnectedStage):
    """Joins ordered events of two streams by time, on the replay clock; as :class:`ConnectedStage`."""

    def _make_output(self, plan: StagePlan, process: UserProcess, key_context: KeyContext) -> ConnectedOutput:
        assert isinstance(process, IntervalJoinProcess)
        self._connected_output = IntervalJoinOutput(
            plan, process, key_context, self._inputs, self._input_keys
        )
        return self._connected_output

    def _make_operator(self, function: IntervalJoinOperation, backend: KeyedStateBackend) -> Any:
        self._join = IntervalJoinOperator(
            function, self._key_at_hand, self._key_at_hand, self._output, backend, self._clock
        )
        self._process_elements = self._join.process_element1, self._join.process_element2
        return self._join

    def _check_restored(self, snapshot: OperatorSnapshot) -> None:
        sides = CLEANUP_NAMESPACE_LEFT, CLEANUP_NAMESPACE_RIGHT
        check_namespaces(snapshot, CLEANUP_TIMER_NAME, lambda namespace: namespace in sides, is_void)

    def counts(self) -> dict[str, int]:
        """Counts of events by what became of them, of timers and of results so far."""
        counts, late = super().counts(), self._join.num_late_records
        return {**counts, "processed": counts["processed"] - late, "late": late}


class WindowJoinStage(ConnectedStage):
    """Cuts ordered events of two streams into windows, on the replay clock; as :class:`ConnectedStage`."""

    def _make_operator(self, function: WindowOperation, backend: KeyedStateBackend) -> Any:
        self._windows = make_window_operator(function, None, self._output, backend, self._clock)
        self._process_elements = self._tagged(TaggedUnion.one), self._tagged(TaggedUnion.two)
        return self._windows

    def _check_restored(self, snapshot: OperatorSnapshot) -> None:
        check_window_namespaces(snapshot, self._windows.operation)

    def _tagged(self, tag: Callable[[Any], TaggedUnion[Any, Any]]) -> ElementCall:
        tagged: StreamRecord[Any] = StreamRecord(None)

        def process(record: StreamRecord[Any]) -> None:
            tagged.value, tagged.timestamp = tag(record.value), record.timestamp
            self._windows.process_element_of_key(self._key, tagged)  # known once it is open

        return process

    def counts(self) -> dict[str, int]:
        """Counts of events by what became of them, of timers and of results so far."""
        counts = super().counts()
        late, in_no_window = self._windows.num_late_records, self._windows.num_records_in_no_window
        windowed = counts.pop("processed") - late - in_no_window
        return {"windowed": windowed, "late": late, "in_no_window": in_no_window, **counts}


class IntervalJoinStages(ConnectedStages):
    """Makes stages of interval joins; parameters as of :class:`ConnectedStages`."""

    stage_class = IntervalJoinStage


class WindowJoinStages(ConnectedStages):
    """Makes stages of window joins and co-groups; parameters as of :class:`ConnectedStages`."""

    stage_class = WindowJoinStage


def connected_stages_class(process: ConnectedProcess) -> type[ConnectedStages]:
    """Return what makes the stages of an operator with two inputs."""
    if isinstance(process, IntervalJoinProcess):
        return IntervalJoinStages
    return WindowJoinStages if isinstance(process, WindowJoinProcess) else ConnectedStages
