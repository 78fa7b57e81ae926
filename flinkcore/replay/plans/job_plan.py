"""From the graph of a job to what a replay does: logs, the operator that takes them, and further ones behind it."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.expressions import Expression
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.functions import KeyedBatchProcessFunction
from flinkcore.datastream.join_transformations import IntervalJoinTransformation, WindowJoinTransformation
from flinkcore.datastream.output_mode import ROW_KIND
from flinkcore.datastream.transformations import (
    EventLogSource,
    FilterTransformation,
    OneInputTransformation,
    PartitionTransformation,
    ProcessTransformation,
    SelectTransformation,
    StreamGraph,
    TimestampsAndWatermarksTransformation,
    Transformation,
    WindowTransformation,
    WithColumnsTransformation,
)
from flinkcore.datastream.two_input_transformations import (
    BroadcastTransformation,
    TwoInputTransformation,
    UnionTransformation,
)
from flinkcore.errors import ConfigurationError, SchemaError
from flinkcore.replay.plans.column_ops import ColumnOp, Select, expression_columns, output_schema
from flinkcore.replay.plans.connected_process import ConnectedProcess, require_alike_keys
from flinkcore.replay.plans.join_process import IntervalJoinProcess, WindowJoinProcess
from flinkcore.replay.plans.keyed_operator import (
    KeyedOperator,
    UserProcess,
    WindowAggregation,
    WindowProcess,
    require_column,
)
from flinkcore.replay.plans.replay_plan import (
    ReplayPlan,
    column_op,
    keyed_operator,
    make_plan,
    plan_of_log,
    require_key_type,
)
from flinkcore.replay.plans.uids import operator_uid, refuse_equal_uids, step_with_uid, watermarks_uids
from flinkcore.replay.stages.connected_inputs import ConnectedInputs
from flinkcore.replay.stages.keyed_stage import keyed_stages
from flinkcore.replay.time_plane.timeline import Timeline

OPERATORS = (WindowTransformation, ProcessTransformation, TwoInputTransformation)


@dataclass(frozen=True)
class StageInput:
    """What comes to an operator on one of its inputs.

    Attributes
    ----------
    keys : tuple of str
        Columns that make up the key; none where the rows have no key.
    schema : pyarrow.Schema
        Columns of the rows.
    logs : tuple of int
        Numbers of the logs whose rows it gets; none where they are results of the operator before.
    ops : tuple of ColumnOp
        What is done with results of the operator before.
    is_broadcast : bool
        Whether every partition gets all rows.
    """

    keys: tuple[str, ...]
    schema: pa.Schema
    logs: tuple[int, ...] = ()
    ops: tuple[ColumnOp, ...] = ()
    is_broadcast: bool = False


@dataclass(frozen=True)
class StagePlan:
    """An operator of a job, and what comes to it; an `OperatorPlan`.

    Attributes
    ----------
    inputs : tuple of StageInput
        One or two.
    operator : KeyedOperator
    event_time : pyarrow.DataType
        Of the first log.
    max_parallelism : int
    uid : str
        By which a checkpoint names the operator.
    """

    inputs: tuple[StageInput, ...]
    operator: KeyedOperator
    event_time: pa.DataType
    max_parallelism: int
    uid: str

    @property
    def keys(self) -> tuple[str, ...]:
        """Columns that make up the key, in the rows of the first input."""
        return self.inputs[0].keys

    def time_type(self) -> pa.DataType:
        """Return the Arrow type of the event time."""
        return self.event_time

    def data_schema(self) -> pa.Schema:
        """Return the schema of the batches that reach the operator: of both inputs, side by side."""
        if len(self.inputs) == 1:
            return self.inputs[0].schema
        return ConnectedInputs(self.inputs[0].schema, self.inputs[1].schema).schema

    def result_schema(self) -> pa.Schema:
        """Return the columns of the results."""
        if isinstance(self.operator, UserProcess):
            return self.operator.result_schema(self.event_time)
        none = np.empty(0, np.int64)
        return keyed_stages(self, Timeline.to_end_of_time(none, none), None, 1).schema

    def side_output_schema(self, output_tag: OutputTag) -> pa.Schema:
        """Return the columns of a side output of the operator."""
        return self.operator.side_output_schema(output_tag, self.data_schema(), self.event_time)

    def partitions(self, parallelism: int) -> int:
        """Return into how many partitions the stage is divided: not at all, where there is no key."""
        return min(parallelism, self.max_parallelism) if self.keys else 1


@dataclass(frozen=True)
class JobPlan:
    """What a replay of several logs, or with several operators, does; can be pickled and is all that a worker needs.

    Attributes
    ----------
    logs : tuple of ReplayPlan
        What is done with each log, up to the first operator. Splits are numbered over all of them.
    stages : tuple of StagePlan
        The operators: the first takes the logs, each other one the results of that before.
    """

    logs: tuple[ReplayPlan, ...]
    stages: tuple[StagePlan, ...]

    @property
    def broadcast_logs(self) -> frozenset[int]:
        """Numbers of the logs whose rows go to every partition."""
        return frozenset(
            number for each in self.stages[0].inputs if each.is_broadcast for number in each.logs
        )

    @property
    def log_plans(self) -> tuple[ReplayPlan, ...]:
        """The plans of the logs."""
        return self.logs

    @property
    def operator_uids(self) -> tuple[str, ...]:
        """By which a checkpoint names the operators."""
        return tuple(stage.uid for stage in self.stages)

    @property
    def max_parallelism(self) -> int:
        """Number of key groups of each operator."""
        return self.stages[0].max_parallelism

    @property
    def operator(self) -> KeyedOperator:
        """The last operator, whose results are those of the job."""
        return self.stages[-1].operator

    @property
    def keys(self) -> tuple[str, ...]:
        """Its keys."""
        return self.stages[-1].keys

    @property
    def calls_rows(self) -> bool:
        """Whether a function in Python is called for rows."""
        return any(isinstance(stage.operator, UserProcess) for stage in self.stages)

    def side_outputs(self) -> tuple[OutputTag, ...]:
        """Return the tags of the side outputs: of rejected rows, each once, and of the operators."""
        rejected = [log.log.on_bad_row for log in self.logs]
        tags = [tag for tag in rejected if isinstance(tag, OutputTag)]
        return (*dict.fromkeys(tags), *(tag for stage in self.stages for tag in stage.operator.side_outputs))

    def side_output_schema(self, output_tag: OutputTag) -> pa.Schema:
        """Return the columns of a side output; errors as of `ReplayPlan.side_output_schema`."""
        for stage in self.stages:
            if output_tag in stage.operator.side_outputs:
                return stage.side_output_schema(output_tag)
        for log in self.logs:
            if log.log.on_bad_row == output_tag:
                return log.side_output_schema(output_tag)
        if isinstance(output_tag, OutputTag) and self.side_outputs():
            known = ", ".join(tag.tag_id for tag in self.side_outputs())
            raise ConfigurationError(f"no side output is named {output_tag.tag_id!r}; this job has: {known}")
        return self.logs[0].side_output_schema(output_tag)


def make_job_plan(graph: StreamGraph, configuration: ExecutionConfig) -> ReplayPlan | JobPlan:
    """Turn the graph of a job into a plan, and check it against the schemas of the logs.

    Parameters
    ----------
    graph : StreamGraph
        One log, or several that are united or connected, with column steps and watermark strategies; then operators,
        one after the other, with column steps between them.
    configuration : ExecutionConfig

    Returns
    -------
    ReplayPlan or JobPlan
        The former for a single log with a single operator.

    Raises
    ------
    ConfigurationError, SchemaError, SourceError
        As :func:`flinkcore.replay.plans.replay_plan.make_plan`; and if united streams have other columns, or connected
        ones keys of other types.
    """
    steps = graph.transformations()
    is_single = not any(isinstance(step, UnionTransformation | TwoInputTransformation) for step in steps)
    if is_single and sum(isinstance(step, OPERATORS) for step in steps) < 2:
        return make_plan(graph, configuration)
    _require_operator_at_end(graph)
    first, *later = _chain(graph.result)
    logs, stage = _first_stage(first[0], configuration)
    stages = [stage]
    for number, (last, between) in enumerate(later, start=2):
        stages.append(_next_stage(number, stages[-1], last, between))
    _check_tags(logs, stages)
    refuse_equal_uids([*(log.watermarks_uid for log in logs), *(stage.uid for stage in stages)])
    _check_alignment(logs)
    return JobPlan(tuple(logs), tuple(stages))


def _require_operator_at_end(graph: StreamGraph) -> None:
    if isinstance(graph.result, OPERATORS):
        return
    if any(isinstance(step, OPERATORS) for step in graph.transformations()):
        raise ConfigurationError(
            f"a job ends with aggregate(...) or process(...), but this one goes on with: {graph.result}; apply "
            "that to the rows that the job gives, as to_arrow(), to_batches() or to_dataframe()"
        )
    raise ConfigurationError(
        "this stream is not the result of a window or a process function: end the job with "
        ".key_by('column').window(TumblingEventTimeWindows.of(Time.hours(1))).aggregate(n=count()), or with "
        "process(MyFunction(), output_type)"
    )


def _chain(last: Transformation) -> list[tuple[Transformation, tuple[Transformation, ...]]]:
    """The operators up to this one, each with the steps since the one before it."""
    chain: list[tuple[Transformation, tuple[Transformation, ...]]] = []
    step = last
    while True:
        between: tuple[Transformation, ...] = ()
        before = step
        if len(step.inputs()) == 1:
            (before,) = step.inputs()
            while isinstance(before, OneInputTransformation) and not isinstance(before, OPERATORS):
                between = (before, *between)
                before = before.input
        if before is step or not isinstance(before, OPERATORS):
            chain.append((step, ()))
            return chain[::-1]
        chain.append((step, between))
        step = before


def _first_stage(last: Transformation, configuration: ExecutionConfig) -> tuple[list[ReplayPlan], StagePlan]:
    operator = _operator(last)
    logs: list[ReplayPlan] = []
    named_by: list[Transformation | None] = []
    inputs = []
    for step in last.inputs():
        keys: tuple[str, ...] = ()
        is_broadcast = isinstance(step, BroadcastTransformation)
        if isinstance(step, PartitionTransformation):
            keys = step.key_columns
        if isinstance(step, PartitionTransformation | BroadcastTransformation):
            step = step.input
        branches = _branches(step, ())
        plans = [
            plan_of_log(source, steps, keys, last, operator, configuration) for source, steps in branches
        ]
        plans = _united(
            plans, [_whole_schema(plan, steps) for plan, (_, steps) in zip(plans, branches, strict=True)]
        )
        numbers = tuple(range(len(logs), len(logs) + len(plans)))
        inputs.append(StageInput(keys, plans[0].data_schema(), numbers, is_broadcast=is_broadcast))
        logs += plans
        named_by += [step_with_uid(source, steps) for source, steps in branches]
    if len(inputs) == 2 and inputs[1].keys:
        require_alike_keys((inputs[0].keys, inputs[1].keys), (inputs[0].schema, inputs[1].schema))
    uids = watermarks_uids(named_by)
    logs = [replace(log, watermarks_uid=uid) for log, uid in zip(logs, uids, strict=True)]
    return logs, StagePlan(
        tuple(inputs),
        logs[0].operator,
        logs[0].time_type(),
        configuration.get_max_parallelism(),
        logs[0].operator_uid,
    )


def _next_stage(
    number: int, before: StagePlan, last: Transformation, between: tuple[Transformation, ...]
) -> StagePlan:
    for stage_operator in (before.operator, _operator(last)):
        if isinstance(stage_operator, UserProcess) and isinstance(
            stage_operator.function, KeyedBatchProcessFunction
        ):
            raise ConfigurationError(
                f"{type(stage_operator.function).__qualname__} is a function over batches, which a job with several "
                "operators cannot run: make it a KeyedProcessFunction"
            )
    *steps, partition = between
    assert isinstance(partition, PartitionTransformation)
    for step in steps:
        if isinstance(step, TimestampsAndWatermarksTransformation):
            raise ConfigurationError(
                f"assign_timestamps_and_watermarks comes before the first operator, but here it follows one: {step}. "
                "Results keep their timestamps, and the watermarks go on to the next operator"
            )
    ops = tuple(column_op(step) for step in steps)
    schema = output_schema(ops, before.result_schema())
    operator = _operator(last)
    for key in partition.key_columns:
        require_column(key, schema, f"key_by before operator {number}")
        untyped = isinstance(operator, UserProcess) and operator.takes_untyped_keys
        if not (untyped and pa.types.is_null(schema.field(key).type)):
            require_key_type(key, schema)
    operator.check(schema)
    if isinstance(operator, WindowProcess):
        operator = operator.of_rows(schema)
    stage_input = StageInput(partition.key_columns, schema, ops=ops)
    _warn_of_withdrawn_rows(before.operator, steps, stage_input, operator)
    return StagePlan(
        (stage_input,),
        operator,
        before.event_time,
        before.max_parallelism,
        operator_uid(last, operator, number),
    )


def _warn_of_withdrawn_rows(
    before: KeyedOperator, between: Sequence[Transformation], stage_input: StageInput, operator: KeyedOperator
) -> None:
    """Warn where withdrawn results come to an operator, and nothing on the way or in it tells them from others."""
    if not isinstance(before, WindowAggregation) or not before.is_retracting:
        return
    expressions: list[Expression] = []
    for step in between:
        if isinstance(step, FilterTransformation):
            expressions.append(step.predicate)
        elif isinstance(step, SelectTransformation | WithColumnsTransformation):
            expressions += [expression for _, expression in step.expressions]
    # A function gets all columns, and may look at this one; None: an expression does not tell what it reads.
    read = operator.columns if operator.columns is not None else stage_input.schema.names
    looks = [expression_columns(expression) for expression in expressions]
    if any(columns is None or ROW_KIND in columns for columns in (*looks, read, stage_input.keys)):
        return
    warnings.warn(
        f"another operator takes the results of retracting windows, and reads withdrawn rows ({ROW_KIND} -U and -D) "
        f"as ordinary ones: take delta() instead of retracting(), or filter by {ROW_KIND} before it",
        UserWarning,
        stacklevel=2,
    )


def log_sources(graph: StreamGraph) -> list[EventLogSource]:
    """Return the source of each log of a job's plan."""
    first, _ = _chain(graph.result)[0]
    sources: list[EventLogSource] = []
    for step in first.inputs():
        while isinstance(step, PartitionTransformation | BroadcastTransformation):
            step = step.input
        sources += [source for source, _ in _branches(step, ())]
    return sources


