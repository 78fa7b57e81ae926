"""Steps of a job as data: each transformation names its inputs, down to the sources."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from flinkcore._internal.arrow.expressions import ColumnExpression, Expression, RowExpansion
from flinkcore._internal.arrow.schemas import Schema, require_row_schema
from flinkcore._internal.io.locations import shown_location
from flinkcore.common.boundedness import Boundedness
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.settings import flink_settings as settings
from flinkcore.common.typeinfo import TypeInformation, Types
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.functions import (
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
)
from flinkcore.datastream.functions.reduce_function import ReduceFunction
from flinkcore.datastream.graph.arrow_data import ArrowData
from flinkcore.datastream.graph.declared_type import declared_type
from flinkcore.datastream.graph.key_columns import KeyColumns
from flinkcore.datastream.graph.log_settings import LogSettings
from flinkcore.datastream.graph.output_mode import OutputMode
from flinkcore.datastream.graph.row_patterns import Measure, PatternExpression, RowPattern
from flinkcore.errors import ArgumentTypeError, ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.aggregates import Aggregate
    from flinkcore.datastream.graph.interval_join_operation import IntervalJoinOperation
    from flinkcore.datastream.graph.join_operations import JoinOperation
    from flinkcore.datastream.state import MapStateDescriptor
    from flinkcore.datastream.window import Evictor, Trigger, WindowAssigner, WindowOperation
    from flinkcore.datastream.window.local_clock import LocalClock

    TwoInputFunction: TypeAlias = (
        CoProcessFunction
        | KeyedCoProcessFunction
        | BroadcastProcessFunction
        | KeyedBroadcastProcessFunction
        | IntervalJoinOperation
        | WindowOperation
    )


class ChainingStrategy(Enum):
    """Chaining of a step's operator to the one before it.

    Notes
    -----
    Flink's ``ChainingStrategy``.
    """

    ALWAYS = "always"
    HEAD = "head"
    NEVER = "never"


@dataclass
class OperatorSettings:
    """Name, id and parallelism of a step; unlike the step itself they can be changed.

    Attributes
    ----------
    name, uid, description : str or None
        Used in messages, ``explain`` and metrics.
    parallelism, max_parallelism : int or None
        Parallelism and its maximum, or None for those of the environment.
    chaining : ChainingStrategy
    emitted_at : str or None
        Column of the results for the time at which they were emitted, or None.
    clock : LocalClock or None
        Clock whose local times are those of the step's windows, or None if they are cut by UTC.
    flink_state : str or None
        Description of how Flink's operator of the same node of a compiled plan keeps its state.
    update_before : bool
        Whether the changes of a relational operator have the row before an update, ``-U``.
    """

    name: str | None = None
    uid: str | None = None
    description: str | None = None
    parallelism: int | None = None
    max_parallelism: int | None = None
    chaining: ChainingStrategy = ChainingStrategy.ALWAYS
    emitted_at: str | None = None
    clock: LocalClock | None = None
    flink_state: str | None = None
    update_before: bool = True

    def set_parallelism(self, parallelism: int) -> None:
        """Set the number of subtasks; ConfigurationError unless it is from 1 to 32,768."""
        number = settings.PARALLELISM.type.argument("parallelism", parallelism)
        self.parallelism = None if number == settings.PARALLELISM_DEFAULT else number

    def set_max_parallelism(self, max_parallelism: int) -> None:
        """Set the number of key groups; ConfigurationError unless it is from 1 to 32,768."""
        self.max_parallelism = settings.NUMBER_OF_KEY_GROUPS.argument("max_parallelism", max_parallelism)

    def set_text(self, what: str, text: str) -> None:
        """Set name, uid or description; ConfigurationError unless it is a text."""
        if not isinstance(text, str) or not text:
            kind = ConfigurationError if isinstance(text, str) else ArgumentTypeError
            raise kind(f"a {what} is a text that is not empty, not {text!r}")
        setattr(self, what, text)


@dataclass(eq=False, repr=False)
class Transformation:
    """One step of a job.

    Attributes
    ----------
    path : str
        Way in which the step runs: ``columnar`` steps see Arrow batches and make no Python object per row; ``rows``
        steps call a Python function for each row.
    needs_rows : bool
        Whether a job with this step runs element by element, all of it.
    is_of_program : bool
        Whether it stands for a call of the program, which can give it a uid.
    settings : OperatorSettings
        Name, parallelism and so on.
    refusal : str or None
        Why the step cannot run, as a clause of a message; None if it can.
    uid : str or None
        Id of the step's state in checkpoints, or None if the executor assigns one. It is one of the settings.

    Notes
    -----
    Follows Flink's ``Transformation``. Transformations are compared by identity.
    """

    path: ClassVar[str] = "columnar"
    needs_rows: ClassVar[bool] = False
    is_of_program: ClassVar[bool] = True

    settings: OperatorSettings = field(default_factory=OperatorSettings, kw_only=True)

    @property
    def uid(self) -> str | None:
        """The id of the step's state in checkpoints."""
        return self.settings.uid

    @property
    def refusal(self) -> str | None:
        """Return why the step cannot run, as a clause of a message, or None if it can."""
        return None

    @property
    def operator_name(self) -> str:
        """The name of the step's operator if the program gives it none, as in PyFlink."""
        return type(self).__name__.removesuffix("Transformation")

    @property
    def element_type(self) -> TypeInformation:
        """The declared type of this step's elements; any Python object by default."""
        return Types.PICKLED_BYTE_ARRAY()

    def inputs(self) -> tuple[Transformation, ...]:
        """Return the transformations whose output this one reads; none for a source."""
        return ()

    def side_outputs(self) -> tuple[OutputTag, ...]:
        """Return the tags of this step's own side outputs."""
        return ()

    def in_order(self) -> Iterator[Transformation]:
        """Yield the transformations that this one depends on, each once, sources first, and itself last."""
        seen: set[int] = set()
        for step in self.inputs():
            for earlier in step.in_order():
                if id(earlier) not in seen:
                    seen.add(id(earlier))
                    yield earlier
        yield self


