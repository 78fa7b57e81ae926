"""From the graph of a job to what a replay does: logs, operators that take them, and others that take results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from flinkcore._internal.arrow.column_ops import ColumnOp, Decode, Select, expression_columns, output_schema
from flinkcore._internal.arrow.expressions import Expression
from flinkcore._internal.arrow.plain_columns import decoded_type, plain_schema
from flinkcore._internal.python.user_warnings import warn_user
from flinkcore._internal.show.tables import shown_fields
from flinkcore.columnar.operator_plans.kinds import operator_of
from flinkcore.columnar.operator_plans.operator_plan import OperatorPlan
from flinkcore.columnar.operator_plans.partial_windows import PartialWindows
from flinkcore.columnar.plans.batch_mode import refuse_in_batch_mode
from flinkcore.columnar.plans.fused_stages import fused
from flinkcore.columnar.plans.kernel_columns import require_kernel_columns
from flinkcore.columnar.plans.keys import check_keys, require_alike_keys
from flinkcore.columnar.plans.log_plan import LogPlan, column_op, plan_of_log, visible
from flinkcore.columnar.plans.managed_memory import ManagedMemory
from flinkcore.columnar.plans.nested_columns import NestedColumns, with_nested_columns
from flinkcore.columnar.plans.stage_plan import StageInput, StagePlan, StageResults
from flinkcore.columnar.plans.uids import operator_uid, refuse_equal_uids, step_with_uid, watermarks_uids
from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.datastream.graph.key_columns import KeyColumns
from flinkcore.datastream.graph.pipeline_executor import NO_CHECKPOINTS, CheckpointSettings
from flinkcore.datastream.graph.transformations import (
    BroadcastTransformation,
    EventLogSource,
    FilterTransformation,
    ForwardTransformation,
    LogData,
    OneInputTransformation,
    OperatorTransformation,
    PartitionTransformation,
    SelectTransformation,
    StreamGraph,
    TimestampsAndWatermarksTransformation,
    Transformation,
    UnionTransformation,
    WithColumnsTransformation,
)
from flinkcore.errors import ConfigurationError, SchemaError
from flinkcore.time_plane.job_time import JobStreams

ColumnStep: TypeAlias = FilterTransformation | SelectTransformation | WithColumnsTransformation


@dataclass(frozen=True)
class JobPlan:
    """Plan of a replay; can be pickled and is all that a worker needs.

    Attributes
    ----------
    logs : tuple of LogPlan
        Plan of each log, up to its first operator. Splits are numbered over all of them.
    stages : tuple of StagePlan
        Plans of the operators, each after those whose results it takes; the last one's results are those of the job.
    ways : tuple of tuple of int
        Numbers of the logs that are one source, used on several ways, and are read together; each log is in one tuple.
    late_share_warning : float
        Share of late events above which a replay warns, from 0 to 1.
    managed_memory : ManagedMemory
        Memory for open state in each process.
    """

    logs: tuple[LogPlan, ...]
    stages: tuple[StagePlan, ...]
    ways: tuple[tuple[int, ...], ...]
    late_share_warning: float
    managed_memory: ManagedMemory

    @property
    def tables(self) -> list[str]:
        """Names of the tables of lakes that are logs, with the versions or snapshots that are read."""
        return list(dict.fromkeys(log.log.table_name for log in self.logs if log.log.table_name is not None))

    @property
    def is_chain(self) -> bool:
        """Return whether the first operator takes all logs, and each other one the results of a single operator."""
        return self.streams.is_chain

    @property
    def is_single(self) -> bool:
        """Return whether it has one log and one operator, which need no names."""
        return len(self.logs) == len(self.stages) == 1

    @property
    def streams(self) -> JobStreams:
        """The logs and operators that are the inputs of each operator."""
        return JobStreams(tuple(stage.streams for stage in self.stages))

    @property
    def log_facts(self) -> list[str]:
        """Return facts from files about the splits and columns of logs, a line for each."""
        return [
            f"{subject}{'' if len(self.ways) == 1 else f' of log {number}'}: {fact}"
            for number, *_ in self.ways
            for subject, fact in self.logs[number].log.facts
        ]

    def stage_of_log(self, log: int) -> int:
        """Return the number of the operator to which the rows of a log come."""
        return next(number for number, stage in enumerate(self.stages) if log in stage.logs)

    def logs_without_strategy(self, stage: int) -> list[int]:
        """Return the numbers of the logs that reach an operator, also through others, without a watermark strategy."""
        own = self.stages[stage]
        found = {log for log in own.logs if self.logs[log].lacks_strategy}
        for _, results in own.results:
            found.update(self.logs_without_strategy(results.stage))
        return sorted(found)

    @property
    def operator_uids(self) -> tuple[str, ...]:
        """By which a checkpoint names the operators."""
        return tuple(stage.uid for stage in self.stages)

    @property
    def max_parallelism(self) -> int:
        """Number of key groups of each operator."""
        return self.stages[0].max_parallelism

    @property
    def operator(self) -> OperatorPlan:
        """The last operator, whose results are those of the job."""
        return self.stages[-1].operator

    @property
    def keys(self) -> tuple[str, ...]:
        """Its keys."""
        return self.stages[-1].keys

    @property
    def calls_rows(self) -> bool:
        """Return whether a function in Python is called for rows."""
        return any(stage.operator.calls_functions for stage in self.stages)

    def partial_windows(self) -> PartialWindows | str:
        """Return how events are merged where they are read, or why they are not."""
        if len(self.stages) > 1:
            return "the job has several operators"
        (stage,) = self.stages
        if stage.clock is not None:
            return f"windows are cut by the {stage.clock}"
        return stage.operator.partial_windows(stage.data_schema(), stage.key)

    def result_schema(self) -> pa.Schema:
        """Return the columns of the results."""
        return self.stages[-1].output_schema()

    def tight_result_schema(self) -> pa.Schema:
        """Return the columns of the results, not nullable where no row can have a null."""
        return self.stages[-1].tight_output_schema()

    def side_outputs(self) -> tuple[OutputTag, ...]:
        """Return the tags of the side outputs: of rejected rows, each once, and of the operators."""
        rejected = dict.fromkeys(log.rejected_tag for log in self.logs if log.rejected_tag is not None)
        return (*rejected, *(tag for stage in self.stages for tag in stage.operator.side_outputs))

    def side_output_schema(self, output_tag: OutputTag) -> pa.Schema:
        """Return the columns of a side output.

        The columns are those of the rows that come to the operator, except a function's own; for rejected rows the
        reason is last.

        Raises
        ------
        ConfigurationError
            If the job has no side output with this tag.
        """
        if not isinstance(output_tag, OutputTag):
            raise ConfigurationError(f"a side output is named by an OutputTag, not {output_tag!r}")
        for stage in self.stages:
            if output_tag in stage.operator.side_outputs:
                return stage.side_output_schema(output_tag)
        for log in self.logs:
            if log.rejected_tag == output_tag:
                return log.rejected_schema()
        known = ", ".join(tag.tag_id for tag in self.side_outputs()) or "none"
        how = "; name it in side_outputs=[...]" if self.calls_rows else ""
        raise ConfigurationError(f"no side output is named {output_tag.tag_id!r}; this job has: {known}{how}")

    def output_schemas(self) -> dict[str | None, pa.Schema]:
        """Return the columns of the results, under None, and of each side output, under the id of its tag."""
        side_outputs = {tag.tag_id: self.side_output_schema(tag) for tag in self.side_outputs()}
        return {None: self.result_schema()} | side_outputs


def make_plan(
    graph: StreamGraph, configuration: ExecutionConfig, checkpoints: CheckpointSettings = NO_CHECKPOINTS
) -> JobPlan:
    """Turn the graph of a job into a plan, and check it against the schemas of the logs.

    Parameters
    ----------
    graph : StreamGraph
        Logs with column steps and watermark strategies, that may be united or connected; operators that take them; and
        further ones that take results of others, also along with logs, with column steps between them and after the
        last one. There may be no operator. A process function can do without a strategy: then there are no watermarks.
    configuration : ExecutionConfig
    checkpoints : CheckpointSettings
        Checkpoints of the run. With any, each operator of a compiled plan keeps a state of its own, as in Flink.

    Returns
    -------
    JobPlan

    Raises
    ------
    ConfigurationError
        If the graph has another shape; the message says what to change.
    SchemaError
        If a column is missing, an expression does not fit the columns, united streams have other columns, or connected
        ones keys of other types.
    SourceError
        If a log has no files, or their schema cannot be read.
    """
    configuration.require_max_parallelism()
    try:
        return _planned(graph, configuration, checkpoints)
    except SchemaError as error:
        doubts = [
            each.data.doubt_of_columns() for each in log_sources(graph) if isinstance(each.data, LogData)
        ]
        told = "".join(f". {doubt}" for doubt in dict.fromkeys(doubts) if doubt)
        if error.unknown is None or not told:
            raise
        raise SchemaError(f"{str(error).removesuffix('.')}{told}", unknown=error.unknown) from error


def _planned(graph: StreamGraph, configuration: ExecutionConfig, checkpoints: CheckpointSettings) -> JobPlan:
    planner = _JobPlanner(configuration)
    last, behind = _operator_at_end(graph)
    planner.stage(last)
    logs, stages = planner.named_logs(), fused(planner.stages, with_state=checkpoints != NO_CHECKPOINTS)
    stages[-1] = _followed_by(stages[-1], behind)
    _check_tags(logs, stages)
    refuse_equal_uids([*(log.watermarks_uid for log in logs), *(stage.uid for stage in stages)])
    _check_alignment(logs)
    plan = JobPlan(
        tuple(logs),
        tuple(stages),
        planner.ways,
        configuration.get_late_share_warning(),
        ManagedMemory.of(configuration),
    )
    for schema in (*(stage.result_schema() for stage in stages), *plan.output_schemas().values()):
        require_kernel_columns(schema, "a column of results")
    return plan


def _operator_at_end(graph: StreamGraph) -> tuple[OperatorTransformation, list[ColumnStep]]:
    """Return the last operator and the steps after it; a log or a union at the end gets a forwarding operator."""
    behind: list[ColumnStep] = []
    step = graph.result
    while isinstance(step, ColumnStep):
        behind.insert(0, step)
        step = step.input
    if isinstance(step, OperatorTransformation):
        return step, behind
    return ForwardTransformation(graph.result), []


def _followed_by(plan: StagePlan, behind: Sequence[ColumnStep]) -> StagePlan:
    """An operator with the steps that are done with its results."""
    if not behind:
        return plan
    ops = with_nested_columns([column_op(each) for each in behind], plain_schema(plan.result_schema()))
    followed = replace(plan, after=_over_results(ops, plan))
    given = followed.output_schema()  # refuses steps that do not fit
    if _hides_withdrawn_rows(plan, behind, given.names):
        warn_user(
            f"the job gives the results of retracting windows without {ROW_KIND}, so that withdrawn rows (-U and -D) "
            f"look like ordinary ones: select it, too, filter by it, or take delta() instead of retracting()"
        )
    return followed


def _over_results(ops: tuple[ColumnOp, ...], given_by: StagePlan) -> tuple[ColumnOp, ...]:
    """Steps over the results of an operator, which are plain columns for them."""
    is_plain = all(decoded_type(field.type) == field.type for field in given_by.result_schema())
    return ops if is_plain else (Decode(), *ops)


@dataclass
class _Branch:
    """A log or an operator that a stream comes from, and the columns that it has in the end."""

    source: int
    is_log: bool
    schema: pa.Schema
    whole: pa.Schema


class _JobPlanner:
    """Plans operators, each once, after those whose results they take.

    Parameters
    ----------
    configuration : ExecutionConfig

    Attributes
    ----------
    logs : list of LogPlan
    stages : list of StagePlan
    """

    def __init__(self, configuration: ExecutionConfig) -> None:
        self.logs: list[LogPlan] = []
        self.stages: list[StagePlan] = []
        self._configuration = configuration
        self._numbers: dict[int, int] = {}
        self._named_by: list[Transformation | None] = []
        self._ways: dict[int, list[int]] = {}

    @property
    def ways(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the logs that are read together, as of `JobPlan`."""
        return tuple(map(tuple, self._ways.values()))

    def named_logs(self) -> list[LogPlan]:
        """Return the logs, each with the uid of its time plane."""
        uids = watermarks_uids(self._named_by)
        return [
            log if log.watermarks_uid == uid else replace(log, watermarks_uid=uid)
            for log, uid in zip(self.logs, uids, strict=True)
        ]

    def stage(self, step: OperatorTransformation) -> int:
        """Plan an operator, and all that it depends on; return its number."""
        if id(step) in self._numbers:
            return self._numbers[id(step)]
        operator = operator_of(step)
        if self._configuration.is_batch():
            refuse_in_batch_mode(operator)
        planned = [self._input(each, operator) for each in step.inputs()]
        inputs = tuple(each for each, _ in planned)
        number = len(self.stages)
        for each, between in planned:
            if each.results:
                _check_results_input(number + 1, each, operator)
            # A function gets all columns, and may look at this one.
            read = each.schema.names if operator.columns is None else operator.columns
            for results, steps in zip(each.results, between, strict=True):
                if _hides_withdrawn_rows(self.stages[results.stage], steps, (*read, *each.key.names)):
                    warn_user(
                        "another operator takes the results of retracting windows, and reads withdrawn rows "
                        f"({ROW_KIND} -U and -D) as ordinary ones: take delta() instead of retracting(), or filter by "
                        f"{ROW_KIND} before it"
                    )
        if len(inputs) == 2 and inputs[1].key.names:
            require_alike_keys(
                (inputs[0].key.names, inputs[1].key.names), (inputs[0].schema, inputs[1].schema)
            )
        first = inputs[0]
        event_time = (
            self.logs[first.logs[0]].time_type()
            if first.logs
            else self.stages[first.results[0].stage].event_time
        )
        _require_instants(operator, self.logs[first.logs[0]].timestamp_type() if first.logs else event_time)
        operator = operator.bound_to([each.schema for each in inputs])
        self._configuration.require_uid(step.uid, str(step))
        uid = operator_uid(step, operator, number + 1)
        max_parallelism, emitted_at = self._configuration.get_max_parallelism(), step.settings.emitted_at
        batch_bytes = self._configuration._memory_limits.batch_bytes
        plan = StagePlan(
            inputs,
            operator,
            event_time,
            max_parallelism,
            uid,
            emitted_at,
            batch_bytes=batch_bytes,
            clock=step.settings.clock,
            flink_state=step.settings.flink_state,
            update_before=step.settings.update_before,
        )
        plan.check_emission_times()
        self.stages.append(plan)
        self._numbers[id(step)] = number
        return number

    def _input(
        self, step: Transformation, operator: OperatorPlan
    ) -> tuple[StageInput, list[tuple[Transformation, ...]]]:
        """An input of an operator; and the steps that its results of other operators take."""
        key = step.key if isinstance(step, PartitionTransformation) else KeyColumns()
        if key.nulls and not operator.takes_null_keys:
            _refuse_null_keys(key, operator)
        named = operator.named_columns.union(key.names)
        branches: list[_Branch] = []
        results: dict[int, StageResults] = {}
        between = []
        roots = _branches(_unkeyed(step), ())
        for root, steps in roots:
            if isinstance(root, EventLogSource):
                ways = self._ways.setdefault(id(root), [])
                known = self.logs[ways[0]].log if ways else None
                plan = plan_of_log(root, steps, key, operator, self._configuration, known)
                ways.append(len(self.logs))
                schema = plan.data_schema()
                whole = _whole_schema(plan, steps, named) if len(roots) > 1 else schema
                branches.append(_Branch(len(self.logs), True, schema, whole))
                self.logs.append(plan)
                named_by = step_with_uid(root, steps)
                self._configuration.require_uid(None if named_by is None else named_by.uid, str(root))
                self._named_by.append(named_by)
                continue
            for each in steps:
                _refuse_watermarks_behind_an_operator(each)
            stage = self.stage(root)
            given = self.stages[stage].result_schema()
            ops = with_nested_columns([column_op(each) for each in steps], plain_schema(given), named)
            ops = _over_results(ops, self.stages[stage])
            schema = output_schema(ops, given)
            results[len(branches)] = StageResults(stage, ops)
            branches.append(_Branch(stage, False, schema, schema))
            between.append(steps)
        names = _united(branches)
        if names is not None:
            select = Select(names)
            for number, branch in enumerate(branches):
                if branch.is_log:
                    plan = self.logs[branch.source]
                    self.logs[branch.source] = replace(plan, after=(*plan.after, select))
                else:
                    results[number] = replace(results[number], ops=(*results[number].ops, select))
        schema = branches[0].schema
        return (
            StageInput(
                key,
                schema if names is None else pa.schema([schema.field(name) for name in names]),
                tuple(branch.source for branch in branches if branch.is_log),
                tuple(results.values()),
                is_broadcast=isinstance(step, BroadcastTransformation),
            ),
            between,
        )


