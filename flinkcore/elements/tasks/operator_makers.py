"""From the steps of a job to the operators that run them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from flinkcore._internal.values.row import Row
from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.typeinfo import RowTypeInfo
from flinkcore.datastream.connectors.base import WriterContext
from flinkcore.datastream.functions import (
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    SinkFunction,
    function_name,
)
from flinkcore.datastream.graph.element_transformations import (
    AsyncWaitTransformation,
    ChoiceTransformation,
    ConnectedTransformation,
    ElementProcessTransformation,
    ElementTransformation,
    ElementWindowTransformation,
    FlatMapTransformation,
    KeyedTransformation,
    KeyedValuesTransformation,
    MapTransformation,
    ReduceTransformation,
    SinkTransformation,
)
from flinkcore.datastream.graph.transformations import (
    BroadcastTransformation,
    PartitionTransformation,
    ProcessTransformation,
    TimestampsAndWatermarksTransformation,
    Transformation,
    TwoInputTransformation,
    WindowProcessTransformation,
)
from flinkcore.elements.tasks.operator_setup import JobContext, OperatorSetup
from flinkcore.elements.tasks.stream_graph import StreamNode, is_source_node
from flinkcore.elements.tasks.task_output import TaskOutput
from flinkcore.errors import ConfigurationError, DataError
from flinkcore.operators.function_operators import (
    BatchGroupedReduce,
    CoStreamFlatMap,
    CoStreamMap,
    KeyedInput,
    StreamFilter,
    StreamFlatMap,
    StreamGroupedReduce,
    StreamMap,
)
from flinkcore.operators.function_results import misfit
from flinkcore.operators.process_operators import (
    BroadcastProcessOperator,
    CoProcessOperator,
    KeyedBroadcastProcessOperator,
    KeyedCoProcessOperator,
    KeyedProcessOperator,
    ProcessOperator,
)
from flinkcore.operators.records.copies import detached
from flinkcore.operators.records.output import Output
from flinkcore.operators.sink_operators import CollectSinkOperator, SinkWriterOperator, StreamSink
from flinkcore.operators.stream_operator import AbstractStreamOperator
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService
from flinkcore.operators.timestamps_and_watermarks_operator import TimestampsAndWatermarksOperator

if TYPE_CHECKING:
    from flinkcore.datastream.window import WindowOperation
    from flinkcore.operators.async_wait_operator import AsyncElementQueue

Conversion = Callable[[Any], Any] | None
OutputMaker = Callable[[Conversion], Output]
"""Returns the output of the operator, which converts results by the conversion, if there is one."""

_FUNCTION_OPERATORS: dict[type[ElementTransformation], Any] = {
    MapTransformation: StreamMap,
    KeyedValuesTransformation: StreamMap,
    FlatMapTransformation: StreamFlatMap,
    ChoiceTransformation: StreamFilter,
    ReduceTransformation: StreamGroupedReduce,
}


def make_operator(setup: OperatorSetup, make_output: OutputMaker) -> AbstractStreamOperator:
    """Return the operator of a subtask.

    Raises
    ------
    ConfigurationError
        If the step cannot run element by element.

    Notes
    -----
    Does what Flink's transformation translators and operator factories do.
    """
    step = setup.node.transformation
    if step.settings.emitted_at is not None:
        raise ConfigurationError(
            f"with_emitted_at({step.settings.emitted_at!r}) is for jobs that give columns, but this job runs element "
            "by element. Let a ProcessFunction add ctx.timer_service().current_processing_time() to the rows"
        )
    if setup.node.collects:
        collect = setup.job.collect
        if not (setup.job.serializes or step.element_type.is_immutable()):
            giver = setup.node.giver
            return CollectSinkOperator(lambda value: collect(detached(value, giver)), make_output(None))
        return CollectSinkOperator(collect, make_output(None))
    if isinstance(step, SinkTransformation):
        return _sink(setup, step, make_output(None))
    if isinstance(step, TimestampsAndWatermarksTransformation):
        configuration = setup.job.configuration
        if step.strategy.alignment_parameters is not None:
            raise ConfigurationError(
                f"assign_timestamps_and_watermarks cannot wait for other streams, as its strategy asks: "
                f"{step.strategy}. Give the strategy to from_source, which can, or leave with_watermark_alignment out"
            )
        return TimestampsAndWatermarksOperator(
            step.strategy,
            make_output(None),
            setup.clock,
            configuration.get_auto_watermark_interval(),
            emit_progressive_watermarks=not configuration.is_batch(),
        )
    conversion = None if setup.node.passes_results_on else step.element_type.conversion()
    if (
        conversion is not None
        and isinstance(step.element_type, RowTypeInfo)
        and setup.node.is_printed_as_given
    ):
        conversion = _checked_rows(conversion)
    if type(step) in _FUNCTION_OPERATORS:
        assert isinstance(step, ElementTransformation)
        return _function_operator(setup, step, make_output(None), conversion)
    if isinstance(step, AsyncWaitTransformation):
        return _async_wait(setup, step, make_output(_named(setup, function_name(step.function), conversion)))
    if isinstance(step, ElementWindowTransformation):
        name = step.operation.function_names[-1]
        return _window(setup, step.operation, step.input, make_output(_named(setup, name, conversion)))
    if isinstance(step, WindowProcessTransformation):
        name = step.function.function_names[-1]
        return _window(setup, step.function, step.input, make_output(_named(setup, name, _of_columns(step))))
    if isinstance(step, ElementProcessTransformation | ProcessTransformation):
        columns = None if isinstance(step, ElementProcessTransformation) else _of_columns(step)
        name = function_name(step.function)
        return _process(setup, step, make_output(_named(setup, name, columns or conversion)))
    if isinstance(step, ConnectedTransformation):
        return _connected(setup, step, make_output, conversion)
    if isinstance(step, TwoInputTransformation):
        return _connected(setup, step, make_output, _of_columns(step))
    raise ConfigurationError(
        f"the step {str(step)!r} works on whole columns, but the job runs element by element. Give its function an "
        "output_type of Types, or collect its result first and begin a job with that"
    )


def _sink(setup: OperatorSetup, step: SinkTransformation, output: Output) -> AbstractStreamOperator:
    if isinstance(step.sink, SinkFunction):
        return StreamSink(setup.copied(step.sink), output)
    context = WriterContext(
        setup.index,
        setup.node.parallelism,
        step.input.element_type,
        setup.clock.current_processing_time,
        setup.job.print_line,
        setup.job.run_id,
    )
    return SinkWriterOperator(step.sink.create_writer(context), output)


def _is_keyed(step: Transformation) -> bool:
    return isinstance(step, KeyedTransformation | PartitionTransformation)


def _function_operator(
    setup: OperatorSetup, step: ElementTransformation, output: Output, conversion: Conversion
) -> AbstractStreamOperator:
    keyed_inputs: tuple[KeyedInput, ...] = ()
    if _is_keyed(step.input) and setup.node.asks_for_keys:
        keyed_inputs = (KeyedInput(setup.key_selector(step.input), setup.keyed_state_backend),)
    kind = _FUNCTION_OPERATORS[type(step)]
    if kind is StreamGroupedReduce and setup.job.configuration.is_batch():
        kind = BatchGroupedReduce
    if kind is StreamFilter and not setup.node.inputs[0][0].source.passes_results_on:
        conversion = None  # its elements are of the type already
    operator: AbstractStreamOperator = kind(setup.copied(step.function), output, conversion, keyed_inputs)
    return operator


def _named(setup: OperatorSetup, name: str, conversion: Conversion) -> Conversion:
    """Return a conversion of the results of a function that names the function in errors."""
    if conversion is None:
        return None

    def convert(value: Any) -> Any:
        try:
            return conversion(value)
        except DataError as failure:
            raise misfit(name, value, setup.shown_key(), failure) from failure

    return convert


def _checked_rows(conversion: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a conversion that checks Rows, but leaves them as they are."""

    def check(value: Any) -> Any:
        converted = conversion(value)
        return value if isinstance(value, Row) else converted

    return check