class LogData(ABC):
    """The data of a log whose rows have no positions, and which evaluates expressions itself.

    A Spark DataFrame, or a table of a lake.
    """

    @property
    @abstractmethod
    def order(self) -> str:
        """The order of the rows of a log without arrivals, in words."""

    @property
    def position(self) -> str | None:
        """The column with the numbers of the rows in the requested order, or None."""
        return None

    def doubt_of_columns(self) -> str:
        """Return why the data may lack columns that its files have, and what to do; empty if it lacks none."""
        return ""

    @abstractmethod
    def filter(self, condition: Any) -> LogData | None:
        """Return the data with the rows for which a condition is true; None if it does not evaluate that itself."""

    @abstractmethod
    def with_columns(self, expressions: Mapping[str, Any]) -> LogData | None:
        """Return the data with computed columns, new or in the place of others; None if it does not compute them."""


@dataclass(eq=False, repr=False)
class EventLogSource(Transformation):
    """An event log as declared by the program; nothing of it has been read.

    Attributes
    ----------
    data : Any
        Path, URI or glob, a list of these, `ArrowData`, or `LogData`.
    log : LogSettings
        Times, splits and order of its rows.
    format, format_options, schema, decode
        As given to :meth:`StreamExecutionEnvironment.from_event_log`.
    filesystem : pyarrow.fs.FileSystem, fsspec filesystem, Stores or None
        As given to :meth:`StreamExecutionEnvironment.from_event_log`, or the stores of the executor.
    gives_elements : bool
        Whether its events are single elements, and not rows of columns.
    """

    gives_elements: ClassVar[bool] = False

    data: Any
    log: LogSettings
    format: str | None = None
    format_options: Mapping[str, Any] | None = None
    filesystem: Any = None
    schema: Any = None
    decode: Any = None

    @property
    def operator_name(self) -> str:
        return "Event Log"

    @property
    def boundedness(self) -> Boundedness:
        """The boundedness of the stream that the log records."""
        return Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def shown_data(self) -> str:
        """Its data in plans: locations without credentials."""
        if isinstance(self.data, str):
            return shown_location(self.data)
        return str(list(map(shown_location, self.data)) if isinstance(self.data, list) else self.data)

    def side_outputs(self) -> tuple[OutputTag, ...]:
        return (self.log.on_bad_row,) if isinstance(self.log.on_bad_row, OutputTag) else ()

    def __str__(self) -> str:
        order = self.data.order if isinstance(self.data, LogData) else None
        has_paths = not isinstance(self.data, ArrowData | LogData)
        return f"event log {self.shown_data}: {self.log.in_words(order, has_paths)}{self._decoded}"

    @property
    def _decoded(self) -> str:
        decoded = ", ".join(self.decode) if isinstance(self.decode, Mapping) else self.decode
        return "" if decoded is None else f", decoded {decoded}"


