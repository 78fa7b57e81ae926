"""A function that is called for the pairs of rows of a key whose timestamps are close."""

from __future__ import annotations

from flinkcore.columnar.operator_plans.interval_join_process import IntervalJoinProcess
from flinkcore.columnar.stages.function_stage import FunctionStage
from flinkcore.columnar.stages.restored_namespaces import check_namespaces, is_void
from flinkcore.columnar.stages.row_operator import RowOperator, Surroundings
from flinkcore.columnar.stages.stage import StageContext
from flinkcore.columnar.stages.two_streams import TwoStreams
from flinkcore.operators.interval_join_operator import (
    CLEANUP_NAMESPACE_LEFT,
    CLEANUP_NAMESPACE_RIGHT,
    CLEANUP_TIMER_NAME,
    IntervalJoinOperator,
)


class IntervalJoinStage(FunctionStage[IntervalJoinProcess]):
    """Runs the function of an interval join."""

    def _row_operator(
        self, context: StageContext, process: IntervalJoinProcess, partition: int, around: Surroundings
    ) -> RowOperator:
        streams = TwoStreams.of(context, partition, around.output)
        join = IntervalJoinOperator(process.function, streams.key_at_hand, streams.key_at_hand, *around)
        sides = CLEANUP_NAMESPACE_LEFT, CLEANUP_NAMESPACE_RIGHT

        def fates(processed: int) -> dict[str, int]:
            late = join.num_late_records
            return {"processed": processed - late, "late": late}

        return RowOperator.keyed(
            join,
            around.backend,
            streams.rows(streams.called(join.process_element1), streams.called(join.process_element2)),
            lambda snapshot: check_namespaces(
                snapshot, CLEANUP_TIMER_NAME, lambda namespace: namespace in sides, is_void
            ),
            fates,
        )
