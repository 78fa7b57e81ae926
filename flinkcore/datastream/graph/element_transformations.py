"""Steps of a job that call Python functions for single elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from flinkcore.common.boundedness import Boundedness
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.connectors.base import Sink, Source
from flinkcore.datastream.connectors.print_sink import PrintSink
from flinkcore.datastream.functions import (
    AsyncFunction,
    AsyncRetryStrategy,
    CoFlatMapFunction,
    CoMapFunction,
    FunctionOrCallable,
    KeyedProcessFunction,
    KeySelector,
    Partitioner,
    ProcessFunction,
    SinkFunction,
    SourceFunction,
    function_name,
)
from flinkcore.datastream.functions.rolling_aggregation import RollingAggregation
from flinkcore.datastream.graph.declared_type import declared_type
from flinkcore.datastream.graph.transformations import (
    OneInputTransformation,
    Transformation,
    two_input_name,
)

if TYPE_CHECKING:
    from flinkcore.datastream.graph.transformations import TwoInputFunction
    from flinkcore.datastream.window import WindowOperation


class _RowByRow(Transformation):
    """A step that runs element by element, with the whole job."""

    path: ClassVar[str] = "rows"
    needs_rows: ClassVar[bool] = True


class _WithDeclaredType(_RowByRow):
    type_info: TypeInformation

    @property
    def element_type(self) -> TypeInformation:
        return self.type_info


@dataclass(eq=False, repr=False)
class SourceTransformation(_WithDeclaredType):
    """Elements of a source (Flink's ``SourceTransformation``).

    Attributes
    ----------
    source : Source
    strategy : WatermarkStrategy or None
        Strategy of each split of the source; with None no timestamps, and no watermark before the end.
    type_info : TypeInformation
    """

    source: Source
    strategy: WatermarkStrategy | None
    type_info: TypeInformation

    @property
    def boundedness(self) -> Boundedness:
        """Return whether the source ends by itself."""
        return self.source.boundedness

    def __str__(self) -> str:
        strategy = "" if self.strategy is None else f", {self.strategy}"
        return f"source {self.source}{strategy}"


@dataclass(eq=False, repr=False)
class LegacySourceTransformation(_WithDeclaredType):
    """Elements that a source function emits (Flink's ``LegacySourceTransformation``).

    Attributes
    ----------
    function : SourceFunction
    type_info : TypeInformation
    idle_timeout_ms : int or None
        Time without elements on the job's clock after which a subtask is idle; None if only the function states so.
    """

    function: SourceFunction
    type_info: TypeInformation
    idle_timeout_ms: int | None = None

    @property
    def boundedness(self) -> Boundedness:
        """Return whether the function ends by itself."""
        return self.function.boundedness

    def __str__(self) -> str:
        idle = "" if self.idle_timeout_ms is None else f", idle after {self.idle_timeout_ms} ms"
        return f"source function {function_name(self.function)}{idle}"


@dataclass(eq=False, repr=False)
class ElementTransformation(_WithDeclaredType, OneInputTransformation):
    """Calls a function for each element, and for each timer that it registers.

    Attributes
    ----------
    function : Function or callable
    type_info : TypeInformation
        Type of its results.
    """

    verb: ClassVar[str]

    function: FunctionOrCallable
    type_info: TypeInformation

    def __str__(self) -> str:
        return f"{self.verb} by {function_name(self.function)}: {self.type_info!r}"


class MapTransformation(ElementTransformation):
    """One element for each."""

    verb = "map"


class KeyedValuesTransformation(MapTransformation):
    """The elements of a keyed stream, in the subtasks that their keys have sent them to."""

    OPERATOR_NAME: ClassVar[str] = "_keyed_stream_values_operator"

    is_of_program = False

    @property
    def operator_name(self) -> str:
        return self.OPERATOR_NAME

    def __str__(self) -> str:
        return f"values of keys: {self.type_info!r}"


class FlatMapTransformation(ElementTransformation):
    """Any number of elements for each."""

    verb = "flat map"


class ChoiceTransformation(ElementTransformation):
    """Keeps the elements for which a function returns true."""

    verb = "filter"

    @property
    def operator_name(self) -> str:
        return "Filter"


class ReduceTransformation(ElementTransformation):
    """For each element, the reduction of all elements of its key up to it."""

    verb = "reduce"

    def __str__(self) -> str:
        if isinstance(self.function, RollingAggregation):
            return f"{self.function}: {self.type_info!r}"
        return super().__str__()


@dataclass(eq=False, repr=False)
class AsyncWaitTransformation(ElementTransformation):
    """The results of calls that wait for something outside of the job, many at a time.

    Attributes
    ----------
    timeout_ms : int
        After so long a call is given up; 0 or less: never.
    strategy : AsyncRetryStrategy
        Which calls are tried again.
    capacity : int
        So many elements of a subtask wait for their results at most.
    ordered : bool
        Whether results come in the order of the elements, not as they are there.
    """

    verb: ClassVar[str] = "async wait"

    function: AsyncFunction[Any, Any]
    timeout_ms: int
    strategy: AsyncRetryStrategy[Any]
    capacity: int
    ordered: bool

    @property
    def operator_name(self) -> str:
        return "async wait operator"

    def __str__(self) -> str:
        order = "ordered" if self.ordered else "unordered"
        timeout = f", timeout {self.timeout_ms} ms" if self.timeout_ms > 0 else ""
        return f"{super().__str__()}, {order}, {self.capacity} at a time{timeout}, {self.strategy!r}"


@dataclass(eq=False, repr=False)
class ElementProcessTransformation(ElementTransformation):
    """A process function, with a key and timers if its input is keyed."""

    verb: ClassVar[str] = "process"

    function: ProcessFunction | KeyedProcessFunction

    @property
    def operator_name(self) -> str:
        return "KEYED PROCESS" if isinstance(self.function, KeyedProcessFunction) else "PROCESS"


class KeyedCollectTransformation(ElementProcessTransformation):
    """Step that puts its key before each element of a keyed stream, for the program that collects the stream."""

    verb = "collect"
    is_of_program = False


@dataclass(eq=False, repr=False)
class ElementWindowTransformation(_WithDeclaredType, OneInputTransformation):
    """Windows of functions, over the elements of each key.

    Attributes
    ----------
    operation : WindowOperation
    type_info : TypeInformation
        Type of the windows' results.
    accumulator_type : TypeInformation or None
        Type of the accumulators of an AggregateFunction, as the program declares it.
    """

    operation: WindowOperation
    type_info: TypeInformation
    accumulator_type: TypeInformation | None = None

    @property
    def contents_type(self) -> TypeInformation:
        """Return the declared type of what a window keeps: accumulators, or elements."""
        return self.input.element_type if self.accumulator_type is None else self.accumulator_type

    @property
    def operator_name(self) -> str:
        return type(self.operation.assigner).__name__

    def side_outputs(self) -> tuple[OutputTag, ...]:
        late_tag = self.operation.late_tag
        return () if late_tag is None else (late_tag,)

    def __str__(self) -> str:
        function = self.operation.window_function or self.operation.pre_aggregation
        return f"{self.operation} by {function_name(function)}: {self.type_info!r}"


@dataclass(eq=False, repr=False)
class ConnectedTransformation(_WithDeclaredType):
    """Calls a function for each element of two streams, and for each timer that it registers.

    Attributes
    ----------
    input1, input2 : Transformation
        Both keyed, or none; or the second is broadcast with states.
    function : CoMapFunction, CoFlatMapFunction or a process function of two inputs
    type_info : TypeInformation
        Type of its results.
    """

    input1: Transformation
    input2: Transformation
    function: CoMapFunction | CoFlatMapFunction | TwoInputFunction
    type_info: TypeInformation

    def inputs(self) -> tuple[Transformation, ...]:
        return self.input1, self.input2

    @property
    def operator_name(self) -> str:
        return two_input_name(self.function)

    def __str__(self) -> str:
        return f"two streams by {function_name(self.function)}: {self.type_info!r}"


class Partitioning(Enum):
    """Distribution of elements to the subtasks of the next step, independently of their values."""

    FORWARD = "forward"
    REBALANCE = "rebalance"
    RESCALE = "rescale"
    SHUFFLE = "shuffle"
    BROADCAST = "broadcast"
    GLOBAL = "global"


class VirtualTransformation(_RowByRow, OneInputTransformation):
    """A step without an operator: it defines which elements the next step reads, and how they are distributed."""

    @property
    def element_type(self) -> TypeInformation:
        return self.input.element_type


@dataclass(eq=False, repr=False)
class RepartitionTransformation(VirtualTransformation):
    """Distributes elements independently of their values (Flink's ``PartitionTransformation``)."""

    partitioning: Partitioning

    def __str__(self) -> str:
        return self.partitioning.value


@dataclass(eq=False, repr=False)
class KeyedTransformation(VirtualTransformation):
    """Sends each element to the subtask of its key group.

    Attributes
    ----------
    key_selector : KeySelector or callable
    key_type : TypeInformation
    """

    key_selector: KeySelector | Callable[[Any], Any]
    key_type: TypeInformation

    def __str__(self) -> str:
        return f"key by {function_name(self.key_selector)}: {self.key_type!r}"


@dataclass(eq=False, repr=False)
class CustomPartitionTransformation(VirtualTransformation):
    """Sends each element to the subtask that a partitioner chooses for its key.

    Attributes
    ----------
    partitioner : Partitioner or callable
    key_selector : KeySelector or callable
    """

    partitioner: Partitioner | Callable[[Any, int], int]
    key_selector: KeySelector | Callable[[Any], Any]

    def __str__(self) -> str:
        return f"partition by {function_name(self.partitioner)}"


@dataclass(eq=False, repr=False)
class SideOutputTransformation(VirtualTransformation):
    """A side output of a step (Flink's ``SideOutputTransformation``)."""

    output_tag: OutputTag

    @property
    def element_type(self) -> TypeInformation:
        return declared_type(self.output_tag.type_info)

    def __str__(self) -> str:
        return f"side output {self.output_tag.tag_id}"


@dataclass(eq=False, repr=False)
class SinkTransformation(_RowByRow, OneInputTransformation):
    """The end of a stream (Flink's ``SinkTransformation``).

    Attributes
    ----------
    sink : Sink or SinkFunction
    """

    sink: Sink | SinkFunction

    @property
    def operator_name(self) -> str:
        if isinstance(self.sink, PrintSink):
            return "Print to Std. Out"
        return "Writer" if isinstance(self.sink, Sink) else "Unnamed"

    def __str__(self) -> str:
        return f"sink {self.sink if isinstance(self.sink, Sink) else function_name(self.sink)}"
