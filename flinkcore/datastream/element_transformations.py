"""Steps of a job that call Python functions for single elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

from flinkcore.common.output_tag import OutputTag
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.connectors.base import Sink, Source
from flinkcore.datastream.declared_type import declared_type
from flinkcore.datastream.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    FunctionOrCallable,
    KeyedProcessFunction,
    KeySelector,
    Partitioner,
    ProcessFunction,
    SinkFunction,
    function_name,
)
from flinkcore.datastream.functions.rolling_aggregation import RollingAggregation
from flinkcore.datastream.transformations import OneInputTransformation, Transformation, TwoInputFunction
from flinkcore.datastream.window import WindowOperation


@dataclass(frozen=True, eq=False)
class SourceTransformation(Transformation):
    """Elements of a source (Flink's ``SourceTransformation``).

    Attributes
    ----------
    source : Source
    strategy : WatermarkStrategy or None
        For each split of the source; None: no timestamps, and no watermark before the end.
    type_info : TypeInformation
    """

    path: ClassVar[str] = "rows"
    needs_rows: ClassVar[bool] = True

    source: Source
    strategy: WatermarkStrategy | None
    type_info: TypeInformation

    @property
    def element_type(self) -> TypeInformation:
        """As declared, or as the source has it."""
        return self.type_info

    def __str__(self) -> str:
        strategy = "" if self.strategy is None else f", {self.strategy}"
        return f"source {self.source}{strategy}"


@dataclass(frozen=True, eq=False)
class ElementTransformation(OneInputTransformation):
    """Calls a function for each element, and for each timer that it registers.

    Attributes
    ----------
    function : Function or callable
    type_info : TypeInformation
        Of what the function gives.
    """

    path: ClassVar[str] = "rows"
    needs_rows: ClassVar[bool] = True
    verb: ClassVar[str]

    function: FunctionOrCallable
    type_info: TypeInformation

    @property
    def element_type(self) -> TypeInformation:
        """As declared."""
        return self.type_info

    def __str__(self) -> str:
        return f"{self.verb} by {function_name(self.function)}: {self.type_info!r}"


class MapTransformation(ElementTransformation):
    """One element for each."""

    verb = "map"


class FlatMapTransformation(ElementTransformation):
    """Any number of elements for each."""

    verb = "flat map"


class ChoiceTransformation(ElementTransformation):
    """Keeps the elements for which a function returns true."""

    verb = "filter"


class ReduceTransformation(ElementTransformation):
    """For each element what it and all before it of its key are reduced to."""

    verb = "reduce"

    def __str__(self) -> str:
        if isinstance(self.function, RollingAggregation):
            return f"{self.function}: {self.type_info!r}"
        return super().__str__()


@dataclass(frozen=True, eq=False)
class ElementProcessTransformation(ElementTransformation):
    """A process function, with a key and timers if its input is keyed."""

    verb: ClassVar[str] = "process"

    function: ProcessFunction | KeyedProcessFunction


@dataclass(frozen=True, eq=False)
class ElementWindowTransformation(OneInputTransformation):
    """Windows of functions, over the elements of each key.

    Attributes
    ----------
    operation : WindowOperation
    type_info : TypeInformation
        Of what the windows give.
    """

    path: ClassVar[str] = "rows"
    needs_rows: ClassVar[bool] = True

    operation: WindowOperation
    type_info: TypeInformation

    def side_outputs(self) -> tuple[OutputTag, ...]:
        """Return the tag of late elements, if they go to a side output."""
        late_tag = self.operation.late_tag
        return () if late_tag is None else (late_tag,)

    @property
    def element_type(self) -> TypeInformation:
        """As declared."""
        return self.type_info

    def __str__(self) -> str:
        function = self.operation.window_function or self.operation.pre_aggregation
        return f"{self.operation} by {function_name(function)}: {self.type_info!r}"


@dataclass(frozen=True, eq=False)
class ConnectedTransformation(Transformation):
    """Calls a function for each element of two streams, and for each timer that it registers.

    Attributes
    ----------
    input1, input2 : Transformation
        Both keyed, or none; or the second is broadcast with states.
    function : CoMapFunction, CoFlatMapFunction or a process function of two inputs
    type_info : TypeInformation
        Of what the function gives.
    """

    path: ClassVar[str] = "rows"
    needs_rows: ClassVar[bool] = True

    input1: Transformation = field(repr=False)
    input2: Transformation = field(repr=False)
    function: CoMapFunction | CoFlatMapFunction | TwoInputFunction
    type_info: TypeInformation

    def inputs(self) -> tuple[Transformation, ...]:
        """Return both inputs."""
        return self.input1, self.input2

    @property
    def element_type(self) -> TypeInformation:
        """As declared."""
        return self.type_info

    def __str__(self) -> str:
        return f"two streams by {function_name(self.function)}: {self.type_info!r}"


class Partitioning(Enum):
    """How elements are dealt out to the subtasks of the next step, whatever they are."""

    FORWARD = "forward"
    REBALANCE = "rebalance"
    RESCALE = "rescale"
    SHUFFLE = "shuffle"
    BROADCAST = "broadcast"
    GLOBAL = "global"


@dataclass(frozen=True, eq=False)
class VirtualTransformation(OneInputTransformation):
    """A step without an operator of its own: it says which elements the next step reads, and how they get there."""

    path: ClassVar[str] = "rows"
    needs_rows: ClassVar[bool] = True

    @property
    def element_type(self) -> TypeInformation:
        """That of the input."""
        return self.input.element_type


@dataclass(frozen=True, eq=False)
class RepartitionTransformation(VirtualTransformation):
    """Deals elements out whatever they are (Flink's ``PartitionTransformation``)."""

    partitioning: Partitioning

    def __str__(self) -> str:
        return self.partitioning.value


@dataclass(frozen=True, eq=False)
class KeyedTransformation(VirtualTransformation):
    """Sends each element to the subtask that has the key group of its key.

    Attributes
    ----------
    key_selector : KeySelector or callable
    key_type : TypeInformation
    """

    key_selector: KeySelector | Callable[[Any], Any]
    key_type: TypeInformation

    def __str__(self) -> str:
        return f"key by {function_name(self.key_selector)}: {self.key_type!r}"


@dataclass(frozen=True, eq=False)
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


@dataclass(frozen=True, eq=False)
class SideOutputTransformation(VirtualTransformation):
    """What a step emits to a side output (Flink's ``SideOutputTransformation``)."""

    output_tag: OutputTag

    @property
    def element_type(self) -> TypeInformation:
        """That of the tag."""
        return declared_type(self.output_tag.type_info)

    def __str__(self) -> str:
        return f"side output {self.output_tag.tag_id}"


@dataclass(frozen=True, eq=False)
class SinkTransformation(OneInputTransformation):
    """The end of a stream (Flink's ``SinkTransformation``).

    Attributes
    ----------
    sink : Sink or SinkFunction
    """

    path: ClassVar[str] = "rows"
    needs_rows: ClassVar[bool] = True

    sink: Sink | SinkFunction

    def __str__(self) -> str:
        return f"sink {self.sink if isinstance(self.sink, Sink) else function_name(self.sink)}"
