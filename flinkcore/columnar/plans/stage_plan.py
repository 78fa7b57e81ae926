"""The plan of one operator of a job, with its inputs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from flinkcore._internal.arrow.column_ops import ColumnOp, output_schema
from flinkcore._internal.values.memory_limits import BATCH_BYTES
from flinkcore.columnar.operator_plans.operator_plan import OperatorPlan, OperatorWindows, bound_type
from flinkcore.columnar.plans.connected_inputs import ConnectedInputs
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.graph.key_columns import KeyColumns
from flinkcore.datastream.window.local_clock import LocalClock
from flinkcore.errors import ConfigurationError
from flinkcore.time_plane.job_time import InputStreams, OperatorStreams


@dataclass(frozen=True)
class StageResults:
    """Results of an operator that come to another one.

    Attributes
    ----------
    stage : int
        Number of the operator that gives them.
    ops : tuple of ColumnOp
        Operations on the results on their path.
    """

    stage: int
    ops: tuple[ColumnOp, ...] = ()


@dataclass(frozen=True)
class StageInput:
    """Input of an operator.

    Attributes
    ----------
    key : KeyColumns
    schema : pyarrow.Schema
        Columns of the rows.
    logs : tuple of int
        Numbers of the logs whose rows it gets.
    results : tuple of StageResults
        Operators whose results it gets.
    is_broadcast : bool
        Whether every partition gets all rows.
    """

    key: KeyColumns
    schema: pa.Schema
    logs: tuple[int, ...] = ()
    results: tuple[StageResults, ...] = ()
    is_broadcast: bool = False


@dataclass(frozen=True)
class StagePlan:
    """An operator of a job, and what comes to it.

    Attributes
    ----------
    inputs : tuple of StageInput
        One or two.
    operator : OperatorPlan
    event_time : pyarrow.DataType
        Type of the event times of its first log, or of the log that its first results come from.
    max_parallelism : int
    uid : str
        By which a checkpoint names the operator.
    emitted_at : str or None
        Last column of its results, and of the side outputs of a function, for the time at which they were emitted.
    after : tuple of ColumnOp
        Operations on its results, for the last operator of a job.
    clock : LocalClock or None
        Clock whose local times its windows are cut by; the timestamps of its results are instants.
    flink_state : str or None
        Description of how Flink's operator of the same node of a compiled plan keeps its state.
    batch_bytes : int
        Bytes of a batch, at most, unless it has only one row.
    update_before : bool
        Whether the changes of a relational operator have the row before an update, ``-U``.
    """

    inputs: tuple[StageInput, ...]
    operator: OperatorPlan
    event_time: pa.DataType
    max_parallelism: int
    uid: str
    emitted_at: str | None = None
    after: tuple[ColumnOp, ...] = ()
    batch_bytes: int = BATCH_BYTES
    clock: LocalClock | None = None
    flink_state: str | None = None
    update_before: bool = True

    @property
    def key(self) -> KeyColumns:
        """The key in the rows of the first input, with nulls if one of the inputs has them."""
        return replace(self.inputs[0].key, nulls=any(each.key.nulls for each in self.inputs))

    @property
    def keys(self) -> tuple[str, ...]:
        """Columns that make up the key, in the rows of the first input."""
        return self.inputs[0].key.names

    @property
    def windows(self) -> OperatorWindows | None:
        """The windows of the rows of its one input, if they are cut by UTC."""
        return None if self.clock is not None else self.operator.windows

    @property
    def key_fields(self) -> list[pa.Field]:
        """Names and types of these columns."""
        return [self.inputs[0].schema.field(key) for key in self.keys]

    @property
    def logs(self) -> tuple[int, ...]:
        """Numbers of the logs whose rows come to it."""
        return tuple(log for each in self.inputs for log in each.logs)

    def input_of_log(self, log: int) -> int:
        """Return the number of the input, 0 or 1, to which the rows of a log come."""
        return next(number for number, each in enumerate(self.inputs) if log in each.logs)

    @property
    def results(self) -> tuple[tuple[int, StageResults], ...]:
        """Results of other operators that come to it, each with the number of the input, 0 or 1."""
        return tuple((number, results) for number, each in enumerate(self.inputs) for results in each.results)

    @property
    def input_schemas(self) -> list[pa.Schema]:
        """Columns of the rows of each input."""
        return [each.schema for each in self.inputs]

    @property
    def streams(self) -> OperatorStreams:
        """The streams that come to it, as the time plane numbers them."""
        return OperatorStreams(
            tuple(
                InputStreams(each.logs, tuple(results.stage for results in each.results))
                for each in self.inputs
            ),
            self.operator.unites_inputs,
            self.operator.held_back_ms,
        )

    def connected_inputs(self, second_from: int = 0) -> ConnectedInputs | None:
        """Return how rows of connected streams are distinguished, or None for a single input.

        Parameters
        ----------
        second_from
            Splits from this number on belong to the second input.
        """
        if len(self.inputs) == 1:
            return None
        first, second = self.inputs
        return ConnectedInputs(first.schema, second.schema, second_from)

    def data_schema(self) -> pa.Schema:
        """Return the schema of the batches that reach the operator: of both inputs, side by side."""
        inputs = self.connected_inputs()
        return self.inputs[0].schema if inputs is None else inputs.schema

    def result_schema(self) -> pa.Schema:
        """Return the columns of the results as the operator gives them."""
        return self._with_emission_times(self._schema_of_operator())

    def _schema_of_operator(self) -> pa.Schema:
        return self.operator.result_schema(self.input_schemas, self.keys, self.event_time)

    def output_schema(self) -> pa.Schema:
        """Return the columns of the results after the steps that follow."""
        return output_schema(self.after, self.result_schema())

    def tight_output_schema(self) -> pa.Schema:
        """Return the output schema, in which columns are not nullable where no row can have a null."""
        never_null = self.operator.never_null(self.inputs[0].key.never_null)
        fields = [
            field.with_nullable(field.nullable and field.name not in never_null)
            for field in self._schema_of_operator()
        ]
        return output_schema(self.after, self._with_emission_times(pa.schema(fields)))

    def side_output_schema(self, output_tag: OutputTag) -> pa.Schema:
        """Return the columns of a side output of the operator."""
        schema = self.operator.side_output_schema(output_tag, self.input_schemas, self.event_time)
        return schema if output_tag in self.operator.late_tags else self._with_emission_times(schema)

    def _with_emission_times(self, schema: pa.Schema) -> pa.Schema:
        if self.emitted_at is None:
            return schema
        return schema.append(pa.field(self.emitted_at, bound_type(self.event_time)))

    def check_emission_times(self) -> None:
        """Raise ConfigurationError if its outputs cannot have the column that is asked for."""
        if self.emitted_at is None:
            return
        outputs = [self.result_schema(), *map(self.side_output_schema, self.operator.side_outputs)]
        for schema in outputs:
            if schema.names.count(self.emitted_at) > 1:
                raise ConfigurationError(
                    f"with_emitted_at({self.emitted_at!r}): an output of its operator has a column of this name "
                    f"already: {', '.join(schema.names[:-1])}; take another name"
                )

    @property
    def repeating_columns(self) -> tuple[str, ...]:
        """Columns of the results that have few values for their rows."""
        emitted_at = () if self.emitted_at is None else (self.emitted_at,)
        return (*self.keys, *self.operator.repeating_columns, *emitted_at)

    @property
    def takes_rows_anywhere(self) -> bool:
        """Return whether each task may emit the rows that it has read: they need not come together in one task."""
        return self.operator.takes_rows_anywhere

    def partitions(self, parallelism: int) -> int:
        """Return into how many partitions the stage is divided: not at all, where there is no key."""
        return min(parallelism, self.max_parallelism) if self.keys else 1