@dataclass(eq=False, repr=False)
class OneInputTransformation(Transformation):
    """A step with one input (Flink's ``OneInputTransformation``)."""

    input: Transformation

    def inputs(self) -> tuple[Transformation, ...]:
        return (self.input,)


@dataclass(eq=False, repr=False)
class FilterTransformation(OneInputTransformation):
    """Keeps the rows where the predicate is true."""

    predicate: Expression

    def __str__(self) -> str:
        return f"filter {self.predicate}"


@dataclass(eq=False, repr=False)
class SelectTransformation(OneInputTransformation):
    """Replaces the columns: those named, then the computed ones."""

    names: tuple[str, ...]
    expressions: tuple[tuple[str, Expression], ...]

    def __str__(self) -> str:
        return f"select {', '.join((*self.names, *(f'{n} = {e}' for n, e in self.expressions)))}"


@dataclass(eq=False, repr=False)
class WithColumnsTransformation(OneInputTransformation):
    """Adds computed columns, or replaces those of the same name."""

    expressions: tuple[tuple[str, Expression], ...]

    def __str__(self) -> str:
        return f"with columns {', '.join(f'{name} = {expression}' for name, expression in self.expressions)}"


@dataclass(eq=False, repr=False)
class TimestampsAndWatermarksTransformation(OneInputTransformation):
    """Assigns timestamps and watermarks (Flink's ``TimestampsAndWatermarksTransformation``)."""

    strategy: WatermarkStrategy

    @property
    def operator_name(self) -> str:
        return "Timestamps/Watermarks"

    @property
    def element_type(self) -> TypeInformation:
        return self.input.element_type

    def __str__(self) -> str:
        return f"timestamps and watermarks: {self.strategy}"


@dataclass(eq=False, repr=False)
class PartitionTransformation(OneInputTransformation):
    """Sends each row to the task of its key group (Flink's ``PartitionTransformation``)."""

    key: KeyColumns

    @property
    def element_type(self) -> TypeInformation:
        return self.input.element_type

    def __str__(self) -> str:
        return f"key by {', '.join(self.key.names)}" if self.key.names else "all rows under one key"


class OperatorTransformation(Transformation):
    """A step of a job over columns that an operator does; its results have columns of their own."""


class LateRowsTransformation(Transformation):
    """A step that may have a side output of late rows, which are dropped otherwise."""

    late_tag: OutputTag | None

    def side_outputs(self) -> tuple[OutputTag, ...]:
        return (self.late_tag,) if self.late_tag is not None else ()


@dataclass(eq=False, repr=False)
class ForwardTransformation(OperatorTransformation, OneInputTransformation):
    """Forwards the rows of a stream: the last operator of a job that would end without one."""

    call: ClassVar[str] = "forward"

    def __str__(self) -> str:
        return "rows as they come"


@dataclass(eq=False, repr=False)
class ExpandTransformation(OperatorTransformation, OneInputTransformation):
    """Makes several rows, or none, of each row."""

    call: ClassVar[str] = "expand"

    expansion: RowExpansion

    def __str__(self) -> str:
        return str(self.expansion)


@dataclass(eq=False, repr=False)
class WindowTransformation(LateRowsTransformation, OperatorTransformation, OneInputTransformation):
    """Aggregates the rows of each key and window."""

    call: ClassVar[str] = "aggregate"

    assigner: WindowAssigner[Any, Any]
    allowed_lateness_ms: int
    late_tag: OutputTag | None
    aggregates: tuple[tuple[str, Aggregate], ...]
    trigger: Trigger[Any, Any] | None = None
    output_mode: OutputMode = OutputMode.ACCUMULATING
    evictor: Evictor[Any] | None = None

    @property
    def refusal(self) -> str | None:
        from flinkcore.datastream.graph.columnar_windows import why_not_columnar

        return why_not_columnar(self.assigner, self.trigger, self.evictor)

    @property
    def operator_name(self) -> str:
        return type(self.assigner).__name__

    def __str__(self) -> str:
        late = (
            f"to side output {self.late_tag.tag_id}" if self.late_tag is not None else "counted and dropped"
        )
        aggregates = ", ".join(f"{name} = {aggregate}" for name, aggregate in self.aggregates)
        trigger = f", trigger {self.trigger}" if self.trigger is not None else ""
        evictor = f", evictor {self.evictor}" if self.evictor is not None else ""
        mode = f", {self.output_mode.value}" if self.output_mode is not OutputMode.ACCUMULATING else ""
        lateness = f"allowed lateness {self.allowed_lateness_ms} ms, late rows {late}"
        columns = ", ".join([aggregates, *filter(None, [self.settings.emitted_at])])
        return f"{self.assigner.in_words}{trigger}{evictor}, {lateness}{mode}: {columns}"