def _refuse_null_keys(key: KeyColumns, operator: OperatorPlan) -> None:
    (column,) = key.names
    raise ConfigurationError(
        f"{operator.function_name} does not take null as a key, as key_by({column!r}, null_keys=True) asks: functions "
        "have the keys of Flink's DataStream API, which refuses it. Leave null_keys out, and give nulls a value before "
        f"key_by, such as with_columns(key=pc.coalesce(pc.field({column!r}), ...)); or key by several columns, each of "
        "which may be null"
    )


def _check_results_input(number: int, each: StageInput, operator: OperatorPlan) -> None:
    check_keys(each.key.names, each.schema, f"the key before operator {number}")
    operator.check(each.schema)
    if operator.refuses_results is not None:
        raise ConfigurationError(operator.refuses_results)


def _refuse_watermarks_behind_an_operator(step: Transformation) -> None:
    if isinstance(step, TimestampsAndWatermarksTransformation):
        raise ConfigurationError(
            f"assign_timestamps_and_watermarks comes before the first operator, but here it follows one: {step}. "
            "Results keep their timestamps, and the watermarks go on to the next operator"
        )


def _require_instants(operator: OperatorPlan, event_time: pa.DataType) -> None:
    """Raise a SchemaError if windows of local time get timestamps without a zone, which may already be local."""
    windows = operator.local_windows
    if windows is None or not pa.types.is_timestamp(event_time) or event_time.tz is not None:
        return
    raise SchemaError(
        f"{windows.in_words}: the timestamps have no time zone, so it is not known which instants they are. If they "
        "are UTC, make them instants: schema={'ts': 'TIMESTAMP'} for files with the column ts, or a cast to "
        "pa.timestamp('ms', 'UTC'). If they are local times already, take TumblingEventTimeWindows.of(Time.days(1))"
    )


