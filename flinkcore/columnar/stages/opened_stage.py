"""From an operator of a plan to the stages that run it, and to batches as they take them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from flinkcore._native.arrow import RecordBatch
from flinkcore._native.keys import KeyEncoder
from flinkcore.columnar.plans.operators import BatchProcess, Forward, WindowAggregation
from flinkcore.columnar.stages.batch_process_stage import BatchProcessStage
from flinkcore.columnar.stages.forward_stage import ForwardStage
from flinkcore.columnar.stages.function_stage import FunctionStage
from flinkcore.columnar.stages.partial_results import MergedPartials, PartialAccumulators
from flinkcore.columnar.stages.stage import Stage, StageContext
from flinkcore.columnar.stages.window_stage import EncodedEvents, WindowStage
from flinkcore.time_plane.total_order import Events


def _stage(context: StageContext, partition: int) -> Stage[Any]:
    operator = context.plan.operator
    if isinstance(operator, WindowAggregation):
        return WindowStage(context, operator, partition)
    if isinstance(operator, BatchProcess):
        return BatchProcessStage(context, operator, partition)
    if isinstance(operator, Forward):
        return ForwardStage(context)
    return FunctionStage(context, operator, partition)


@contextmanager
def opened_stage(context: StageContext, partition: int) -> Iterator[Stage[Any]]:
    """A stage that is closed with the block; an error in the block hides one of the closing."""
    stage = _stage(context, partition)
    try:
        yield stage
    except BaseException:
        with suppress(Exception):
            stage.close()
        raise
    stage.close()


class PreparedBatches:
    """Batches as the stages of an operator take them: for windows with their keys encoded, else as they are.

    Parameters
    ----------
    context : StageContext
    """

    def __init__(self, context: StageContext) -> None:
        operator, self._keys = context.plan.operator, list(context.plan.keys)
        self._schema = context.plan.data_schema()
        self._idle_encoders: list[KeyEncoder] = []
        self._columns: list[str] | None = None
        self._partials: PartialAccumulators | None = None
        if isinstance(operator, WindowAggregation):
            self._partials = PartialAccumulators(context.plan, operator.native(self._schema)[1])
            read = (operator.columns or frozenset()).union(self._keys)
            self._columns = [name for name in self._schema.names if name in read]

    def prepare(self, events: Events | MergedPartials) -> Any:
        """Return a batch as stages take it; may be called from several threads at once.

        Partial results are prepared one batch after the other, once all of the one before have been processed.
        """
        if isinstance(events, MergedPartials):
            return self._prepared_partials(events)
        if self._columns is None:
            return events
        columns = RecordBatch(events.batch.select(self._columns), any_type=True)
        keys = self._encoder()
        keys.encode_batch(columns)
        return EncodedEvents(events, columns, keys)

    def _prepared_partials(self, merged: MergedPartials) -> EncodedEvents:
        assert self._partials is not None
        assert self._columns is not None
        columns = RecordBatch(merged.events.batch.select(self._columns), any_type=True)
        keys = self._encoder()
        keys.encode_batch(RecordBatch(self._partials.keys(merged), any_type=True))
        partials = self._partials.restored(merged.partials)
        return EncodedEvents(merged.events, columns, keys, partials, merged.partial_events)

    def _encoder(self) -> KeyEncoder:
        try:
            return self._idle_encoders.pop()
        except IndexError:
            return KeyEncoder(self._schema, self._keys)

    def release(self, prepared: Any) -> None:
        """Take back what a batch was prepared with, once all stages have processed it."""
        if isinstance(prepared, EncodedEvents):
            self._idle_encoders.append(prepared.keys)