def _operator(step: Transformation) -> KeyedOperator:
    if not isinstance(step, TwoInputTransformation):
        return keyed_operator(step)
    if isinstance(step, IntervalJoinTransformation):
        return IntervalJoinProcess(step.function, step.output_type, step.tags, step.timestamp_column)
    if isinstance(step, WindowJoinTransformation):
        return WindowJoinProcess(step.function, step.output_type, step.tags, step.timestamp_column)
    second = step.input2
    return ConnectedProcess(
        step.function,
        step.output_type,
        step.tags,
        step.timestamp_column,
        is_keyed=isinstance(step.input1, PartitionTransformation),
        broadcast_states=second.descriptors if isinstance(second, BroadcastTransformation) else None,
    )


def _branches(
    step: Transformation, later: tuple[Transformation, ...]
) -> list[tuple[EventLogSource, tuple[Transformation, ...]]]:
    """The logs that a stream comes from, each with the steps from it; what follows a union is done to each."""
    if isinstance(step, EventLogSource):
        return [(step, later)]
    if isinstance(step, UnionTransformation):
        return [branch for united in step.united for branch in _branches(united, later)]
    if isinstance(step, OPERATORS):
        raise ConfigurationError(
            f"streams are united and connected before their first operator, but one is the result of: {step}"
        )
    assert isinstance(step, OneInputTransformation)
    return _branches(step.input, (step, *later))


