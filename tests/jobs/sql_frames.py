"""Compiled plans of Flink SQL with OVER and GROUP BY, run by `over` and `aggregate`.

The steps between the operators are computed row by row; each operator is a job of its own over the rows that come to
it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from jobs.sql_values import BITS, arrow_type, evaluated, fitted, of_json, to_json, type_name

import flinkcore as fc
from flinkcore.common import Watermark, WatermarkGenerator, WatermarkOutput, WatermarkStrategy
from flinkcore.datastream.aggregates import (
    Aggregate,
    collect,
    count,
    count_distinct,
    max_,
    max_by,
    min_,
    min_by,
    sum_,
    var_pop,
)

KINDS = (
    "table-source-scan",
    "watermark-assigner",
    "calc",
    "exchange",
    "over-aggregate",
    "group-aggregate",
    "sink",
)
"""Nodes that can be run."""

RETRACTABLE = ("count", "sum", "mean", "min", "max", "count_distinct")

KEY, KIND, ARRIVAL, PLACE = "the key", "row_kind", "arrived", "place"


@dataclass
class Change:
    kind: str
    values: list[Any]
    at: int


class OfSql(WatermarkGenerator[Any]):
    """After each row the greatest timestamp less a delay, if it has grown; none up to 0."""

    def __init__(self, delay_ms: int) -> None:
        self.delay_ms, self.last_ms = delay_ms, 0

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        if event_timestamp - self.delay_ms > self.last_ms:
            self.last_ms = event_timestamp - self.delay_ms
            output.emit_watermark(Watermark(self.last_ms))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


@dataclass
class Plan:
    """The rows of a plan on their way through its nodes."""

    scenario: dict[str, Any]

    def missing(self) -> str | None:
        """What a plan has that no operator here does."""
        types: list[str] = []
        for node in self.scenario["plan"]["nodes"]:
            kind = _kind(node)
            if kind not in KINDS:
                return kind
            if kind in ("over-aggregate", "group-aggregate"):
                calls = (
                    node["aggCalls"]
                    if kind == "group-aggregate"
                    else node["overSpec"]["groups"][0]["aggCalls"]
                )
                found = Calls(calls, types).missing(bool(node.get("needRetraction")))
                if found is not None:
                    return found
            types = self.output_types(node)
        return None

    def run(self, **settings: Any) -> list[Change]:
        (table,) = self.scenario["tables"].values()
        names = [name for name, _ in table["columns"]]
        self.n = len(table["rows"])
        self.delay_ms = 0
        changes: list[Change] = []
        self.times: list[int] = []
        for node in self.scenario["plan"]["nodes"]:
            kind = _kind(node)
            if kind == "table-source-scan":
                abilities = node["scanTableSource"].get("abilities") or []
                fields = [path[0] for each in abilities for path in each.get("projectedFields", ())]
                taken = fields or range(len(names))
                kinds = [type_name(table["columns"][field][1]) for field in taken]
                changes = [
                    Change("+I", [of_json(row[f], k) for f, k in zip(taken, kinds, strict=True)], at)
                    for at, row in enumerate(table["rows"])
                ]
            elif kind == "watermark-assigner":
                operands = node["watermarkExpr"].get("operands")
                self.delay_ms = int(operands[1]["value"]) if operands else 0
                self.times = [change.values[node["rowtimeFieldIndex"]] for change in changes]
            elif kind == "calc":
                changes = [
                    Change(each.kind, [evaluated(of, each.values) for of in node["projection"]], each.at)
                    for each in changes
                    if node["condition"] is None or evaluated(node["condition"], each.values)
                ]
            elif kind == "over-aggregate":
                changes = self.over(node, changes, **settings)
            elif kind == "group-aggregate":
                changes = self.group(node, changes, **settings)
            self.types = self.output_types(node)
        return [
            Change(
                each.kind,
                [self.shown(value, kind) for value, kind in zip(each.values, self.types, strict=True)],
                each.at,
            )
            for each in changes
        ]

    def shown(self, value: Any, kind: str) -> Any:
        """A value as scenarios have it; variances differ from Flink's in their last bits."""
        if kind == "DOUBLE" and value is not None and "WELFORD" in str(self.scenario["plan"]):
            return f"{value:.9g}"
        return to_json(value, kind)

    def recorded(self) -> list[Change]:
        """The rows that Flink has for the plan."""
        kinds = [type_name(kind) for _, kind in self.scenario["columns"]]
        return [
            Change(
                kind,
                [self.shown(of_json(value, type), type) for value, type in zip(values, kinds, strict=True)],
                at,
            )
            for (kind, *values), at in zip(self.scenario["rows"], self.scenario["at"], strict=True)
        ]

    def output_types(self, node: dict[str, Any]) -> list[str]:
        kind = node["outputType"]
        if isinstance(kind, dict):
            return [type_name(field["fieldType"]) for field in kind["fields"]]
        inner = kind[kind.index("<") + 1 : kind.rindex(">")]
        return [part.split("` ")[1].removesuffix(" NOT NULL") for part in _split(inner)]

    # ---- operators ----

    def over(self, node: dict[str, Any], rows: list[Change], **settings: Any) -> list[Change]:
        spec = node["overSpec"]
        (group,) = spec["groups"]
        (order,) = group["orderBy"]["fields"]
        calls = Calls(group["aggCalls"], self.types)
        keys = spec["partition"]["fields"]
        columns = self.columns(rows, keys, calls)
        # The order of first and last values is that in which rows come up.
        times = [row.values[order["index"]] for row in rows]
        ranks = sorted(range(len(rows)), key=lambda place: (times[place], place))
        calls.add_columns(columns, rows, {place: rank for rank, place in enumerate(ranks)})
        stream = self.stream(columns, times, **settings).key_by(KEY)
        bound = group["lowerBound"]
        if bound["kind"] == "UNBOUNDED_PRECEDING":
            framed = stream.over(unit="rows" if group["isRows"] else "range")
        else:
            offset = spec["constants"][bound["offset"]["inputIndex"] - spec["originalInputFields"]]
            value = int(offset["value"])
            framed = stream.over(value if group["isRows"] else fc.Time.milliseconds(value))
        result = framed.aggregate(**calls.aggregates).with_emitted_at("emitted")
        return [
            Change("+I", [*rows[row[PLACE]].values, *calls.results(row)], self.at(row["emitted"]))
            for row in executed(result, **settings)
        ]

    def group(self, node: dict[str, Any], rows: list[Change], **settings: Any) -> list[Change]:
        calls = Calls(node["aggCalls"], self.types)
        keys = node["grouping"]
        columns = self.columns(rows, keys, calls)
        calls.add_columns(columns, rows, {place: place for place in range(len(rows))})
        if node["needRetraction"]:
            columns[KIND] = pa.array([row.kind for row in rows], pa.string())
        if not rows:
            return []
        first = {repr([row.values[key] for key in keys]): row for row in rows}
        stream = self.stream(columns, [row.at for row in rows], **settings).key_by(KEY)
        result = stream.aggregate(changes=True, **calls.aggregates).with_emitted_at("emitted")
        return [
            Change(
                row[KIND],
                [*(first[row[KEY]].values[key] for key in keys), *calls.results(row)],
                self.at(row["emitted"]),
            )
            for row in executed(result, **settings)
            if node["generateUpdateBefore"] or row[KIND] != "-U"
        ]

    def columns(self, rows: list[Change], keys: Sequence[int], calls: "Calls") -> dict[str, pa.Array]:
        return {
            PLACE: pa.array(range(len(rows)), pa.int64()),
            KEY: pa.array([repr([row.values[key] for key in keys]) for row in rows], pa.string()),
            ARRIVAL: pa.array([row.at for row in rows], pa.int64()),
        }

    def stream(self, columns: dict[str, pa.Array], times: list[int], **settings: Any) -> Any:
        """The rows, among all rows of the table, which make the watermarks."""
        table = pa.table({**columns, "time": pa.array(times, pa.int64()), "counts": [True] * len(times)})
        arrived = set(table.column(ARRIVAL).to_pylist())
        others = [at for at in range(self.n) if at not in arrived]
        more = pa.table({"counts": [False] * len(others), ARRIVAL: pa.array(others, pa.int64())})
        more = more.append_column("time", pa.array([self.times[at] for at in others], pa.int64()))
        more = more.append_column(KEY, pa.array([""] * len(others)))
        rows = pa.concat_tables([table, more], promote_options="default").sort_by(ARRIVAL)
        env = settings["environment"]()
        delay_ms = self.delay_ms
        return (
            env.from_event_log(settings["given"](rows), timestamp="time", arrival=ARRIVAL)
            .assign_timestamps_and_watermarks(WatermarkStrategy.for_generator(lambda: OfSql(delay_ms)))
            .filter(pc.field("counts"))
        )

    def at(self, emitted: int | None) -> int:
        """The step of a result: the number of the row before it, or that of the end of the table."""
        return self.n if emitted is None else emitted