@dataclass(eq=False, repr=False)
class DeduplicateTransformation(LateRowsTransformation, OperatorTransformation, OneInputTransformation):
    """Keeps one row of each key."""

    call: ClassVar[str] = "deduplicate"

    keep: str
    by: str
    changes: bool
    ttl_ms: int = 0
    late_tag: OutputTag | None = None

    @property
    def operator_name(self) -> str:
        return "Deduplicate"

    def __str__(self) -> str:
        changes = ", as changes" if self.changes else ""
        return f"the {self.keep} row of each key by {self.by.replace('_', ' ')}{changes}"


@dataclass(eq=False, repr=False)
class JoinTransformation(OperatorTransformation):
    """Joins two streams by key, and by time or condition."""

    input1: Transformation
    input2: Transformation
    operation: JoinOperation

    @property
    def call(self) -> str:
        """The method of a stream that makes it."""
        return self.operation.call

    @property
    def operator_name(self) -> str:
        return self.operation.operator_name

    def inputs(self) -> tuple[Transformation, ...]:
        return self.input1, self.input2

    def side_outputs(self) -> tuple[OutputTag, ...]:
        return tuple(tag for tag in self.operation.late_tags if tag is not None)

    def __str__(self) -> str:
        return str(self.operation)


@dataclass(eq=False, repr=False)
class TopTransformation(LateRowsTransformation, OperatorTransformation, OneInputTransformation):
    """Keeps the highest rows of each key, or of each window of a key; attributes as of the operator's plan."""

    call: str
    n: int
    by: tuple[str, ...] = ()
    descending: tuple[bool, ...] = ()
    nulls_last: tuple[bool | None, ...] = ()
    skip: int = 0
    by_time: bool = False
    rank: str = "row_number"
    rank_column: str | None = None
    latest_first: bool = False
    changes: bool = False
    window: WindowAssigner[Any, Any] | None = None
    window_end: str | None = None
    unique_key: tuple[str, ...] | None = None
    limit_column: str | None = None
    late_tag: OutputTag | None = None

    @property
    def operator_name(self) -> str:
        return "Top"

    def __str__(self) -> str:
        return f"{self._rows} of each key{self._window}{self._order}{', as changes' if self.changes else ''}"

    @property
    def _rows(self) -> str:
        if self.call == "deduplicate":
            return f"the {'last' if self.latest_first else 'first'} row"
        if self.limit_column is not None:
            return f"as many of the highest rows as {self.limit_column} of the first row has"
        rows = f"the rows from {self.skip + 1} to {self.n}" if self.skip else f"the highest {self.n}"
        return rows if self.rank == "row_number" else f"{rows} by {self.rank}"

    @property
    def _window(self) -> str:
        if self.window_end is not None:
            return f" and window that ends at {self.window_end}"
        return "" if self.window is None else f" in {self.window.in_words}"

    @property
    def _order(self) -> str:
        columns = [
            f"{name}{' descending' if is_down else ''}{_NULLS[nulls]}"
            for name, is_down, nulls in zip(self.by, self.descending, self.nulls_last, strict=True)
        ]
        return f" by {', '.join(columns) or ('event time' if self.by_time else 'arrival')}"


_NULLS = {None: "", True: " nulls last", False: " nulls first"}


