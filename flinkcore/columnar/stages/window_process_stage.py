"""Functions that are called for the rows of each key and window."""

from __future__ import annotations

from flinkcore.columnar.operator_plans.window_process import WindowProcess
from flinkcore.columnar.stages.function_stage import FunctionStage
from flinkcore.columnar.stages.row_operator import (
    RowOperator,
    Surroundings,
    rows_of_one_stream,
    window_row_operator,
)
from flinkcore.columnar.stages.stage import StageContext
from flinkcore.operators.windowing import make_window_operator


class WindowProcessStage(FunctionStage[WindowProcess]):
    """Runs functions over windows."""

    def _row_operator(
        self, context: StageContext, process: WindowProcess, partition: int, around: Surroundings
    ) -> RowOperator:
        windows = make_window_operator(process.function, None, *around, as_in_pyflink=True)
        rows = rows_of_one_stream(context, lambda: windows.process_element_of_key)
        return window_row_operator(windows, around.backend, rows)
