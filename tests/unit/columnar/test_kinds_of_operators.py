"""Kinds of operators: each has a step and a stage, and a new one needs no change elsewhere."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flinkcore._internal.arrow.arrays import RowNumbers
from flinkcore.checkpoint import OperatorSnapshot
from flinkcore.columnar.operator_plans import kinds
from flinkcore.columnar.operator_plans.operator_plan import OperatorPlan, OperatorTables
from flinkcore.columnar.operator_plans.ranked_join import RankedJoin
from flinkcore.columnar.stages import kinds as stage_kinds
from flinkcore.columnar.stages.stage import Stage, StageContext
from flinkcore.columnar.stages.stage_output import StageOutput
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.datastream import LogStream, StreamExecutionEnvironment
from flinkcore.datastream.graph.transformations import (
    FunctionTransformation,
    OneInputTransformation,
    OperatorTransformation,
)
from flinkcore.errors import ConfigurationError
from flinkcore.time_plane.total_order import Events


def test_each_kind_of_operator_has_a_stage() -> None:
    # A ranked join is no step of a program: the planner makes it of a join and a rank.
    assert {*kinds.KINDS.values(), RankedJoin} == set(stage_kinds.STAGES)
    assert all(issubclass(resolve_name(name), Stage) for name in stage_kinds.STAGES.values())


def test_a_job_imports_only_the_stages_of_its_operators() -> None:
    code = (
        "import sys, flinkcore.columnar.local.embedded_replay\n"
        "print(*(name for name in sys.modules if name.endswith('_stage')))"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "\n"
    )


def test_each_step_that_an_operator_does_has_a_kind() -> None:
    def below(step: type[OperatorTransformation]) -> Iterator[type[OperatorTransformation]]:
        for each in step.__subclasses__():
            yield each
            yield from below(each)

    own = {each for each in below(OperatorTransformation) if each.__module__.startswith("flinkcore.")}
    assert own - {FunctionTransformation} == set(kinds.KINDS)


class NumberTransformation(OperatorTransformation, OneInputTransformation):
    """Numbers the rows of each key."""

    def __str__(self) -> str:
        return "number the rows of each key"


@dataclass(frozen=True)
class Numbering(OperatorPlan):
    """Numbers the rows of each key, from 1 on."""

    @classmethod
    def of(cls, step: NumberTransformation) -> Numbering:
        return cls()

    @property
    def function_name(self) -> str:
        return "numbering"

    @property
    def columns(self) -> frozenset[str]:
        return frozenset({"value"})

    @property
    def order_dependence(self) -> str | None:
        return "numbers of rows"

    def check(self, events: pa.Schema) -> None:
        if "value" not in events.names:
            raise ConfigurationError("numbering shows the column 'value', and there is none")

    def result_schema(
        self, inputs: Sequence[pa.Schema], keys: Sequence[str], time_type: pa.DataType
    ) -> pa.Schema:
        (events,) = inputs
        return events.append(pa.field("number", pa.int64()))

    @property
    def tables(self) -> OperatorTables:
        return OperatorTables()

    def describe(self, inputs: Sequence[pa.Schema]) -> dict[str, str]:
        return {"operator": "numbering"}


class NumberingStage(Stage[Events]):
    """Numbers the rows of each key of a partition."""

    def __init__(self, context: StageContext, operator: Numbering, partition: int) -> None:
        (self._key,) = context.plan.keys
        self._schema = context.plan.result_schema()
        self._numbers: Counter[Any] = Counter()
        self.current = MIN_TIMESTAMP

    def process(self, prepared: Events, rows: RowNumbers | None) -> Iterator[StageOutput]:
        batch = prepared.batch if rows is None else prepared.batch.take(pa.array(rows))
        numbers = []
        for key in batch.column(self._key).to_pylist():
            self._numbers[key] += 1
            numbers.append(self._numbers[key])
        columns = [*batch.columns, pa.array(numbers, pa.int64())]
        yield StageOutput(None, [pa.RecordBatch.from_arrays(columns, schema=self._schema)])

    def finish(self) -> Iterator[StageOutput]:
        self.current = MAX_TIMESTAMP
        return iter(())

    def stop(self) -> Iterator[StageOutput]:
        return iter(())

    def snapshot(self) -> OperatorSnapshot:
        return OperatorSnapshot(watermark_ms=self.current)

    def counts(self) -> dict[str, int]:
        n_rows = self._numbers.total()
        return {"processed": n_rows, "results": n_rows}

    @property
    def current_watermark(self) -> int:
        return self.current


@pytest.fixture
def numbered(monkeypatch: pytest.MonkeyPatch) -> LogStream:
    """The rows of a log, numbered by an operator that only the two tables know."""
    monkeypatch.setattr(kinds, "KINDS", {**kinds.KINDS, NumberTransformation: Numbering})
    monkeypatch.setattr(
        stage_kinds, "STAGES", {**stage_kinds.STAGES, Numbering: f"{__name__}:NumberingStage"}
    )
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    rows = pa.table(
        {"ts": range(6), "user": ["a", "b", "a", "a", "c", "b"], "value": range(6), "unread": range(6)}
    )
    log = env.from_event_log(rows, timestamp="ts").key_by("user")
    return log._then(NumberTransformation(log._input()))


def test_a_kind_of_operator_that_two_tables_name_runs(numbered: LogStream) -> None:
    result = numbered.filter(pc.field("number") > 1).execute()
    rows = sorted(
        result.to_arrow().select(["user", "value", "number"]).to_pylist(), key=lambda row: row["value"]
    )
    assert [tuple(row.values()) for row in rows] == [("a", 2, 2), ("a", 3, 3), ("b", 5, 2)]
    assert result.to_arrow().column_names == ["user", "value", "number"]


def test_a_report_counts_the_rows_of_a_new_kind_of_operator(numbered: LogStream) -> None:
    result = numbered.execute()
    result.to_arrow()
    assert (result.report.events_read, result.report.processed, result.report.results) == (6, 6, 6)
    assert "6 processed" in str(result.report)


def test_a_new_kind_of_operator_is_explained(numbered: LogStream) -> None:
    assert "number the rows of each key" in numbered.explain()


def test_a_checkpoint_of_a_new_kind_of_operator_is_not_for_another_kind(
    numbered: LogStream, tmp_path: Path
) -> None:
    assert numbered.execute(stop_with_checkpoint=tmp_path).to_arrow().num_rows == 6
    assert numbered.execute(restore_from=tmp_path).to_arrow().num_rows == 6
    (keyed,) = numbered._transformation.inputs()
    forwarded = LogStream(numbered.get_execution_environment(), keyed)
    with pytest.raises(ConfigurationError, match="operator: numbering then, none now"):
        forwarded.execute(restore_from=tmp_path)


def test_why_refuses_a_kind_of_operator_that_it_cannot_run(numbered: LogStream) -> None:
    with pytest.raises(ConfigurationError, match="numbering takes the rows of many keys at once: why"):
        numbered.why("a")