def executed(stream: Any, **settings: Any) -> list[dict[str, Any]]:
    rows = settings["taken"](stream)
    place = rows.schema.get_field_index("emitted")
    rows = rows.set_column(place, "emitted", rows.column("emitted").cast(pa.int64()))
    return sorted(rows.to_pylist(), key=lambda row: (row["emitted"] is None, row["emitted"]))


class Calls:
    """The aggregate calls of a node, as aggregates of columns `c0`, `c1`, ..."""

    def __init__(self, calls: list[dict[str, Any]], types: list[str]) -> None:
        self.calls, self.types = calls, types
        self.aggregates: dict[str, Aggregate] = {}
        for number, call in enumerate(calls):
            self.aggregates |= self._of(call, f"c{number}", f"a{number}")

    def _of(self, call: dict[str, Any], column: str, result: str) -> dict[str, Aggregate]:
        name = call["internalName"]
        if name == "$COUNT$1":
            return {result: count_distinct(column) if call["distinct"] else count(column)}
        if name in ("$SUM$1", "$$SUM0$1"):
            return {result: sum_(column)}
        if name == "$$WELFORD_M2$1$1" and not self.types[call["argList"][0]].startswith("DECIMAL"):
            return {result: var_pop(column), f"{result} of": count(column)}
        if name == "$AVG$1":
            return {result: sum_(column), f"{result} of": count(column)}
        if name in ("$MIN$1", "$MAX$1"):
            return {result: (min_ if name == "$MIN$1" else max_)(column)}
        if name == "$ARRAY_AGG$1":
            return {result: collect(column)}
        if name in ("$FIRST_VALUE$1", "$LAST_VALUE$1"):
            return {result: (min_by if name == "$FIRST_VALUE$1" else max_by)(column, f"{column} rank")}
        return {}

    def missing(self, withdraws: bool) -> str | None:
        """What no aggregate here does."""
        if not self.calls:
            return "no aggregates: deduplicate"
        for number, call in enumerate(self.calls):
            if not self._of(call, "c", "a"):
                return str(call["internalName"])
            if call["distinct"] and call["internalName"] != "$COUNT$1":
                return f"{call['internalName']} of distinct values"
            if withdraws and self.aggregates[f"a{number}"].function not in RETRACTABLE:
                return f"{self.aggregates[f'a{number}'].function} of rows that are withdrawn"
        return None

    def add_columns(self, columns: dict[str, pa.Array], rows: list[Change], ranks: dict[int, int]) -> None:
        for number, call in enumerate(self.calls):
            is_taken = [call["filterArg"] < 0 or row.values[call["filterArg"]] is True for row in rows]
            if call["argList"]:
                (argument,) = call["argList"]
                values = [row.values[argument] for row in rows]
                kind = self.types[argument]
            else:
                values, kind = [1] * len(rows), "INT"
            values = [value if taken else None for value, taken in zip(values, is_taken, strict=True)]
            columns[f"c{number}"] = pa.array(values, arrow_type(kind))
            columns[f"c{number} rank"] = pa.array(
                [None if value is None else ranks[place] for place, value in enumerate(values)], pa.int64()
            )

    def results(self, row: dict[str, Any]) -> list[Any]:
        found = []
        for number, call in enumerate(self.calls):
            value, kind = row[f"a{number}"], type_name(call["type"])
            if call["internalName"] == "$$SUM0$1" and value is None:
                value = 0
            if call["internalName"] == "$$WELFORD_M2$1$1" and value is not None:
                value *= row[f"a{number} of"]
            if call["internalName"] == "$AVG$1" and value is not None:
                n = row[f"a{number} of"]
                value = int(abs(value) // n) * (1 if value >= 0 else -1) if kind in BITS else value / n
            if hasattr(value, "timestamp"):
                value = pa.scalar(value, arrow_type(kind)).cast(pa.int64()).as_py()
            found.append(value if kind.startswith("ARRAY") else fitted(value, kind))
        return found


def _kind(node: dict[str, Any]) -> str:
    name: str = node["type"]
    return name.removeprefix("stream-exec-").rsplit("_", 1)[0]


def _split(fields: str) -> list[str]:
    """The fields of a row type, which may have commas within parentheses."""
    parts, depth, begin = [], 0, 0
    for place, letter in enumerate(fields):
        depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(fields[begin:place].strip())
            begin = place + 1
    return [*parts, fields[begin:].strip()]
