"""Plans of logs: their time, and the steps of their events before the first operator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, TypeGuard

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.column_ops import (
    COMPUTED_PREFIX,
    HIDDEN_PREFIX,
    ColumnOp,
    Columns,
    Filter,
    Select,
    WithColumns,
    expression_columns,
    narrow_ops,
    output_schema,
)
from flinkcore._internal.arrow.column_values import MOST_DEPTH, depth_of
from flinkcore._internal.arrow.expressions import Expression, TimeRequirement, is_expression, same_expression
from flinkcore._internal.values.memory_limits import HELD_BYTES, KEPT_BYTES, OPEN_CHUNKS, PACKED_BYTES
from flinkcore._native.time_summary import MAX_INTERVAL_MS
from flinkcore.columnar.operator_plans.operator_plan import OperatorPlan, require_column
from flinkcore.columnar.plans.batch_mode import refuse_alignment_in_batch_mode
from flinkcore.columnar.plans.kernel_columns import require_kernel_columns
from flinkcore.columnar.plans.keys import check_keys
from flinkcore.columnar.plans.nested_columns import NestedColumns
from flinkcore.columnar.plans.uids import step_with_uid, watermarks_uids
from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.watermark_strategy import WatermarkAlignmentParams, WatermarkStrategy
from flinkcore.datastream.graph.key_columns import KeyColumns
from flinkcore.datastream.graph.transformations import (
    EventLogSource,
    FilterTransformation,
    SelectTransformation,
    TimestampsAndWatermarksTransformation,
    Transformation,
    WithColumnsTransformation,
)
from flinkcore.datastream.timestamps.assigner_adapters import over_columns
from flinkcore.errors import ConfigurationError
from flinkcore.log.event_log import EventLog
from flinkcore.log.event_reader import RECORD_TYPE, EventReader
from flinkcore.time_plane.record_blocks import RecordLimits
from flinkcore.time_plane.timed_log import TimedLog

EVENT_TIME: Final = f"{HIDDEN_PREFIX}event_time"
"""Hidden column with the event time, where that is not simply a column of the log."""

REASON: Final = "reason"
"""Column of the rejected rows' side output with the reason."""

RECORD: Final = "record"
"""Column of the rejected rows' side output with the place of the row, and the text of a record."""


