"""Deduplication and Top-N through the operators' methods, against rows that Flink SQL gave for the same queries.

A scenario has the rows of a table in order of arrival, the plan that Flink compiled, and Flink's changes with the row
that caused each. What comes before the operator in the plan, and after it, is done here in Python.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flinkcore.common import Time, Watermark, WatermarkGenerator, WatermarkStrategy
from flinkcore.datastream import LogStream, StreamExecutionEnvironment
from flinkcore.datastream.window import (
    CumulativeEventTimeWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)

SQL = Path(__file__).parents[1] / "golden" / "sql"

KINDS = {
    "VARCHAR": pa.string(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "DECIMAL(10, 2)": pa.decimal128(10, 2),
    "INT": pa.int32(),
    "TIMESTAMP(3)": pa.timestamp("ms", "UTC"),
    "TIMESTAMP_LTZ(3)": pa.timestamp("ms", "UTC"),
}
OPERATORS = ("deduplicate_1", "rank_1", "window-deduplicate_1", "window-rank_1")
OF_CALCS = ("calc_1", "exchange_1", "sink_2")


def scenarios(kind: str, operator: str) -> list[Any]:
    """Return the scenarios of a kind in which rows reach an operator, and leave it, without an aggregation."""
    found = []
    for line in (SQL / f"{kind}.jsonl").read_text().splitlines():
        scenario = json.loads(line)
        types = [node["type"].removeprefix("stream-exec-") for node in scenario["plan"]["nodes"]]
        others = {*types} - {"table-source-scan_2", "watermark-assigner_1", *OF_CALCS, operator}
        # Rows of sessions, and of days of a time zone, need a step that assigns them.
        assigned = '"SessionWindow"' in line or "table.local-time-zone" in scenario["settings"]
        if assigned and "window" in kind:
            continue
        if others <= {"window-table-function_1"}:
            found.append(pytest.param(scenario, id=scenario["name"]))
    assert len(found) > 10
    return found


class SqlWatermarks(WatermarkGenerator[Any]):
    """Flink SQL's watermarks: after each row that exceeds the last one, from 0 on."""

    def __init__(self, delay_ms: int) -> None:
        self.delay_ms, self.last_ms = delay_ms, 0

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        if event_timestamp - self.delay_ms > self.last_ms:
            self.last_ms = event_timestamp - self.delay_ms
            output.emit_watermark(Watermark(self.last_ms))

    def on_periodic_emit(self, output: Any) -> None:
        pass