@dataclass(eq=False, repr=False)
class OverTransformation(LateRowsTransformation, OperatorTransformation, OneInputTransformation):
    """Adds aggregates over the rows before each row of a key to it."""

    call: ClassVar[str] = "over"

    preceding_rows: int | None
    preceding_ms: int | None
    unit: str
    by: str
    aggregates: tuple[tuple[str, Aggregate], ...]
    late_as_unbounded: bool = False
    order_by: tuple[str, ...] | None = None
    descending: tuple[bool, ...] = ()
    nulls_last: tuple[bool, ...] = ()
    ttl_ms: int = 0
    expires_by_timer: bool = False
    late_tag: OutputTag | None = None

    @property
    def operator_name(self) -> str:
        return "Over"

    def __str__(self) -> str:
        if self.preceding_rows is not None:
            frame = f"{self.preceding_rows} rows before each row"
        elif self.preceding_ms is not None:
            frame = f"{self.preceding_ms} ms before each row"
        else:
            frame = "all rows up to each row"
        aggregates = ", ".join(f"{name} = {aggregate}" for name, aggregate in self.aggregates)
        return f"{frame} ({self.unit}) by {self.by.replace('_', ' ')}: {aggregates}"


@dataclass(eq=False, repr=False)
class GroupAggregateTransformation(OperatorTransformation, OneInputTransformation):
    """Aggregates all rows of each key; attributes as of the operator's plan."""

    call: ClassVar[str] = "aggregate"

    aggregates: tuple[tuple[str, Aggregate], ...]
    changes: bool
    results: tuple[ColumnExpression, ...] = ()
    ttl_ms: int = 0

    @property
    def operator_name(self) -> str:
        return "GroupAggregate"

    def __str__(self) -> str:
        aggregates = ", ".join(f"{name} = {aggregate}" for name, aggregate in self.aggregates)
        return f"all rows of each key{', as changes' if self.changes else ''}: {aggregates}"


@dataclass(eq=False, repr=False)
class MatchTransformation(OperatorTransformation, OneInputTransformation):
    """Searches the rows of each key for a pattern; attributes as of the operator's plan."""

    call: ClassVar[str] = "match_recognize"

    pattern: RowPattern
    conditions: tuple[PatternExpression | None, ...]
    measures: tuple[Measure, ...]
    order_by: tuple[str, ...] = ()
    descending: tuple[bool, ...] = ()
    nulls_last: tuple[bool, ...] = ()

    @property
    def operator_name(self) -> str:
        return "Match"

    def __str__(self) -> str:
        within = "" if self.pattern.within_ms is None else f" within {self.pattern.within_ms} ms"
        skip_to = f" {self.pattern.skip_to}" if self.pattern.skip_to else ""
        names = ", ".join(measure.name for measure in self.measures)
        return f"pattern {self.pattern}{within}, then {self.pattern.skip.value}{skip_to}: {names}"


class FunctionTransformation(OperatorTransformation):
    """A function of the user's whose results are rows with columns, in the main output and in side outputs."""

    path: ClassVar[str] = "rows"

    function: Any
    output_type: Schema
    tags: tuple[OutputTag, ...]
    timestamp_column: str | None
    call: str

    def __post_init__(self) -> None:
        schemas = {f"the output_type of {self.call}": self.output_type}
        require_row_schema(self.output_type, *schemas)
        for tag in self.tags:
            if self.tags.count(tag) > 1:
                raise ConfigurationError(f"{self.call} names the side output {tag.tag_id!r} twice")
            name = f"the type_info of OutputTag({tag.tag_id!r}), a side output of {self.call},"
            require_row_schema(tag.type_info, name)
            schemas[name] = tag.type_info
        column = self.timestamp_column
        if column is not None and (not isinstance(column, str) or not column):
            raise ArgumentTypeError(f"timestamp_column is the name of a column, such as 'at', not {column!r}")
        for name, schema in schemas.items():
            if self.timestamp_column in schema.names:
                raise ConfigurationError(
                    f"timestamp_column={self.timestamp_column!r} is a column of {name} already: take another name"
                )

    def side_outputs(self) -> tuple[OutputTag, ...]:
        return self.tags

    def with_side_output(self, output_tag: OutputTag) -> FunctionTransformation:
        """Return this step with one more side output of its function."""
        changed: dict[str, Any] = {"tags": (*self.tags, output_tag)}
        return replace(self, **changed)

    @property
    def element_type(self) -> TypeInformation:
        return declared_type(self.output_type)

    def shown_outputs(self) -> str:
        """Return columns and side outputs as text."""
        named = ["the columns of the rows"] if self.output_type is None else self.output_type.names
        columns = [*named, *filter(None, [self.timestamp_column, self.settings.emitted_at])]
        sides = f"; side outputs {', '.join(tag.tag_id for tag in self.tags)}" if self.tags else ""
        return f"{', '.join(columns)}{sides}"