@dataclass(frozen=True)
class LogPlan(TimedLog):
    """Plan of a log up to its first operator; can be pickled and is all that a worker needs.

    Attributes
    ----------
    after : tuple of ColumnOp
        Between the strategy and the key; `before` and `after` compute only what the rest of the job reads.
    key : KeyColumns
        No columns if the operator takes streams without keys.
    read : frozenset of str or None
        Columns of the events that are read after the key, or None for all, as a function or a side output needs them.
    max_parallelism : int
        Number of key groups.
    watermarks_uid : str
        By which a checkpoint names the time plane.
    orders_ties : bool
        Whether events that arrive together in a split are put in order where they have no positions.
    lacks_strategy : bool
        Whether nobody has given a watermark strategy, so that the only watermark is the one at the end of the log.
    open_chunks, held_bytes : int
        Number of chunks that one process reads at once, and bytes of events that wait in its memory for earlier ones,
        at most; results do not depend on them.
    packed_bytes, kept_bytes : int
        Bytes of small files that one process reads together, and of their rows that it keeps from one pass to the
        other, at most; results do not depend on them.
    """

    after: tuple[ColumnOp, ...]
    key: KeyColumns
    read: Columns
    max_parallelism: int
    watermarks_uid: str
    orders_ties: bool = True
    lacks_strategy: bool = False
    open_chunks: int = OPEN_CHUNKS
    held_bytes: int = HELD_BYTES
    packed_bytes: int = PACKED_BYTES
    kept_bytes: int = KEPT_BYTES

    @property
    def rejected_tag(self) -> OutputTag | None:
        """The side output of rejected rows, or None."""
        return self.log.on_bad_row if isinstance(self.log.on_bad_row, OutputTag) else None

    @property
    def takes_all_events(self) -> bool:
        """Return whether all events that move the watermark reach the key, and none is rejected there."""
        return self.key.never_null is None and not any(isinstance(op, Filter) for op in self.after)

    def data_columns(self) -> list[str]:
        """Return the columns that the data plane needs of what `before` gives, in their order there."""
        given = visible(output_schema(self.before, self.log.schema)).names
        _, needed = narrow_ops(self.after, self._kept_columns())
        return [name for name in given if needed is None or name in needed]

    def data_reader(self) -> EventReader:
        """Return the reader of the data plane."""
        return self.reader(self.data_columns(), is_placed=self.orders_ties)

    def columns_of_both_passes(self) -> list[str]:
        """Return the columns of the log that the first and the second pass read."""
        readers = self.reader(None, is_placed=False), self.data_reader()
        return [name for reader in readers for name in reader.columns_read]

    def content_columns(self) -> list[str]:
        """Return the columns of the log that the job reads."""
        return EventReader(self.log, self.before, self.data_columns(), self.timestamp_range).columns_read

    def data_schema(self) -> pa.Schema:
        """Return the schema of the batches that reach the operator, hidden columns left out."""
        given = output_schema(self.before, self.log.schema)
        needed = pa.schema([given.field(name) for name in self.data_columns()])
        return visible(output_schema(self.after, needed))

    def rejected_schema(self) -> pa.Schema:
        """Return the columns of rejected rows: those of the events as they reach the key, `REASON` and `RECORD`."""
        return pa.schema([*self.data_schema(), pa.field(REASON, pa.string()), pa.field(RECORD, RECORD_TYPE)])

    def whole_schema(self) -> pa.Schema:
        """Return the schema of the batches that reach the operator; before `narrowed`, with what nothing reads."""
        return visible(output_schema(self.after, output_schema(self.before, self.log.schema)))

    def _kept_columns(self) -> Columns:
        if self.read is None:
            return None
        # A batch without columns has no number of rows; the timestamp is read anyway.
        names = self.whole_schema().names
        timestamp = self.log.timestamp
        return self.read.union(self.key.names) or frozenset([timestamp] if timestamp in names else names[:1])

    def narrowed(self) -> LogPlan:
        """Return the plan without what nothing reads."""
        after, needed = narrow_ops(self.after, self._kept_columns())
        if needed is None:  # all, by name: a select would not know that the hidden event time is among them
            needed = frozenset(output_schema(self.before, self.log.schema).names)
        before, _ = narrow_ops(self.before, needed | {self.log.timestamp})
        return replace(self, before=before, after=after)


def plan_of_log(
    source: EventLogSource,
    before_key: tuple[Transformation, ...],
    key: KeyColumns,
    operator: OperatorPlan,
    configuration: ExecutionConfig,
    known: EventLog | None = None,
) -> LogPlan:
    """Plan what is done with one log, on the way to an operator.

    Parameters
    ----------
    source : EventLogSource
    before_key : tuple of Transformation
        From the log to the key.
    key : KeyColumns
    operator : OperatorPlan
    configuration : ExecutionConfig
    known : EventLog, optional
        The same log as another of its ways has it: its files are not looked for again.

    Raises
    ------
    ConfigurationError
        If the steps are not those of a replay; the message says what to change.
    SchemaError
        If a column is missing, or an expression does not fit the columns.
    SourceError
        If the log has no files, or their schema cannot be read.
    """
    before, strategy, after = _around_strategy(before_key, operator)
    lacks_strategy = not configuration.is_batch() and not any(map(_is_strategy, before_key))
    if configuration.is_batch():
        refuse_alignment_in_batch_mode(strategy)
        # The only watermark is the one at the end of the log.
        none = WatermarkStrategy.no_watermarks()
        strategy = replace(
            strategy,
            out_of_orderness_ms=none.out_of_orderness_ms,
            generator_supplier=none.generator_supplier,
        )
    _refuse_reserved(source, (*before, *after), strategy)
    _refuse_replaced(source, before)
    if known is None:
        known = EventLog.of(
            source.data,
            source.log,
            format=source.format,
            filesystem=source.filesystem,
            format_options=source.format_options,
            schema=source.schema,
            decode=source.decode,
        )
    named = source.log.timestamp
    if named is None:
        assert known.shape is not None, "a log without a timestamp is refused"
        named = known.shape.timestamp
    before, timestamp = _with_event_time(before, strategy, named)
    unit = source.log.timestamp_unit if _takes_times_of(source, strategy) else None
    log = replace(known, timestamp=timestamp, timestamp_unit=unit)
    shows_rows = isinstance(log.on_bad_row, OutputTag) or bool(operator.side_outputs)
    read = None if shows_rows else operator.columns
    log, before, after = _with_nested_columns(log, before, after, key, operator, shows_rows)
    rejected = log.on_bad_row if isinstance(log.on_bad_row, OutputTag) else None
    if rejected is not None and rejected in operator.side_outputs:
        also = "late" if rejected in operator.late_tags else "the function's"
        raise ConfigurationError(
            f"side output {rejected.tag_id!r} is named for both {also} and rejected rows: take two names"
        )
    limits = configuration._memory_limits
    plan = LogPlan(
        log=log,
        before=before,
        strategy=strategy,
        auto_watermark_interval_ms=configuration.get_auto_watermark_interval(),
        timestamp_range=operator.timestamp_range,
        batch_rows=limits.batch_rows,
        batch_bytes=limits.batch_bytes,
        record_limits=RecordLimits.of(limits.record_bytes),
        after=after,
        key=key,
        read=read,
        max_parallelism=configuration.get_max_parallelism(),
        watermarks_uid=watermarks_uids([step_with_uid(source, before_key)])[0],
        lacks_strategy=lacks_strategy,
        open_chunks=limits.open_chunks,
        held_bytes=limits.held_bytes,
        packed_bytes=limits.packed_bytes,
        kept_bytes=limits.kept_bytes,
    )
    _check_columns(plan, operator)
    return plan.narrowed()


