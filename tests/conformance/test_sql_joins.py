"""Joins over columns give the rows of Flink SQL's joins, at the step of the log at which Flink gives them.

The join is called as the node of Flink's compiled plan says; scan and projection around it are done here row by row.
"""

from __future__ import annotations

import json
import operator
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import flinkcore as fc
from flinkcore.common import Time, Watermark, WatermarkGenerator
from flinkcore.datastream import KeyedLogStream, LogStream
from flinkcore.datastream.window import (
    CumulativeEventTimeWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from flinkcore.errors import ConfigurationError

SQL = Path(__file__).parents[1] / "golden" / "sql"
END = 2**63 - 1
EPOCH = datetime(1970, 1, 1)

Scenario = dict[str, Any]
Row = list[Any]

TYPES = {"VARCHAR": pa.string(), "BIGINT": pa.int64(), "INT": pa.int32(), "DOUBLE": pa.float64()}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
    "=": operator.eq,
    "<>": operator.ne,
}


def scenarios(kind: str) -> list[Any]:
    """Return the scenarios of a kind whose plan has no aggregation besides the join."""
    lines = (SQL / f"{kind}.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines if "aggregate_1" not in line]
    assert len(found) > 30
    return [pytest.param(scenario, id=scenario["name"]) for scenario in found]


def milliseconds(text: str) -> int:
    since = datetime.fromisoformat(text.removesuffix("Z")) - EPOCH
    return since.days * 86_400_000 + since.seconds * 1000 + since.microseconds // 1000


def value(text: Any, sql_type: str) -> Any:
    return milliseconds(text) if sql_type.startswith("TIMESTAMP") and text is not None else text


def arrow_type(sql_type: str) -> pa.DataType:
    if sql_type.startswith("TIMESTAMP"):
        return pa.int64()
    return pa.string() if sql_type.startswith("DECIMAL") else TYPES[sql_type]


class RowtimeWatermarks(WatermarkGenerator):
    """Emits a watermark after each row that raises it, as Flink SQL's watermark assigner; none that is not above 0."""

    def __init__(self, delay_ms: int) -> None:
        self.delay_ms, self.last_ms = delay_ms, 0

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        if event_timestamp - self.delay_ms > self.last_ms:
            self.last_ms = event_timestamp - self.delay_ms
            output.emit_watermark(Watermark(self.last_ms))

    def on_periodic_emit(self, output: Any) -> None:
        pass


class Plan:
    """The one join of a scenario's plan.

    Parameters
    ----------
    scenario : dict
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.nodes = {node["id"]: node for node in scenario["plan"]["nodes"]}
        (self.join,) = [node for node in self.nodes.values() if "-join_" in node["type"]]

    def sources(self, node: dict[str, Any]) -> list[dict[str, Any]]:
        edges = self.scenario["plan"]["edges"]
        return [self.nodes[edge["source"]] for edge in edges if edge["target"] == node["id"]]

    def path(self, side: int) -> list[dict[str, Any]]:
        """Return the nodes from a scan up to the join."""
        nodes = [self.sources(self.join)[side]]
        while below := self.sources(nodes[0]):
            nodes.insert(0, below[0])
        return nodes

    def after(self) -> list[dict[str, Any]]:
        """Return the nodes from the join to the sink."""
        nodes, node = [], self.join
        edges = {edge["source"]: edge["target"] for edge in self.scenario["plan"]["edges"]}
        while node["id"] in edges:
            node = self.nodes[edges[node["id"]]]
            nodes.append(node)
        return nodes

    @property
    def spec(self) -> dict[str, Any]:
        found: dict[str, Any] = self.join.get("joinSpec") or self.join["intervalJoinSpec"]["joinSpec"]
        return found


def interval_ms(text: str) -> int:
    """Return the milliseconds of `INTERVAL '5' SECOND` in a watermark's expression."""
    parts = text.split("'")
    return round(float(parts[1]) * 1000) if len(parts) > 1 else 0


def evaluated(rex: dict[str, Any], row: Row) -> Any:
    """Return the value of an expression of a plan for a row."""
    if rex["kind"] == "INPUT_REF":
        return row[rex["inputIndex"]]
    if rex["kind"] == "LITERAL":
        return rex["value"]
    name = rex["internalName"].split("$")[1]
    operands = [evaluated(each, row) for each in rex["operands"]]
    if name == "CAST":
        return operands[0]
    if name == "COALESCE":
        return next((each for each in operands if each is not None), None)
    if name == "IS NOT NULL":
        return operands[0] is not None
    if None in operands:
        return None
    return COMPARISONS[name](*operands)


def condition(rex: dict[str, Any] | None, names: list[str]) -> Any:
    """Return a condition of a plan as an expression of Arrow, or None."""
    if rex is None:
        return None
    if rex["kind"] == "INPUT_REF":
        return pc.field(names[rex["inputIndex"]])
    if rex["kind"] == "LITERAL":
        return pc.scalar(rex["value"])
    name = rex["internalName"].split("$")[1]
    operands = [condition(each, names) for each in rex["operands"]]
    if name in ("AND", "OR"):
        return reduce(operator.and_ if name == "AND" else operator.or_, operands)
    if name == "IS NULL":
        return operands[0].is_null()
    if name == "IS NOT NULL":
        return operands[0].is_valid()
    return COMPARISONS[name](*operands)


class Input:
    """One input of the join: the rows of a table, with the columns that the plan passes on."""

    def __init__(self, plan: Plan, side: int) -> None:
        self.nodes = plan.path(side)
        scan = self.nodes[0]["scanTableSource"]
        name = scan["table"]["identifier"].split("`")[-2]
        table = plan.scenario["tables"][name]
        self.keys = plan.spec["leftKeys" if side == 0 else "rightKeys"]
        self.delay_ms = interval_ms(table["watermark"])
        self.time = next(n for n, each in enumerate(table["columns"]) if each[0] == "ts")
        self.types = [sql_type for _, sql_type in table["columns"]]
        arrivals = [n for n, each in enumerate(plan.scenario["arrival"]) if each == name]
        self.rows = [
            (arrival, [value(each, sql_type) for each, sql_type in zip(row, self.types, strict=True)])
            for arrival, row in zip(arrivals, table["rows"], strict=False)
        ]
        self.places: list[int] = list(range(len(self.types)))
        self.window: WindowAssigner[Any, Any] | None = None
        self.condition: Any = None
        self.latest_only = False
        for ability in scan.get("abilities", []):
            if ability["type"] == "ProjectPushDown":
                self.places = [place for (place,) in ability["projectedFields"]]
        for node in self.nodes[1:]:
            kind = node["type"].removeprefix("stream-exec-")
            if kind.startswith("calc"):
                self.condition = node["condition"]
                self.filtered = list(self.places)
                # Window columns follow the others; the join adds its own.
                self.places = [self._place(each) for each in node["projection"]]
            elif kind.startswith("window-table-function"):
                self.window = window_of(node["windowing"]["window"])
                self.places += [-1, -2, -3]
            elif kind.startswith("deduplicate"):
                assert node["keepLastRow"]
                self.latest_only = True
            else:
                assert kind.startswith(("watermark-assigner", "exchange")), kind

    def _place(self, rex: dict[str, Any]) -> int:
        assert rex["kind"] == "INPUT_REF", rex
        return self.places[rex["inputIndex"]]

    @property
    def column_places(self) -> list[int]:
        """Numbers of the columns that the join gets, among those of the table."""
        return [place for place in self.places if place >= 0]

    def names(self, side: int) -> list[str]:
        """Return names of the columns that the plan passes on; those of windows get none."""
        return [f"{'lr'[side]}{n}" if place >= 0 else "window" for n, place in enumerate(self.places)]

    def kept(self) -> Iterator[bool]:
        """Yield which rows pass the conditions of the plan."""
        latest: dict[Any, int] = {}
        for _, row in self.rows:
            passes = True
            if self.condition is not None:
                passes = bool(evaluated(self.condition, [None if p < 0 else row[p] for p in self.filtered]))
            if self.latest_only:
                key = tuple(row[self.places[each]] for each in self.keys)
                passes = passes and row[self.time] >= latest.get(key, row[self.time])
                if passes:
                    latest[key] = row[self.time]
            yield passes

    def stream(self, environment: fc.StreamExecutionEnvironment, side: int) -> KeyedLogStream:
        names = [name for name, place in zip(self.names(side), self.places, strict=True) if place >= 0]
        columns = {
            name: pa.array([row[place] for _, row in self.rows], arrow_type(self.types[place]))
            for name, place in zip(names, self.column_places, strict=True)
        }
        columns["ts"] = pa.array([row[self.time] for _, row in self.rows], pa.int64())
        columns["arrival"] = pa.array([arrival for arrival, _ in self.rows], pa.int64())
        columns["kept"] = pa.array(list(self.kept()), pa.bool_())
        log = environment.from_event_log(pa.table(columns), timestamp="ts", arrival="arrival")
        strategy = fc.WatermarkStrategy.for_generator(lambda: RowtimeWatermarks(self.delay_ms))
        events = log.assign_timestamps_and_watermarks(strategy).filter(pc.field("kept"))
        # A second key column, which is the same for all, lets the first one be null.
        return events.select(*names, **{"lr"[side] + "_all": pc.scalar(0)}).key_by(
            *(self.names(side)[each] for each in self.keys), "lr"[side] + "_all"
        )


def window_of(spec: dict[str, Any]) -> WindowAssigner[Any, Any]:
    def ms(text: str) -> int:
        """Milliseconds of a duration such as PT1M30S."""
        total, number = 0.0, ""
        for letter in text.removeprefix("PT"):
            if letter in "HMS":
                total += float(number) * {"H": 3600, "M": 60, "S": 1}[letter]
                number = ""
            else:
                number += letter
        return round(total * 1000)

    offset = Time.milliseconds(ms(spec.get("offset") or "PT0S"))
    if spec["type"] == "TumblingWindow":
        return TumblingEventTimeWindows.of(Time.milliseconds(ms(spec["size"])), offset)
    if spec["type"] == "HoppingWindow":
        sizes = (Time.milliseconds(ms(spec[each])) for each in ("size", "slide"))
        return SlidingEventTimeWindows.of(*sizes, offset)
    sizes = (Time.milliseconds(ms(spec[each])) for each in ("maxSize", "step"))
    return CumulativeEventTimeWindows.of(*sizes, offset)


def joined(plan: Plan, left: Input, right: Input, environment: fc.StreamExecutionEnvironment) -> LogStream:
    streams = left.stream(environment, 0), right.stream(environment, 1)
    names = [*left.names(0), *right.names(1)]
    how = plan.spec["joinType"].lower()
    where = condition(plan.spec["nonEquiCondition"], names)
    kind = plan.join["type"].removeprefix("stream-exec-")
    if kind == "interval-join_1":
        bounds = plan.join["intervalJoinSpec"]["windowBounds"]
        lower, upper = -bounds["leftUpperBound"], -bounds["leftLowerBound"]
        return streams[0].join_interval(streams[1], lower, upper, how, where=where)
    if kind == "window-join_1":
        assert left.window is not None
        return streams[0].join_window(streams[1], left.window, how, where=where)
    if kind == "temporal-join_1":
        return streams[0].join_temporal(streams[1], how, where=where)
    return streams[0].join_regular(streams[1], how, where=where, changes=True)


def results(plan: Plan, stream: LogStream, left: Input, right: Input) -> list[tuple[int, list[Any]]]:
    """Return the rows at the sink with the step of each; those at the end of the log have the step 2**63 - 1."""
    table = stream.with_emitted_at().execute().to_arrow()
    columns = {
        name: (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    starts, ends = columns.get("window_start"), columns.get("window_end")
    sides = [(0, left), *([] if plan.spec["joinType"] in ("SEMI", "ANTI") else [(1, right)])]
    given = []
    for n in range(table.num_rows):
        row: Row = []
        for side, each in sides:
            # On the padded side, Flink's bounds of windows are null, too.
            is_there = columns["lr"[side] + "_all"][n] is not None
            window = {-1: starts[n], -2: ends[n], -3: ends[n] - 1} if starts and ends else {}
            for name, place in zip(each.names(side), each.places, strict=True):
                row.append(columns[name][n] if place >= 0 else window[place] if is_there else None)
        for node in plan.after():
            if node["type"].startswith("stream-exec-calc"):
                assert node["condition"] is None
                row = [evaluated(rex, row) for rex in node["projection"]]
            else:
                assert node["type"].startswith("stream-exec-sink"), node["type"]
        kind = columns.get("row_kind", ["+I"] * table.num_rows)[n]
        emitted = columns["emitted_at"][n]
        given.append((END if emitted is None else emitted, [kind, *row]))
    return given


def check(scenario: Scenario) -> None:
    plan = Plan(scenario)
    left, right = Input(plan, 0), Input(plan, 1)
    environment = fc.StreamExecutionEnvironment.get_execution_environment()
    if scenario["name"] == "interval_join-1-1":  # an empty interval, which Flink plans without a join
        with pytest.raises(ConfigurationError, match="greater than the upper one"):
            joined(plan, left, right, environment)
        return
    stream = joined(plan, left, right, environment)
    given = results(plan, stream, left, right)
    n = len(scenario["arrival"])
    types = ["", *(sql_type for _, sql_type in scenario["columns"])]
    expected = [
        (END if at >= n else at, [value(each, sql_type) for each, sql_type in zip(row, types, strict=True)])
        for row, at in zip(scenario["rows"], scenario["at"], strict=True)
    ]
    assert Counter(map(repr, given)) == Counter(map(repr, expected))
    for step in {at for at, _ in given}:
        kinds = [row[0] for at, row in given if at == step]
        assert kinds == sorted(kinds, reverse=True), "withdrawn rows come first"


@pytest.mark.parametrize("scenario", scenarios("interval_join"))
def test_interval_joins(scenario: Scenario) -> None:
    check(scenario)


@pytest.mark.parametrize("scenario", scenarios("window_join"))
def test_window_joins(scenario: Scenario) -> None:
    check(scenario)


@pytest.mark.parametrize("scenario", scenarios("regular_join"))
def test_regular_joins(scenario: Scenario) -> None:
    check(scenario)


@pytest.mark.parametrize("scenario", scenarios("temporal_join"))
def test_temporal_joins(scenario: Scenario) -> None:
    check(scenario)
