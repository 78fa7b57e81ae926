"""A function that is called for the rows of two streams."""

from __future__ import annotations

from typing import Any

from flinkcore.checkpoint import OperatorBackends
from flinkcore.columnar.operator_plans.connected_process import ConnectedProcess
from flinkcore.columnar.stages.function_stage import FunctionStage
from flinkcore.columnar.stages.row_operator import RowOperator, Surroundings, check_user_timers
from flinkcore.columnar.stages.stage import StageContext
from flinkcore.columnar.stages.two_streams import TwoStreams
from flinkcore.datastream.functions import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
)
from flinkcore.operators.process_operators import (
    BroadcastProcessOperator,
    CoProcessOperator,
    KeyedBroadcastProcessOperator,
    KeyedCoProcessOperator,
)
from flinkcore.operators.state import OperatorStateBackend
from flinkcore.operators.stream_operator import TwoInputStreamOperator
from flinkcore.operators.timers import InternalTimeServiceManager


class ConnectedProcessStage(FunctionStage[ConnectedProcess]):
    """Runs a process function of two streams, with keys or without, of which the second may be broadcast."""

    def _row_operator(
        self, context: StageContext, process: ConnectedProcess, partition: int, around: Surroundings
    ) -> RowOperator:
        function: Any = process.function
        output, backend, clock = around
        streams = TwoStreams.of(context, partition, output)
        selector, states = streams.key_at_hand, process.broadcast_states or ()
        operator_state = OperatorStateBackend()
        operator: TwoInputStreamOperator
        if isinstance(function, KeyedCoProcessFunction):
            operator = KeyedCoProcessOperator(function, selector, selector, *around)
        elif isinstance(function, KeyedBroadcastProcessFunction):
            operator = KeyedBroadcastProcessOperator(
                function, selector, states, output, backend, operator_state, clock
            )
        elif isinstance(function, BroadcastProcessFunction):
            operator = BroadcastProcessOperator(function, states, output, operator_state, clock)
        else:
            operator = CoProcessOperator(function, output, clock)
        timers = operator.time_service_manager
        if timers is None:
            timers = InternalTimeServiceManager(backend.key_context, clock)
            backends = OperatorBackends(operator_state=operator_state)
        else:
            backends = OperatorBackends(backend, timers, operator_state)
        return RowOperator(
            operator,
            timers,
            backends,
            streams.rows(
                streams.called(operator.process_element1), streams.called(operator.process_element2)
            ),
            check_user_timers,
            streams.fates,
            process.is_keyed,
        )