def _hides_withdrawn_rows(before: StagePlan, between: Sequence[Transformation], read: Iterable[str]) -> bool:
    """Return whether withdrawn results are read, and neither the reader nor a step before it looks at their mark."""
    if not before.operator.is_retracting or not before.update_before:
        return False
    expressions: list[Expression] = []
    for step in between:
        if isinstance(step, FilterTransformation):
            expressions.append(step.predicate)
        elif isinstance(step, SelectTransformation | WithColumnsTransformation):
            expressions += [expression for _, expression in step.expressions]
    # None if it is unknown what an expression reads.
    looks = [expression_columns(expression) for expression in expressions]
    return not any(columns is None or ROW_KIND in columns for columns in (*looks, tuple(read)))


def log_sources(graph: StreamGraph) -> list[EventLogSource]:
    """Return the source of each log of a job's plan."""
    seen: set[int] = set()

    def sources(step: Transformation) -> Iterator[EventLogSource]:
        if id(step) in seen:
            return
        seen.add(id(step))
        for each in step.inputs():
            for root, _ in _branches(_unkeyed(each), ()):
                if isinstance(root, EventLogSource):
                    yield root
                else:
                    yield from sources(root)

    return list(sources(ForwardTransformation(graph.result)))


def _unkeyed(step: Transformation) -> Transformation:
    return step.input if isinstance(step, PartitionTransformation | BroadcastTransformation) else step


