"""From an operator of a plan to the stages that run it, and to batches as they take them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from flinkcore._native.arrow import RecordBatch
from flinkcore._native.keys import KeyEncoder
from flinkcore.replay.plans.operators import BatchProcess, WindowAggregation
from flinkcore.replay.stages.batch_process_stage import BatchProcessStage
from flinkcore.replay.stages.function_stage import FunctionStage
from flinkcore.replay.stages.stage import Stage, StageContext
from flinkcore.replay.stages.window_stage import EncodedEvents, WindowStage
from flinkcore.replay.time_plane.total_order import Events


def _stage(context: StageContext, partition: int) -> Stage[Any]:
    operator = context.plan.operator
    if isinstance(operator, WindowAggregation):
        return WindowStage(context, operator, partition)
    if isinstance(operator, BatchProcess):
        return BatchProcessStage(context, operator, partition)
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
        if isinstance(operator, WindowAggregation):
            read = (operator.columns or frozenset()).union(self._keys)
            self._columns = [name for name in self._schema.names if name in read]

    def prepare(self, events: Events) -> Any:
        """Return a batch as stages take it; may be called from several threads at once."""
        if self._columns is None:
            return events
        columns = RecordBatch(events.batch.select(self._columns), any_type=True)
        try:
            keys = self._idle_encoders.pop()
        except IndexError:
            keys = KeyEncoder(self._schema, self._keys)
        keys.encode_batch(columns)
        return EncodedEvents(events, columns, keys)

    def release(self, prepared: Any) -> None:
        """Take back what a batch was prepared with, once all stages have processed it."""
        if isinstance(prepared, EncodedEvents):
            self._idle_encoders.append(prepared.keys)