class Query:
    """A scenario of a plan with one operator: its input, and what is expected."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.scenario = scenario
        self.kinds = [kind for _, kind in scenario["columns"]]
        ((_, self.table),) = scenario["tables"].items()
        self.nodes = {node["type"].removeprefix("stream-exec-"): node for node in scenario["plan"]["nodes"]}
        self.operator = next(name for name in self.nodes if name in OPERATORS)
        types = [node["type"].removeprefix("stream-exec-") for node in scenario["plan"]["nodes"]]
        at = types.index(self.operator)
        calcs = [
            (number, node)
            for number, node in enumerate(scenario["plan"]["nodes"])
            if types[number] == "calc_1"
        ]
        self.before = [node for number, node in calcs if number < at]
        self.after = [node for number, node in calcs if number > at]

    def source(self, parallelism: int) -> LogStream:
        """The rows with `c0`, `c1`, ... as columns, and the number of the row as the arrival."""
        columns = self.table["columns"]
        rows = [
            [_value(kind, value) for (_, kind), value in zip(columns, row, strict=True)]
            for row in self.table["rows"]
        ]
        arrays = {
            f"c{i}": pa.array([row[i] for row in rows], KINDS[kind]) for i, (_, kind) in enumerate(columns)
        }
        arrays |= {"arrived": pa.array(range(len(rows)), pa.int64()), "one": pa.array([1] * len(rows))}
        watermark = self.nodes["watermark-assigner_1"]["watermarkExpr"]
        delay_ms = int(watermark["operands"][1]["value"]) if watermark["kind"] == "CALL" else 0
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(parallelism)
        time = f"c{self.nodes['watermark-assigner_1']['rowtimeFieldIndex']}"
        strategy = WatermarkStrategy.for_generator(lambda: SqlWatermarks(delay_ms))
        log = env.from_event_log(pa.table(arrays), timestamp=time, arrival="arrived")
        stream = log.assign_timestamps_and_watermarks(strategy)
        for calc in self.before:
            if calc["condition"] is not None:
                column, bound = _greater(calc["condition"])
                stream = stream.filter(pc.field(f"c{column}") > bound)
        return stream

    def window(self) -> WindowAssigner[Any, Any]:
        spec = self.nodes["window-table-function_1"]["windowing"]["window"]
        offset = Time.milliseconds(_ms(spec.get("offset", "PT0S")))
        if spec["type"] == "TumblingWindow":
            return TumblingEventTimeWindows.of(Time.milliseconds(_ms(spec["size"])), offset)
        if spec["type"] == "HoppingWindow":
            return SlidingEventTimeWindows.of(
                Time.milliseconds(_ms(spec["size"])), Time.milliseconds(_ms(spec["slide"])), offset
            )
        assert spec["type"] == "CumulativeWindow"
        return CumulativeEventTimeWindows.of(
            Time.milliseconds(_ms(spec["maxSize"])), Time.milliseconds(_ms(spec["step"])), offset
        )

    def columns(self) -> list[str]:
        """The operator's input columns by number: those of the source and the window, behind the calc."""
        names = [f"c{i}" for i in range(len(self.table["columns"]))]
        if "window-table-function_1" in self.nodes:
            names += ["window_start", "window_end", "window_time"]
        for calc in self.before:
            names = [names[each["inputIndex"]] for each in calc["projection"]]
        return names

    def check(
        self,
        of: Callable[[LogStream], LogStream],
        added: list[str],
        late: int | None = None,
        parallelism: int = 2,
    ) -> None:
        """Assert that results are Flink's, caused by the same rows.

        Parameters
        ----------
        of
            From the stream of rows to that of the operator.
        added
            Columns of the operator's results after those of its input.
        late
            Number of late rows.
        """
        result = of(self.source(parallelism)).with_emitted_at("emitted").execute()
        names = [*self.columns(), *added]
        found = Counter()
        for row in result.to_arrow().to_pylist():
            kind, step = row.get("row_kind", "+I"), row["emitted"]
            at = len(self.table["rows"]) if step is None else round(step.timestamp() * 1000)
            values = [row[name] for name in names]
            if (values := self._behind(values)) is not None:
                found[json.dumps([at, kind, *map(_json, values, self.kinds)])] += 1
        expected = Counter(
            json.dumps([at, *row]) for at, row in zip(self.scenario["at"], self.scenario["rows"], strict=True)
        )
        if not self.nodes[self.operator].get("generateUpdateBefore"):  # nobody asks for what was before
            found = Counter({row: n for row, n in found.items() if '"-U"' not in row})
        assert found == expected
        if late is not None:
            assert result.report.late == late

    def _behind(self, values: list[Any]) -> list[Any] | None:
        """The values behind the calcs after the operator; None if they filter the row out."""
        for calc in self.after:
            if calc["condition"] is not None:
                column, bound = _greater(calc["condition"])
                if values[column] is None or not values[column] > bound:
                    return None
            values = [
                values[each["inputIndex"]] if each["kind"] == "INPUT_REF" else int(each["value"])
                for each in calc["projection"]
            ]
        return values

    def late(self, operator: str) -> int | None:
        """Return how many rows Flink's operator dropped as late; None where one row may count for several windows."""
        if "Hopping" in str(self.nodes) or "Cumulative" in str(self.nodes):
            return None
        return sum(n for name, _, n in self.scenario["late_dropped"] if operator in name)


def _greater(condition: dict[str, Any]) -> tuple[int, int]:
    """The column and the number of a condition `column > number`."""
    assert condition["internalName"] == "$>$1"
    left, right = condition["operands"]
    return left["inputIndex"], int(right["value"])


