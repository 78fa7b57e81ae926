"""A function that is called for the rows of two streams in each window of a key."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from flinkcore.columnar.operator_plans.window_join_process import WindowJoinProcess
from flinkcore.columnar.stages.function_stage import FunctionStage
from flinkcore.columnar.stages.row_operator import RowCall, RowOperator, Surroundings, window_row_operator
from flinkcore.columnar.stages.stage import StageContext
from flinkcore.columnar.stages.two_streams import TwoStreams
from flinkcore.datastream.functions.join_functions import TaggedUnion
from flinkcore.operators.records.stream_elements import StreamRecord
from flinkcore.operators.windowing import make_window_operator


class WindowJoinStage(FunctionStage[WindowJoinProcess]):
    """Runs the function of a join or a coGroup over windows."""

    def _row_operator(
        self, context: StageContext, process: WindowJoinProcess, partition: int, around: Surroundings
    ) -> RowOperator:
        streams = TwoStreams.of(context, partition, around.output)
        windows = make_window_operator(process.function, None, *around, as_in_pyflink=True)

        def tagged(tag: Callable[[Any], TaggedUnion[Any, Any]]) -> RowCall:
            united: StreamRecord[Any] = StreamRecord(None)

            def call(key: Hashable, record: StreamRecord[Any]) -> None:
                united.value, united.timestamp = tag(record.value), record.timestamp
                windows.process_element_of_key(key, united)  # known once it is open

            return call

        rows = streams.rows(tagged(TaggedUnion.one), tagged(TaggedUnion.two))
        return window_row_operator(windows, around.backend, rows)
