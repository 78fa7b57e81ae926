"""From the graph of a job to what a replay does: one log, one watermark strategy, one keyed operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._native.watermarks import MAX_INTERVAL_MS
from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.expressions import Expression
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.watermark_strategy import WatermarkAlignmentParams, WatermarkStrategy
from flinkcore.datastream.columnar_windows import require_columnar
from flinkcore.datastream.transformations import (
    EventLogSource,
    FilterTransformation,
    PartitionTransformation,
    ProcessTransformation,
    SelectTransformation,
    StreamGraph,
    TimestampsAndWatermarksTransformation,
    Transformation,
    WindowProcessTransformation,
    WindowTransformation,
    WithColumnsTransformation,
)
from flinkcore.errors import ConfigurationError
from flinkcore.replay.log.column_ops import (
    HIDDEN_PREFIX,
    ColumnOp,
    Columns,
    Filter,
    Select,
    WithColumns,
    narrow_ops,
    output_schema,
)
from flinkcore.replay.log.event_log import EventLog
from flinkcore.replay.log.event_reader import EventReader
from flinkcore.replay.plans.key_types import require_key_type
from flinkcore.replay.plans.keyed_operator import (
    KeyedOperator,
    KeyedProcess,
    UserProcess,
    WindowAggregation,
    WindowProcess,
    require_column,
)
from flinkcore.replay.plans.named_columns import assigned, refuse_replaced, refuse_reserved
from flinkcore.replay.plans.uids import operator_uid, refuse_equal_uids, step_with_uid, watermarks_uids
from flinkcore.replay.time_plane.timed_log import TimedLog

EVENT_TIME: Final = f"{HIDDEN_PREFIX}event_time"
"""Hidden column with the event time, where that is not simply a column of the log."""

REASON: Final = "reason"
"""Column of the rejected rows' side output that tells why."""