def _with_nested_columns(
    log: EventLog,
    before: tuple[ColumnOp, ...],
    after: tuple[ColumnOp, ...],
    key: KeyColumns,
    operator: OperatorPlan,
    shows_rows: bool,
) -> tuple[EventLog, tuple[ColumnOp, ...], tuple[ColumnOp, ...]]:
    """Return the log and the ops with columns for the nested fields that the job names."""
    columns = NestedColumns(log.schema, log)
    columns.add(before)
    columns.use([log.timestamp])
    n_before = len(columns.ops)
    columns.add(after)
    named = operator.named_columns.union(key.names)
    if shows_rows or operator.columns is None:
        columns.end(named)
    else:
        columns.use(named)
    ops = tuple(columns.ops)
    return log.with_fields(columns.fields), ops[:n_before], ops[n_before:]


def _is_strategy(step: Transformation) -> TypeGuard[TimestampsAndWatermarksTransformation]:
    return isinstance(step, TimestampsAndWatermarksTransformation)


def _around_strategy(
    steps: tuple[Transformation, ...], operator: OperatorPlan
) -> tuple[tuple[ColumnOp, ...], WatermarkStrategy, tuple[ColumnOp, ...]]:
    """Return the column steps before the watermark strategy, the strategy, and those after it."""
    assigned = [step for step in steps if _is_strategy(step)]
    if not assigned and not operator.needs_event_time:
        ops = tuple(map(column_op, steps))
        at = next((at for at, op in enumerate(ops) if _requires_time(op)), len(ops))
        return ops[:at], WatermarkStrategy.no_watermarks(), ops[at:]
    if not assigned:
        who = f"{operator.function_name} needs" if operator.windows is None else "windows need"
        raise ConfigurationError(
            f"{who} event time: call assign_timestamps_and_watermarks(WatermarkStrategy."
            "for_bounded_out_of_orderness(Duration.of_seconds(4))) before key_by"
        )
    if len(assigned) > 1:
        raise ConfigurationError(
            "assign_timestamps_and_watermarks is called more than once: "
            f"{'; '.join(str(step.strategy) for step in assigned)}. Keep the one that counts"
        )
    strategy = over_columns(assigned[0].strategy)
    _require_replayable(strategy)
    at = steps.index(assigned[0])
    before = tuple(column_op(step) for step in steps[:at])
    after = tuple(column_op(step) for step in steps[at + 1 :])
    return before, strategy, after


def _requires_time(op: ColumnOp) -> bool:
    return isinstance(op, Filter) and isinstance(op.predicate, TimeRequirement)


def _require_replayable(strategy: WatermarkStrategy) -> None:
    if strategy.timestamp_assigner is not None:
        raise ConfigurationError(
            f"a replay cannot call the timestamp assigner of this strategy: {strategy}. Use "
            "with_timestamp_assigner with the name of a column or a pyarrow expression"
        )
    if strategy.alignment_parameters is not None:
        _require_alignable(strategy, strategy.alignment_parameters)