@dataclass(eq=False, repr=False)
class ProcessTransformation(FunctionTransformation, OneInputTransformation):
    """Calls a function for each row of each key, and for the timers that it registers.

    Attributes
    ----------
    function : KeyedProcessFunction or KeyedBatchProcessFunction
    output_type : pyarrow.Schema
        Columns of its results.
    tags : tuple of OutputTag
        Its side outputs, each with its schema.
    timestamp_column : str or None
        Additional column of all its outputs, with the timestamps of their records.
    call : str
        The method of the stream that the program called, for messages.
    """

    called: ClassVar[str] = "Python called for each row and timer"

    function: Any
    output_type: Schema
    tags: tuple[OutputTag, ...] = ()
    timestamp_column: str | None = None
    call: str = "process"

    @property
    def operator_name(self) -> str:
        return "KEYED PROCESS"

    def __str__(self) -> str:
        outputs = self.shown_outputs()
        return f"process by {type(self.function).__qualname__}, {self.called}: {outputs}"


class BatchProcessTransformation(ProcessTransformation):
    """Calls a function for batches of rows of many keys, and of the timers that it registers."""

    path: ClassVar[str] = "columnar"
    called: ClassVar[str] = "called for batches of rows and timers"

    def __post_init__(self) -> None:
        if self.timestamp_column is not None:
            raise ConfigurationError(
                f"timestamp_column={self.timestamp_column!r}: the rows that a function over batches gives have no "
                "timestamps of their own; make them a column of the output_type"
            )
        super().__post_init__()


@dataclass(eq=False, repr=False)
class WindowProcessTransformation(ProcessTransformation):
    """Calls functions for the rows of each key and window.

    Attributes
    ----------
    function : WindowOperation
    output_type : pyarrow.Schema or None
        Schema of the results, or None for that of the rows, which a reduce function returns.
    """

    function: WindowOperation

    def __post_init__(self) -> None:
        if self.output_type is None and not self.gives_rows:
            raise ConfigurationError(
                f"{self.call} over windows needs an output_type, a pyarrow.Schema such as "
                "pyarrow.schema({'user': pyarrow.string()}): only a reduce function without a window function gives "
                "rows as they come"
            )
        if self.output_type is not None:
            super().__post_init__()
        if self.function.late_tag in self.tags:
            raise ConfigurationError(
                f"side output {self.function.late_tag.tag_id!r} is named for both late rows and the function's: take "
                "two names"
            )

    @property
    def operator_name(self) -> str:
        return type(self.function.assigner).__name__

    @property
    def gives_rows(self) -> bool:
        """Return whether results have the columns of the input."""
        operation = self.function
        return operation.window_function is None and isinstance(operation.pre_aggregation, ReduceFunction)

    def side_outputs(self) -> tuple[OutputTag, ...]:
        late_tag = self.function.late_tag
        return self.tags if late_tag is None else (late_tag, *self.tags)

    def __str__(self) -> str:
        names = " and ".join(self.function.function_names)
        return f"{self.function}: {self.shown_outputs()}; row by row, as {names} in Python"


@dataclass(frozen=True)
class StreamGraph:
    """The transformations of a columnar job.

    Attributes
    ----------
    result : Transformation
        The last step, whose rows are the result.

    Notes
    -----
    Follows Flink's ``StreamGraph``.
    """

    result: Transformation

    @property
    def needs_rows(self) -> bool:
        """Return whether the job runs element by element."""
        return any(step.needs_rows for step in self.transformations())

    def transformations(self) -> tuple[Transformation, ...]:
        """Return the transformations in order from the source to the result."""
        return tuple(self.result.in_order())

    def side_outputs(self) -> tuple[OutputTag, ...]:
        """Return the tags of all side outputs, from the source to the result."""
        return tuple(tag for step in self.transformations() for tag in step.side_outputs())