@dataclass(frozen=True)
class ReplayPlan:
    """What a replay does; can be pickled and is all that a worker needs.

    Attributes
    ----------
    log : EventLog
        Its timestamp is a column of what `before` gives, its arrival and split are columns of the log itself.
    before : tuple of ColumnOp
        Ahead of the watermark strategy: rows that they filter out do not move the watermark.
    strategy : WatermarkStrategy
        Its `timestamp_column` is already taken into account by `before` and `log`.
    after : tuple of ColumnOp
        Between the strategy and the key; both chains compute only what the rest of the job reads.
    keys : tuple of str
    operator : KeyedOperator
        What is done with the events of each key.
    max_parallelism : int
        Number of key groups.
    auto_watermark_interval_ms : int
        0: no periodic watermarks.
    operator_uid, watermarks_uid : str
        By which a checkpoint names the operator, and the time plane.
    """

    log: EventLog
    before: tuple[ColumnOp, ...]
    strategy: WatermarkStrategy
    after: tuple[ColumnOp, ...]
    keys: tuple[str, ...]
    operator: KeyedOperator
    max_parallelism: int = 128
    auto_watermark_interval_ms: int = 200
    operator_uid: str = "process-1"
    watermarks_uid: str = "watermarks-1"

    @property
    def calls_rows(self) -> bool:
        """Whether a function in Python is called for rows, or for batches of them."""
        return isinstance(self.operator, UserProcess)

    @property
    def key_fields(self) -> list[pa.Field]:
        """Names and types of the key columns."""
        schema = self.data_schema()
        return [schema.field(key) for key in self.keys]

    @property
    def log_plans(self) -> tuple[ReplayPlan, ...]:
        """This plan, of one log."""
        return (self,)

    @property
    def operator_uids(self) -> tuple[str, ...]:
        """That of the operator."""
        return (self.operator_uid,)

    @property
    def timed_log(self) -> TimedLog:
        """What the time plane needs to know."""
        return TimedLog(
            self.log,
            self.before,
            self.strategy,
            self.auto_watermark_interval_ms,
            self.operator.timestamp_range,
        )

    def reader(self, columns: Sequence[str] | Literal["all"] | None) -> EventReader:
        """Return the reader of the log: both passes reject the same rows.

        Parameters
        ----------
        columns
            Those needed of what `before` gives; None: only the timestamp.
        """
        return self.timed_log.reader(columns)

    def time_type(self) -> pa.DataType:
        """Return the Arrow type of the event time."""
        return self.timed_log.time_type()

    def data_columns(self) -> list[str]:
        """Return the columns that the data plane needs of what `before` gives, in their order there."""
        given = _visible(output_schema(self.before, self.log.schema)).names
        _, needed = narrow_ops(self.after, self._kept_columns())
        return [name for name in given if needed is None or name in needed]

    def deciding_columns(self) -> list[str]:
        """Return the columns of the log that decide which rows are events, and what their times and keys are."""
        _, needed = narrow_ops(self.after, frozenset(self.keys))
        return self.reader("all" if needed is None else sorted(needed)).columns_read

    def data_schema(self) -> pa.Schema:
        """Return the schema of the batches that reach the keyed operator, hidden columns left out."""
        given = output_schema(self.before, self.log.schema)
        needed = pa.schema([given.field(name) for name in self.data_columns()])
        return _visible(output_schema(self.after, needed))

    def side_outputs(self) -> tuple[OutputTag, ...]:
        """Return the tags of the side outputs: of rejected rows, and of the operator."""
        rejected = self.log.on_bad_row
        return (*([rejected] if isinstance(rejected, OutputTag) else []), *self.operator.side_outputs)

    def side_output_schema(self, output_tag: OutputTag) -> pa.Schema:
        """Return the columns of a side output.

        Those of the events as they reach the key, but for a function's own; for rejected rows the reason comes last.

        Raises
        ------
        ConfigurationError
            If the job has no side output with this tag.
        """
        if not isinstance(output_tag, OutputTag):
            raise ConfigurationError(f"a side output is named by an OutputTag, not {output_tag!r}")
        if output_tag not in self.side_outputs():
            known = ", ".join(tag.tag_id for tag in self.side_outputs()) or "none"
            how = "; name it in side_outputs=[...]" if isinstance(self.operator, UserProcess) else ""
            raise ConfigurationError(
                f"no side output is named {output_tag.tag_id!r}; this job has: {known}{how}"
            )
        schema = self.data_schema()
        if output_tag in self.operator.side_outputs:
            return self.operator.side_output_schema(output_tag, schema, self.time_type())
        return schema.append(pa.field(REASON, pa.string()))

    def _kept_columns(self) -> Columns:
        """Columns of the events at the key that something reads; None: all, as a side output shows them."""
        read = self.operator.columns
        if read is None or self.side_outputs():
            return None
        # A batch without columns does not tell how many rows it has.
        return read.union(self.keys) or frozenset(self._columns_at_key()[:1])

    def _columns_at_key(self) -> list[str]:
        columns: list[str] = _visible(
            output_schema(self.after, output_schema(self.before, self.log.schema))
        ).names
        return columns

    def partitions(self, parallelism: int) -> int:
        """Return into how many partitions the operator is divided: not at all, where there is no key."""
        return min(parallelism, self.max_parallelism) if self.keys else 1


def make_plan(graph: StreamGraph, configuration: ExecutionConfig) -> ReplayPlan:
    """Turn the graph of a job into a plan, and check it against the schema of the log.

    Parameters
    ----------
    graph : StreamGraph
        Source, column steps, a watermark strategy, more column steps, key, then a window with aggregates or a
        process function. A process function can do without the strategy: then there are no watermarks. Jobs of other
        shapes are those of :func:`flinkcore.replay.plans.job_plan.make_job_plan`.
    configuration : ExecutionConfig

    Returns
    -------
    ReplayPlan

    Raises
    ------
    ConfigurationError
        If the graph has another shape; the message says what to change.
    SchemaError
        If a column is missing, or an expression does not fit the columns.
    SourceError
        If the log has no files, or their schema cannot be read.
    """
    source, before_key, keys, last = _shape(graph)
    return plan_of_log(source, before_key, keys, last, keyed_operator(last), configuration)