def _branches(
    step: Transformation, later: tuple[Transformation, ...]
) -> list[tuple[EventLogSource | OperatorTransformation, tuple[Transformation, ...]]]:
    """The logs and operators that a stream comes from, each with the steps from it; what follows a union each has."""
    if isinstance(step, EventLogSource | OperatorTransformation):
        return [(step, later)]
    if isinstance(step, UnionTransformation):
        return [branch for united in step.united for branch in _branches(united, later)]
    if not isinstance(step, OneInputTransformation):
        raise ConfigurationError(f"a replay starts from an event log, not from: {step}")
    return _branches(step.input, (step, *later))


def _united(branches: Sequence[_Branch]) -> tuple[str, ...] | None:
    """Return the columns that all branches of a union have, in the order of the first, or None if they agree.

    Each has what the operator reads, and maybe more, which its filters read.
    """
    whole = [branch.whole for branch in branches]
    for number, other in enumerate(whole[1:], start=2):
        if {(field.name, field.type) for field in other} != {(field.name, field.type) for field in whole[0]}:
            raise SchemaError(
                f"streams of a union have the same columns, but stream 1 has ({shown_fields(whole[0])}) and stream "
                f"{number} has ({shown_fields(other)}): bring them to the same with select(...)"
            )
    given = [branch.schema.names for branch in branches]
    if all(names == given[0] for names in given):
        return None
    return tuple(name for name in whole[0].names if all(name in names for names in given))


