"""Steps of a job with several inputs."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from flinkcore.common.output_tag import OutputTag
from flinkcore.common.schemas import Schema
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.datastream.declared_type import declared_type
from flinkcore.datastream.functions import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
)
from flinkcore.datastream.interval_join_operation import IntervalJoinOperation
from flinkcore.datastream.state import MapStateDescriptor
from flinkcore.datastream.transformations import (
    OneInputTransformation,
    Transformation,
    check_function_outputs,
    shown_function_outputs,
)
from flinkcore.datastream.window import WindowOperation

TwoInputFunction = (
    CoProcessFunction
    | KeyedCoProcessFunction
    | BroadcastProcessFunction
    | KeyedBroadcastProcessFunction
    | IntervalJoinOperation
    | WindowOperation
)


@dataclass(frozen=True, eq=False)
class UnionTransformation(Transformation):
    """All rows of several streams with the same columns (Flink's ``UnionTransformation``)."""

    united: tuple[Transformation, ...] = field(repr=False)

    def inputs(self) -> tuple[Transformation, ...]:
        """Return the streams."""
        return self.united

    @property
    def element_type(self) -> TypeInformation:
        """That of the first stream."""
        return self.united[0].element_type

    def __str__(self) -> str:
        return f"union of {len(self.united)} streams"


@dataclass(frozen=True, eq=False)
class BroadcastTransformation(OneInputTransformation):
    """Sends each row to every task (Flink's ``PartitionTransformation`` with a ``BroadcastPartitioner``).

    Attributes
    ----------
    descriptors : tuple of MapStateDescriptor
        Broadcast states of the function that gets the rows.
    """

    descriptors: tuple[MapStateDescriptor[Any, Any], ...]

    @property
    def element_type(self) -> TypeInformation:
        """That of the input."""
        return self.input.element_type

    def __str__(self) -> str:
        return f"broadcast, for the states {', '.join(descriptor.name for descriptor in self.descriptors)}"


@dataclass(frozen=True, eq=False)
class TwoInputTransformation(Transformation):
    """Calls a function for each row of two streams (Flink's ``TwoInputTransformation``).

    Attributes
    ----------
    input1, input2 : Transformation
        Both partitioned by key, or none; or the second is broadcast.
    function : CoProcessFunction, KeyedCoProcessFunction, one of the broadcast process functions, or a join
    output_type, tags, timestamp_column
        As of ``ProcessTransformation``.
    """

    path: ClassVar[str] = "rows"
    call: ClassVar[str] = "process"

    input1: Transformation = field(repr=False)
    input2: Transformation = field(repr=False)
    function: TwoInputFunction
    output_type: Schema
    tags: tuple[OutputTag, ...] = ()
    timestamp_column: str | None = None

    @property
    def element_type(self) -> TypeInformation:
        """Rows with the columns of the schema."""
        return declared_type(self.output_type)

    def __post_init__(self) -> None:
        check_function_outputs(self.output_type, self.tags, self.timestamp_column, self.call)

    def inputs(self) -> tuple[Transformation, ...]:
        """Return both inputs."""
        return self.input1, self.input2

    def side_outputs(self) -> tuple[OutputTag, ...]:
        """Return the tags of the function."""
        return self.tags

    def __str__(self) -> str:
        outputs = shown_function_outputs(self.output_type, self.tags, self.timestamp_column)
        return (
            f"process two streams by {type(self.function).__qualname__}, Python called for each row and timer: "
            f"{outputs}"
        )