def plan_of_log(
    source: EventLogSource,
    before_key: tuple[Transformation, ...],
    keys: tuple[str, ...],
    last: Transformation,
    operator: KeyedOperator,
    configuration: ExecutionConfig,
) -> ReplayPlan:
    """Plan what is done with one log, on the way to an operator; errors as of :func:`make_plan`.

    Parameters
    ----------
    source : EventLogSource
    before_key : tuple of Transformation
        From the log to the key.
    keys : tuple of str
        None where the operator takes streams without keys.
    last : Transformation
        The operator in the graph.
    operator : KeyedOperator
    configuration : ExecutionConfig
    """
    before, strategy, after = _around_strategy(before_key, operator)
    refuse_reserved(source, (*before, *after), strategy)
    refuse_replaced(source, before)
    before, timestamp = _with_event_time(before, strategy, source.timestamp)
    log = EventLog.of(
        source.data,
        timestamp=timestamp,
        arrival=source.arrival,
        split=source.split,
        rate=source.rate,
        arrival_start_ms=source.arrival_start_ms,
        on_bad_row=source.on_bad_row,
        format=source.format,
        filesystem=source.filesystem,
        format_options=source.format_options,
    )
    if log.on_bad_row in operator.side_outputs:
        assert isinstance(log.on_bad_row, OutputTag)
        also = "the function's" if isinstance(operator, KeyedProcess) else "late"
        raise ConfigurationError(
            f"side output {log.on_bad_row.tag_id!r} is named for both {also} and rejected rows: take two names"
        )
    plan = ReplayPlan(
        log=log,
        before=before,
        strategy=strategy,
        after=after,
        keys=keys,
        operator=operator,
        max_parallelism=configuration.get_max_parallelism(),
        auto_watermark_interval_ms=configuration.get_auto_watermark_interval(),
        operator_uid=operator_uid(last, operator),
        watermarks_uid=watermarks_uids([step_with_uid(source, before_key)])[0],
    )
    refuse_equal_uids([plan.operator_uid, plan.watermarks_uid])
    if isinstance(operator, WindowProcess):
        plan = replace(plan, operator=operator.of_rows(plan.data_schema()))
    _check_columns(plan)
    return _narrowed(plan)


def _shape(
    graph: StreamGraph,
) -> tuple[EventLogSource, tuple[Transformation, ...], tuple[str, ...], Transformation]:
    """Take apart a job of the shape that there is: source, steps, key, last step."""
    source, *steps = graph.transformations()
    if not isinstance(source, EventLogSource):
        raise ConfigurationError(f"a replay starts from an event log, not from: {source}")
    keyed = [step for step in steps if isinstance(step, WindowTransformation | ProcessTransformation)]
    if not keyed:
        raise ConfigurationError(
            "this stream is not the result of a window or a process function: end the job with "
            ".key_by('column').window(TumblingEventTimeWindows.of(Time.hours(1))).aggregate(n=count()), or with "
            ".key_by('column').process(MyFunction(), output_type)"
        )
    *before_key, partition, last = steps[: steps.index(keyed[0]) + 1]
    if graph.result is not last:
        behind = steps[steps.index(last) + 1]
        raise ConfigurationError(
            f"a job ends with {keyed[0].call}(...), but this one goes on with: {behind}; apply that to the "
            "rows that the job gives, as to_arrow(), to_batches() or to_dataframe()"
        )
    assert isinstance(partition, PartitionTransformation)
    return source, tuple(before_key), partition.key_columns, last


def keyed_operator(step: Transformation) -> KeyedOperator:
    if isinstance(step, WindowProcessTransformation):
        return WindowProcess(step.function, step.output_type, step.tags, step.timestamp_column)
    if isinstance(step, ProcessTransformation):
        return KeyedProcess(step.function, step.output_type, step.tags, step.timestamp_column)
    assert isinstance(step, WindowTransformation)
    # Before watermarks are asked for, which would not help windows of another kind.
    require_columnar(step.assigner, step.trigger, step.evictor)
    return WindowAggregation(
        step.assigner,
        step.allowed_lateness_ms,
        step.late_tag,
        step.aggregates,
        step.trigger,
        step.output_mode,
        step.evictor,
    )


def _around_strategy(
    steps: tuple[Transformation, ...], operator: KeyedOperator
) -> tuple[tuple[ColumnOp, ...], WatermarkStrategy, tuple[ColumnOp, ...]]:
    """Return the column steps before the watermark strategy, the strategy, and those after it."""
    assigned = [step for step in steps if isinstance(step, TimestampsAndWatermarksTransformation)]
    if not assigned and not operator.needs_event_time:
        return tuple(column_op(step) for step in steps), WatermarkStrategy.no_watermarks(), ()
    if not assigned:
        raise ConfigurationError(
            "windows need event time: call assign_timestamps_and_watermarks(WatermarkStrategy."
            "for_bounded_out_of_orderness(Duration.of_seconds(4))) before key_by"
        )
    if len(assigned) > 1:
        raise ConfigurationError(
            "assign_timestamps_and_watermarks is called more than once: "
            f"{'; '.join(str(step.strategy) for step in assigned)}. Keep the one that counts"
        )
    _require_replayable(assigned[0].strategy)
    at = steps.index(assigned[0])
    before = tuple(column_op(step) for step in steps[:at])
    after = tuple(column_op(step) for step in steps[at + 1 :])
    return before, assigned[0].strategy, after