def _value(kind: str, value: Any) -> Any:
    if value is None or not kind.startswith(("DECIMAL", "TIMESTAMP")):
        return value
    if kind.startswith("DECIMAL"):
        return Decimal(value)
    return datetime.fromisoformat(value.rstrip("Z")).replace(tzinfo=timezone.utc)


def _json(value: Any, kind: str) -> Any:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + ("Z" if "ZONE" in kind else "")
    return value


def _ms(duration: str) -> int:
    sign = -1 if duration.startswith("-") or "-" in duration else 1
    text, total = duration.replace("-", "").removeprefix("PT"), 0.0
    for unit, factor in (("H", 3_600_000), ("M", 60_000), ("S", 1000)):
        if unit in text:
            number, text = text.split(unit)
            total += float(number) * factor
    return sign * round(total)


@pytest.mark.parametrize("scenario", scenarios("dedup", "deduplicate_1"))
def test_deduplication_gives_the_changes_of_flink_sql(scenario: dict[str, Any]) -> None:
    query = Query(scenario)
    node, names = query.nodes["deduplicate_1"], query.columns()
    keys = [names[index] for index in node["uniqueKeys"]]
    keep = "last" if node["keepLastRow"] else "first"
    changes = not node["outputInsertOnly"]
    late = None if changes else query.late("Deduplicate")
    query.check(lambda rows: rows.key_by(*keys, "one").deduplicate(keep, changes=changes), [], late)


def _top_arguments(node: dict[str, Any], names: list[str], sort: str) -> dict[str, Any]:
    fields = node[sort]["fields"]
    start, end = node["rankRange"]["start"], node["rankRange"]["end"]
    return {
        "n": end - start + 1,
        "by": [names[each["index"]] for each in fields],
        "descending": [not each["isAscending"] for each in fields],
        "nulls_last": [each["nullIsLast"] for each in fields],
        "rank_column": "rank" if node["outputRowNumber"] else None,
        "skip": start - 1,
    }


@pytest.mark.parametrize("scenario", scenarios("topn", "rank_1"))
def test_top_n_gives_the_changes_of_flink_sql(scenario: dict[str, Any]) -> None:
    query = Query(scenario)
    node, names = query.nodes["rank_1"], query.columns()
    keys = [names[index] for index in node["partition"]["fields"]]
    arguments = _top_arguments(node, names, "orderBy")
    added = ["rank"] if node["outputRowNumber"] else []
    query.check(lambda rows: rows.key_by(*keys, "one").top(**arguments, changes=True), added)


def _of_key(names: list[str], indexes: list[int]) -> Iterator[str]:
    yield from (names[index] for index in indexes if names[index] not in ("window_start", "window_end"))
    yield "one"


@pytest.mark.parametrize("scenario", scenarios("window_dedup", "window-deduplicate_1"))
def test_deduplication_of_windows_gives_the_rows_of_flink_sql(scenario: dict[str, Any]) -> None:
    query = Query(scenario)
    node, names, window = query.nodes["window-deduplicate_1"], query.columns(), query.window()
    keys = [*_of_key(names, node["partitionKeys"])]
    keep = "last" if node["keepLastRow"] else "first"
    query.check(lambda rows: rows.key_by(*keys).window(window).deduplicate(keep), [], query.late("Dedup"))


@pytest.mark.parametrize("scenario", scenarios("window_topn", "window-rank_1"))
def test_top_n_of_windows_gives_the_rows_of_flink_sql(scenario: dict[str, Any]) -> None:
    query = Query(scenario)
    node, names, window = query.nodes["window-rank_1"], query.columns(), query.window()
    keys = [*_of_key(names, node["partitionSpec"]["fields"])]
    arguments = _top_arguments(node, names, "sortSpec")
    added = ["rank"] if node["outputRowNumber"] else []
    query.check(lambda rows: rows.key_by(*keys).window(window).top(**arguments), added, query.late("Rank"))