def _of_columns(step: ProcessTransformation | TwoInputTransformation) -> Conversion:
    """Return the conversion of results to Rows of a schema; with one column, results may be bare values."""
    if step.timestamp_column is not None:
        raise ConfigurationError(
            f"timestamp_column={step.timestamp_column!r} is for jobs that give columns, but this job runs element by "
            "element. Let a ProcessFunction add ctx.timestamp() to the rows"
        )
    conversion = step.element_type.conversion()
    if conversion is None or len(step.output_type.names) != 1:
        return conversion
    to_row = conversion
    (name,) = step.output_type.names
    return lambda value: to_row(value if isinstance(value, tuple | list | Row | dict) else {name: value})


def _window(
    setup: OperatorSetup, operation: WindowOperation, keyed: Transformation, output: Output
) -> AbstractStreamOperator:
    from flinkcore.operators.windowing import make_window_operator  # which most small programs do not need

    return make_window_operator(
        setup.copied(operation),
        setup.key_selector(keyed),
        output,
        setup.keyed_state_backend,
        setup.clock,
        as_in_pyflink=True,
    )


def _process(
    setup: OperatorSetup, step: ElementProcessTransformation | ProcessTransformation, output: Output
) -> AbstractStreamOperator:
    function = setup.copied(step.function)
    if isinstance(function, KeyedProcessFunction):
        selector = setup.key_selector(step.input)
        return KeyedProcessOperator(function, selector, output, setup.keyed_state_backend, setup.clock)
    return ProcessOperator(function, output, setup.clock)