def _united(plans: list[ReplayPlan], whole: list[pa.Schema]) -> list[ReplayPlan]:
    """Plans that give the same columns in the order of the first.

    Parameters
    ----------
    plans
        Of the branches of a union; each gives what the operator reads, and maybe more, which its filters read.
    whole
        All columns of the branches.
    """
    for number, other in enumerate(whole[1:], start=2):
        if {(field.name, field.type) for field in other} != {(field.name, field.type) for field in whole[0]}:
            raise SchemaError(
                f"streams of a union have the same columns, but stream 1 has ({_shown(whole[0])}) and stream "
                f"{number} has ({_shown(other)}): bring them to the same with select(...)"
            )
    given = [plan.data_schema().names for plan in plans]
    if all(names == given[0] for names in given):
        return plans
    common = tuple(name for name in whole[0].names if all(name in names for names in given))
    return [replace(plan, after=(*plan.after, Select(common))) for plan in plans]


def _whole_schema(plan: ReplayPlan, steps: tuple[Transformation, ...]) -> pa.Schema:
    ops = [column_op(step) for step in steps if not isinstance(step, TimestampsAndWatermarksTransformation)]
    return output_schema(ops, plan.log.schema)


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)


def _check_tags(logs: list[ReplayPlan], stages: list[StagePlan]) -> None:
    schemas: dict[OutputTag, pa.Schema] = {}
    for plan in logs:
        tag = plan.log.on_bad_row
        if isinstance(tag, OutputTag):
            schema = plan.side_output_schema(tag)
            if schemas.setdefault(tag, schema) != schema:
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


def _check_alignment(logs: list[ReplayPlan]) -> None:
    aligned = [plan.strategy.alignment_parameters for plan in logs]
    groups = Counter(each.watermark_group for each in aligned if each is not None)
    for group, count in groups.items():
        if count > 1:
            raise ConfigurationError(
                f"{count} logs are in the watermark group {group!r}, but a replay aligns the splits of one log "
                "with each other only: leave with_watermark_alignment out"
            )
