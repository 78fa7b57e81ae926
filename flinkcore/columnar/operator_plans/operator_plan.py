"""The plan of an operator: everything that the engine asks of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import pyarrow as pa

from flinkcore._internal.arrow.column_ops import Columns, shown_names
from flinkcore._internal.arrow.nested_fields import unknown_name
from flinkcore.checkpoint.table_kinds import TableKind
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.graph.key_columns import KeyColumns
from flinkcore.datastream.window import (
    LocalEventTimeWindows,
    MergingWindowAssigner,
    Trigger,
    WindowAssigner,
)
from flinkcore.errors import SchemaError

if TYPE_CHECKING:
    from flinkcore.columnar.operator_plans.aggregate_contents import AggregateContents
    from flinkcore.columnar.operator_plans.partial_windows import PartialWindows
    from flinkcore.columnar.operator_plans.window_contents import WindowTable


class OperatorTables(NamedTuple):
    """Kinds of tables of an operator in a part of a checkpoint.

    Attributes
    ----------
    always : tuple of TableKind
        Tables that each part has.
    possible : tuple of TableKind
        All tables that a part may have.
    """

    always: tuple[TableKind, ...] = ()
    possible: tuple[TableKind, ...] = ()


class OperatorWindows(NamedTuple):
    """Windows to which an operator assigns the rows of its one input.

    Attributes
    ----------
    assigner : WindowAssigner
    trigger : Trigger or None
        None if it is the one that the windows have by themselves.
    allowed_lateness_ms : int
    """

    assigner: WindowAssigner[Any, Any]
    trigger: Trigger[Any, Any] | None
    allowed_lateness_ms: int

    @property
    def merge(self) -> bool:
        """Return whether windows can merge, as sessions do."""
        return isinstance(self.assigner, MergingWindowAssigner)


class OperatorPlan(ABC):
    """An operator of a job, as its plan describes it; immutable and picklable.

    A kind of operator is a subclass, and the engine asks it instead of its kind. The defaults are those of an operator
    that reads whole rows, at any time, and holds nothing. `flinkcore.columnar.operator_plans.kinds` has the step of the
    program that asks for each kind, and `flinkcore.columnar.stages.kinds` the stage that runs it.
    """

    # ---- the plan ----

    uid_prefix: ClassVar[str] = "process"
    """Beginning of the uid of an operator to which the program gives none."""

    calls_functions: ClassVar[bool] = False
    """True if it calls functions of the user's in Python, which run in one thread at a time."""

    takes_rows_anywhere: ClassVar[bool] = False
    """True if each task may emit the rows that it has read: they need not come together in one task."""

    takes_null_keys: ClassVar[bool] = False
    """True if null can be a key like others in a single column, as in Flink SQL."""

    unites_inputs: ClassVar[bool] = False
    """True if its watermark is that of a union of its inputs, and not that of an operator with two inputs."""

    savepoint_watermark_ms: int | None = None
    """Watermark of the operator of Flink with whose windows in a savepoint it began; None if it began with none."""

    keeps_frame_rows: bool = False
    """True if it keeps the rows in bounded frames beside their aggregates, as Flink does, for a savepoint."""

    @classmethod
    @abstractmethod
    def of(cls, step: Any) -> OperatorPlan:
        """Return the operator of a step of the program.

        Raises
        ------
        ConfigurationError
            If the step cannot run over columns.
        """

    @property
    @abstractmethod
    def function_name(self) -> str:
        """Name of what takes the rows, for messages."""

    @property
    def needs_event_time(self) -> bool:
        """Return whether it needs watermarks."""
        return False

    @property
    def held_back_ms(self) -> int:
        """Return by how much its results may be behind its watermark, in ms: what it passes on is so much lower."""
        return 0

    @property
    def columns(self) -> Columns:
        """Columns of the rows that it reads besides the keys; None if it reads all."""
        return None

    @property
    def named_columns(self) -> frozenset[str]:
        """Columns that it names besides the keys, of which some may be nested fields."""
        return self.columns or frozenset()

    @property
    def timestamp_range(self) -> tuple[int, int]:
        """Lowest and highest timestamp that a row may have, in ms since the epoch."""
        return MIN_TIMESTAMP, MAX_TIMESTAMP

    @property
    @abstractmethod
    def order_dependence(self) -> str | None:
        """Return the part whose results depend on the order of a key's rows, in words, or None if no part does."""

    @abstractmethod
    def check(self, events: pa.Schema) -> None:
        """Raise a SchemaError or ConfigurationError if it cannot run over rows with these columns."""

    @property
    def refuses_results(self) -> str | None:
        """Return why it refuses results of other operators, and the remedy, or None if it takes them."""
        return None

    def bound_to(self, inputs: Sequence[pa.Schema]) -> OperatorPlan:
        """Return this with what it takes over from the columns of its inputs."""
        return self

    # ---- results and side outputs ----

    @property
    def is_retracting(self) -> bool:
        """Return whether a result may withdraw an earlier one."""
        return False

    @property
    def gives_firings(self) -> bool:
        """Return whether each result is a firing of a window, with its bounds, watermark and kind as columns."""
        return False

    @property
    def fires_by_count(self) -> bool:
        """Return whether windows fire by the number of their rows, whatever the watermark is."""
        return False

    @property
    def late_tags(self) -> tuple[OutputTag | None, ...]:
        """Side outputs of late rows, one for each input that can have some; None where these are dropped."""
        return ()

    @property
    def side_outputs(self) -> tuple[OutputTag, ...]:
        """Its side outputs, those of late rows first."""
        return tuple(tag for tag in self.late_tags if tag is not None)

    @abstractmethod
    def result_schema(
        self, inputs: Sequence[pa.Schema], keys: Sequence[str], time_type: pa.DataType
    ) -> pa.Schema:
        """Return the columns of its results.

        Parameters
        ----------
        inputs : sequence of pyarrow.Schema
            Columns of the rows of each input.
        keys : sequence of str
            Columns that make up the key, in the rows of the first input.
        time_type : pyarrow.DataType
            Type of event times.
        """

    def side_output_schema(
        self, output_tag: OutputTag, inputs: Sequence[pa.Schema], time_type: pa.DataType
    ) -> pa.Schema:
        """Return the columns of a side output: late rows are as they came."""
        return inputs[self.late_tags.index(output_tag)]

    @property
    def repeating_columns(self) -> tuple[str, ...]:
        """Columns of the results, besides the keys, that are known to have few values for their rows."""
        return ()

    def never_null(self, key: str | None) -> frozenset[str]:
        """Return columns of the results that never have a null, as far as their schema does not say so.

        Parameters
        ----------
        key : str or None
            The column of the key, if that cannot be null.
        """
        return frozenset()

    # ---- windows and timers ----

    @property
    def has_windows(self) -> bool:
        """Return whether its rows are counted by window."""
        return False

    @property
    def windows(self) -> OperatorWindows | None:
        """The windows of the rows of its one input; None if it has none, or two inputs."""
        return None

    @property
    def local_windows(self) -> LocalEventTimeWindows | None:
        """Its windows of local time, for which timestamps must be instants; None if it has none."""
        return None

    @property
    def sets_timers(self) -> bool:
        """Return whether its functions set timers, which may wait for a watermark."""
        return False

    def partial_windows(self, events: pa.Schema, key: KeyColumns) -> PartialWindows | str:
        """Return how rows are merged before they come to it, or why they are not.

        Parameters
        ----------
        events : pyarrow.Schema
            Columns of the rows.
        key : KeyColumns
        """
        return f"{self.function_name} takes the events themselves"

    # ---- checkpoints ----

    @property
    @abstractmethod
    def tables(self) -> OperatorTables:
        """Tables that it has in a checkpoint."""

    def beginning_with_savepoint(self, watermark_ms: int) -> OperatorPlan:
        """Return this with what it needs to take over the state of an operator of Flink, and its watermark."""
        return self

    def stopping_with_savepoint(self) -> OperatorPlan:
        """Return this with what it needs to write the state of an operator of Flink."""
        return self

    @property
    def least_watermark_ms(self) -> int:
        """Watermark that is in force until that of the time plane exceeds it."""
        return MIN_TIMESTAMP if self.savepoint_watermark_ms is None else self.savepoint_watermark_ms

    def window_table(self, inputs: Sequence[pa.Schema]) -> WindowTable | None:
        """Return how its windows lie in the tables of a checkpoint, or None if it has no windows over columns."""
        return None

    def aggregate_contents(self, inputs: Sequence[pa.Schema]) -> AggregateContents | None:
        """Return the description of its aggregates of all rows of a key, or None if it has none."""
        return None

    @abstractmethod
    def describe(self, inputs: Sequence[pa.Schema]) -> dict[str, str]:
        """Return settings on which its state depends, in words by their names.

        A checkpoint carries them, so that no other job is restored from it. "operator" is the kind of operator.
        """


def bound_type(time_type: pa.DataType) -> pa.DataType:
    """Return the type of timestamps in results, such as the bounds of windows: of ms, or int64 where times are so."""
    return pa.timestamp("ms", time_type.tz) if pa.types.is_timestamp(time_type) else pa.int64()


def require_column(column: str, schema: pa.Schema, what: str) -> None:
    """Check that there is a column.

    Raises
    ------
    SchemaError
        If not; names what wants it.
    """
    if column not in schema.names:
        similar = unknown_name(schema, column)
        raise SchemaError(
            f"{what}: there is no column {column!r}; columns: {shown_names(schema) or 'none'}"
            f"{'.' if similar else ''}{similar}",
            unknown=column,
        )