def _require_replayable(strategy: WatermarkStrategy) -> None:
    if strategy.timestamp_assigner is not None:
        raise ConfigurationError(
            f"a replay cannot call the timestamp assigner of this strategy: {strategy}. Use "
            "with_timestamp_assigner with the name of a column or a pyarrow expression"
        )
    if strategy.alignment_parameters is not None:
        _require_alignable(strategy, strategy.alignment_parameters)


def _require_alignable(strategy: WatermarkStrategy, alignment: WatermarkAlignmentParams) -> None:
    # Who is paused decides what a generator sees, and when: all would have to be called in turn, by one task.
    if strategy.generator_supplier is not None:
        raise ConfigurationError(
            "a replay cannot align splits whose generator is called event by event, as this strategy asks: "
            f"{strategy}. Leave with_watermark_alignment out, or take for_bounded_out_of_orderness or "
            "for_monotonous_timestamps"
        )
    if alignment.update_interval_ms > MAX_INTERVAL_MS:
        raise ConfigurationError(
            f"the update interval of watermark alignment must be at most 2**60 ms, it is {alignment.update_interval_ms}"
        )


def column_op(step: Transformation) -> ColumnOp:
    if isinstance(step, FilterTransformation):
        return Filter(step.predicate)
    if isinstance(step, SelectTransformation):
        return Select(step.names, step.expressions)
    if isinstance(step, WithColumnsTransformation):
        return WithColumns(step.expressions)
    raise ConfigurationError(f"a replay cannot do this step: {step}")


def _with_event_time(
    before: tuple[ColumnOp, ...], strategy: WatermarkStrategy, source_timestamp: str | Expression
) -> tuple[tuple[ColumnOp, ...], str]:
    """Return ops whose output has the event time as a column, and that column's name.

    A strategy's own column or expression is evaluated where the strategy stands, and so is a column that the log
    names, if a step has replaced it. Event time belongs to the event, as in Flink: a step that only drops the
    column does not touch it. An expression that the log names is over the log's columns.
    """
    column = strategy.timestamp_column
    if isinstance(column, str):
        return before, column
    if column is not None:
        return (*before, WithColumns(((EVENT_TIME, column),))), EVENT_TIME
    if not isinstance(source_timestamp, str):
        return (WithColumns(((EVENT_TIME, source_timestamp),)), *before), EVENT_TIME
    dropped_at = None
    for at, op in enumerate(before):
        if source_timestamp in assigned(op):
            dropped_at = None
        elif isinstance(op, Select) and source_timestamp not in op.names and dropped_at is None:
            dropped_at = at
    if dropped_at is None:
        return before, source_timestamp
    kept = WithColumns(((EVENT_TIME, pc.field(source_timestamp)),))
    return (*before[:dropped_at], kept, *before[dropped_at:]), EVENT_TIME


def _check_columns(plan: ReplayPlan) -> None:
    given = output_schema(plan.before, plan.log.schema)
    require_column(plan.log.timestamp, given, "timestamp")
    at_key = output_schema(plan.after, given)
    for key in plan.keys:
        require_column(key, _visible(at_key), "the key")
        # A result has the key as a column, of some type; a function's results have what it gives.
        untyped = isinstance(plan.operator, UserProcess) and plan.operator.takes_untyped_keys
        if not (untyped and pa.types.is_null(at_key.field(key).type)):
            require_key_type(key, at_key)
    plan.operator.check(_visible(at_key))
    if isinstance(plan.log.on_bad_row, OutputTag) and REASON in at_key.names:
        raise ConfigurationError(
            f"the side output of rejected rows has a column {REASON!r} of its own: rename the log's"
        )


def _narrowed(plan: ReplayPlan) -> ReplayPlan:
    """Leave out of the ops what nothing reads."""
    after, needed = narrow_ops(plan.after, plan._kept_columns())
    if needed is None:  # all, by name: a select would not know that the hidden event time is among them
        needed = frozenset(output_schema(plan.before, plan.log.schema).names)
    before, _ = narrow_ops(plan.before, needed | {plan.log.timestamp})
    return replace(plan, before=before, after=after)


def _visible(schema: pa.Schema) -> pa.Schema:
    return pa.schema([column for column in schema if not column.name.startswith(HIDDEN_PREFIX)])