def _require_alignable(strategy: WatermarkStrategy, alignment: WatermarkAlignmentParams) -> None:
    # Pauses determine what a generator sees, and when: one task would have to call all generators in turn.
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
        if source_timestamp in _assigned(op):
            dropped_at = None
        elif isinstance(op, Select) and source_timestamp not in op.names and dropped_at is None:
            dropped_at = at
    if dropped_at is None:
        return before, source_timestamp
    kept = WithColumns(((EVENT_TIME, pc.field(source_timestamp)),))
    return (*before[:dropped_at], kept, *before[dropped_at:]), EVENT_TIME


def _takes_times_of(source: EventLogSource, strategy: WatermarkStrategy) -> bool:
    """Return whether a strategy has the event time that the log names, and not another one."""
    column, named = strategy.timestamp_column, source.log.timestamp
    if column is None or isinstance(column, str) or isinstance(named, str):
        return column is None or (isinstance(column, str) and isinstance(named, str) and column == named)
    return same_expression(column, named)


def _check_columns(plan: LogPlan, operator: OperatorPlan) -> None:
    given = output_schema(plan.before, plan.log.schema)
    if plan.log.timestamp not in given.names:
        plan.log.require(plan.log.timestamp, "timestamp=")  # it knows what may be wrong with a CSV file
    require_column(plan.log.timestamp, given, "timestamp")
    at_key = plan.whole_schema()
    needed = at_key.names if plan.read is None else plan.read.union(plan.key.names)
    require_kernel_columns([field for field in at_key if field.name in needed], "a column that the job reads")
    at_key = pa.schema(
        [field for field in at_key if field.name in needed or depth_of(field.type) <= MOST_DEPTH]
    )
    check_keys(plan.key.names, at_key, "the key")
    operator.check(at_key)
    for name in (REASON, RECORD) if isinstance(plan.log.on_bad_row, OutputTag) else ():
        if name in at_key.names:
            raise ConfigurationError(
                f"the side output of rejected rows has a column {name!r} of its own: rename the log's"
            )


def _assigned(op: ColumnOp) -> tuple[str, ...]:
    """Return the columns that an op computes."""
    return tuple(name for name, _ in op.expressions) if isinstance(op, Select | WithColumns) else ()


def _refuse_replaced(source: EventLogSource, before: tuple[ColumnOp, ...]) -> None:
    """Arrivals and splits are those of the recorded log; a step that seems to change them would do nothing."""
    for name in [name for op in before for name in _assigned(op)]:
        if name in _columns_given(source.log.arrival):
            raise ConfigurationError(
                f"column {name!r} is computed after the arrivals have been read from it: give "
                "from_event_log(..., arrival=expression) to convert them, or another name to the computed column"
            )
        if is_expression(source.log.timestamp) and name in _columns_given(source.log.timestamp):
            raise ConfigurationError(
                f"column {name!r} is computed after from_event_log(timestamp={source.log.timestamp}) has read it: put "
                "all of the computation into one of the two, or give another name to the computed column"
            )
        if name in [key.column for key in source.log.ordered_by]:
            raise ConfigurationError(
                f"column {name!r} is computed after position=, which orders the rows as they were recorded: give the "
                "computed column another name"
            )
        if isinstance(source.log.split, str) and name == source.log.split:
            raise ConfigurationError(
                f"column {name!r} is computed after the splits have been read from it, which are those of the "
                "recorded log: give the computed column another name, or write it into the log first"
            )


def _columns_given(setting: object) -> frozenset[str]:
    """Columns that a setting names, or whose expression reads them."""
    if isinstance(setting, str):
        return frozenset([setting])
    return (expression_columns(setting) if is_expression(setting) else None) or frozenset()


def _refuse_reserved(source: EventLogSource, ops: tuple[ColumnOp, ...], strategy: WatermarkStrategy) -> None:
    """Refuse names that hidden columns have."""
    used = [name for op in ops for name in (*_assigned(op), *(op.required_columns or ()))]
    for given in (source.log.timestamp, source.log.arrival, source.log.split, strategy.timestamp_column):
        used += _columns_given(given)
    used += [key.column for key in source.log.ordered_by]
    for name in used:
        if name.startswith(HIDDEN_PREFIX) and not name.startswith(COMPUTED_PREFIX):
            raise ConfigurationError(
                f"column {name!r}: names that begin with {HIDDEN_PREFIX!r} are reserved; rename the column"
            )


def visible(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a schema that users know of."""
    return pa.schema([column for column in schema if not column.name.startswith(HIDDEN_PREFIX)])
