"""A function that is called for the rows and the timers of each key."""

from __future__ import annotations

from flinkcore.columnar.operator_plans.keyed_process import KeyedProcess
from flinkcore.columnar.stages.function_stage import FunctionStage
from flinkcore.columnar.stages.row_operator import (
    RowOperator,
    Surroundings,
    check_user_timers,
    rows_of_one_stream,
)
from flinkcore.columnar.stages.stage import StageContext
from flinkcore.operators.process_operators import KeyedProcessOperator


class KeyedProcessStage(FunctionStage[KeyedProcess]):
    """Runs a process function."""

    def _row_operator(
        self, context: StageContext, process: KeyedProcess, partition: int, around: Surroundings
    ) -> RowOperator:
        operator = KeyedProcessOperator(process.function, None, *around)
        return RowOperator.keyed(
            operator,
            around.backend,
            rows_of_one_stream(context, lambda: operator.process_element_of_key),
            check_user_timers,
            lambda processed: {"processed": processed},
        )