def two_input_name(function: object) -> str:
    """Return the name of the operator of a function of two inputs, as in PyFlink."""
    from flinkcore.datastream.graph.interval_join_operation import IntervalJoinOperation
    from flinkcore.datastream.window import WindowOperation

    names = {
        BroadcastProcessFunction: "Co-Process-Broadcast",
        KeyedBroadcastProcessFunction: "Keyed-Co-Process-Broadcast",
        CoProcessFunction: "Co-Process",
        KeyedCoProcessFunction: "Keyed Co-Process",
        CoMapFunction: "Co-Map",
        CoFlatMapFunction: "Co-Flat Map",
        IntervalJoinOperation: "Interval Join",
        WindowOperation: "Window Join",
    }
    return next(name for kind, name in names.items() if isinstance(function, kind))


@dataclass(eq=False, repr=False)
class UnionTransformation(Transformation):
    """All rows of several streams with the same columns (Flink's ``UnionTransformation``)."""

    united: tuple[Transformation, ...]

    def inputs(self) -> tuple[Transformation, ...]:
        return self.united

    @property
    def element_type(self) -> TypeInformation:
        first, *others = [step.element_type for step in self.united]
        return first if all(other == first for other in others) else super().element_type

    def __str__(self) -> str:
        return f"union of {len(self.united)} streams"


@dataclass(eq=False, repr=False)
class BroadcastTransformation(OneInputTransformation):
    """Sends each row to every task (Flink's ``PartitionTransformation`` with a ``BroadcastPartitioner``).

    Attributes
    ----------
    descriptors : tuple of MapStateDescriptor
        Broadcast states of the function that processes the rows.
    """

    descriptors: tuple[MapStateDescriptor[Any, Any], ...]

    @property
    def element_type(self) -> TypeInformation:
        return self.input.element_type

    def __str__(self) -> str:
        return f"broadcast, for the states {', '.join(descriptor.name for descriptor in self.descriptors)}"


@dataclass(eq=False, repr=False)
class TwoInputTransformation(FunctionTransformation):
    """Calls a function for each row of two streams (Flink's ``TwoInputTransformation``).

    Attributes
    ----------
    input1, input2 : Transformation
        Both partitioned by key, or none; or the second is broadcast.
    function : CoProcessFunction, KeyedCoProcessFunction, one of the broadcast process functions, or a join
    output_type, tags, timestamp_column, call
        As of ``ProcessTransformation``.
    """

    input1: Transformation
    input2: Transformation
    function: TwoInputFunction
    output_type: Schema
    tags: tuple[OutputTag, ...] = ()
    timestamp_column: str | None = None
    call: str = "process"

    def inputs(self) -> tuple[Transformation, ...]:
        return self.input1, self.input2

    @property
    def operator_name(self) -> str:
        return two_input_name(self.function)

    def __str__(self) -> str:
        outputs = self.shown_outputs()
        return (
            f"process two streams by {type(self.function).__qualname__}, Python called for each row and timer: "
            f"{outputs}"
        )


@dataclass(eq=False, repr=False)
class IntervalJoinTransformation(TwoInputTransformation):
    """Calls a function for the pairs of rows of a key whose timestamps are close.

    Attributes
    ----------
    function : IntervalJoinOperation
    """

    function: IntervalJoinOperation

    def __post_init__(self) -> None:
        super().__post_init__()
        named = self.side_outputs()
        for tag in named:
            if named.count(tag) > 1:
                raise ConfigurationError(
                    f"side output {tag.tag_id!r} is named for two of left late rows, right late rows and the "
                    "function's: take two names"
                )

    def side_outputs(self) -> tuple[OutputTag, ...]:
        late = (self.function.left_late_tag, self.function.right_late_tag)
        return (*(tag for tag in late if tag is not None), *self.tags)

    def __str__(self) -> str:
        outputs = self.shown_outputs()
        name = type(self.function.function).__qualname__
        return f"{self.function}: {outputs}; row by row, as {name} in Python"


@dataclass(eq=False, repr=False)
class WindowJoinTransformation(TwoInputTransformation):
    """Calls a function for the elements of two streams in each window of a key.

    Attributes
    ----------
    function : WindowOperation
        Its windows contain elements of both streams.
    """

    function: WindowOperation
    call: str = "apply"

    def __str__(self) -> str:
        outputs = self.shown_outputs()
        name = self.function.function_names[-1]
        return f"two streams in windows, {self.function}: {outputs}; row by row, as {name} in Python"