def _whole_schema(plan: LogPlan, steps: tuple[Transformation, ...], named: frozenset[str]) -> pa.Schema:
    ops = [column_op(step) for step in steps if not isinstance(step, TimestampsAndWatermarksTransformation)]
    columns = NestedColumns(plan.log.schema, plan.log)
    columns.add(ops)
    columns.end(named)
    return visible(output_schema(columns.ops, plan.log.schema))


def _check_tags(logs: list[LogPlan], stages: list[StagePlan]) -> None:
    schemas: dict[OutputTag, pa.Schema] = {}
    for plan in logs:
        tag = plan.rejected_tag
        if tag is not None and schemas.setdefault(tag, plan.rejected_schema()) != plan.rejected_schema():
            raise ConfigurationError(
                f"side output {tag.tag_id!r} is named for the rejected rows of logs with different columns: take "
                "two names"
            )
    named = [*schemas, *(tag for stage in stages for tag in stage.operator.side_outputs)]
    for tag in named:
        if named.count(tag) > 1:
            raise ConfigurationError(
                f"side output {tag.tag_id!r} is named for two operators of the job: take two names"
            )


def _check_alignment(logs: list[LogPlan]) -> None:
    aligned = [plan.strategy.alignment_parameters for plan in logs]
    groups = Counter(each.watermark_group for each in aligned if each is not None)
    for group, count in groups.items():
        if count > 1:
            raise ConfigurationError(
                f"{count} logs are in the watermark group {group!r}, but a replay aligns the splits of one log "
                "with each other only: leave with_watermark_alignment out"
            )