def _async_wait(
    setup: OperatorSetup, step: AsyncWaitTransformation, output: Output
) -> AbstractStreamOperator:
    from flinkcore.operators.async_wait_operator import AsyncWaitOperator  # loads asyncio

    queue_of = setup.job.async_queue_of

    def make_queue() -> AsyncElementQueue:
        assert queue_of is not None
        return queue_of(setup.task, step.capacity, step.ordered)

    function, strategy = setup.copied(step.function), setup.copied(step.strategy)
    return AsyncWaitOperator(function, strategy, step.timeout_ms, output, make_queue)


def _connected(
    setup: OperatorSetup,
    step: ConnectedTransformation | TwoInputTransformation,
    make_output: OutputMaker,
    conversion: Conversion,
) -> AbstractStreamOperator:
    from flinkcore.datastream.graph.interval_join_operation import IntervalJoinOperation  # loads windows
    from flinkcore.datastream.window import WindowOperation

    function, clock = setup.copied(step.function), setup.clock
    selectors = [setup.key_selector(given) for given in step.inputs() if _is_keyed(given)]
    backend = setup.keyed_state_backend if selectors else None
    keyed = tuple(KeyedInput(selector, setup.keyed_state_backend) for selector in selectors)
    if isinstance(function, CoMapFunction):
        return CoStreamMap(function, make_output(None), conversion, keyed)
    given_by = function.function if isinstance(function, IntervalJoinOperation) else function
    output = make_output(_named(setup, function_name(given_by), conversion))
    if isinstance(function, CoFlatMapFunction):
        return CoStreamFlatMap(function, output, None, keyed)
    if isinstance(function, CoProcessFunction) and backend is None:
        return CoProcessOperator(function, output, clock)
    if isinstance(function, KeyedCoProcessFunction | CoProcessFunction):
        assert backend is not None
        return KeyedCoProcessOperator(function, selectors[0], selectors[1], output, backend, clock)
    if isinstance(function, IntervalJoinOperation):
        from flinkcore.operators.interval_join_operator import IntervalJoinOperator

        assert backend is not None
        return IntervalJoinOperator(function, selectors[0], selectors[1], output, backend, clock)
    if isinstance(function, WindowOperation):
        raise ConfigurationError(
            f"the step {str(step)!r} runs in jobs that give columns, but this job runs element by element: union both "
            "streams, each element with the name of its stream, and take one window of both"
        )
    broadcast = step.input2
    assert isinstance(broadcast, BroadcastTransformation)
    states = broadcast.descriptors
    if isinstance(function, KeyedBroadcastProcessFunction):
        assert backend is not None
        return KeyedBroadcastProcessOperator(
            function, selectors[0], states, output, backend, setup.operator_state_backend, clock
        )
    assert isinstance(function, BroadcastProcessFunction)
    return BroadcastProcessOperator(function, states, output, setup.operator_state_backend, clock)


def check_operators(nodes: Sequence[StreamNode], configuration: ExecutionConfig) -> None:
    """Create and drop the operators of a job, except for sinks, before anything runs; none is opened.

    Raises
    ------
    ConfigurationError
        If a step cannot run element by element.
    UserCodeError
        If a function cannot be copied.
    """
    clock = DrivenProcessingTimeService()
    job = JobContext(configuration, lambda task: clock, lambda value: None, copy.copy)
    for node in nodes:
        if not (is_source_node(node) or isinstance(node.transformation, SinkTransformation)):
            make_operator(OperatorSetup(node, 0, job, clock), lambda conversion: TaskOutput([]))
