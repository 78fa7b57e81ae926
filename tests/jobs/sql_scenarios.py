"""Golden scenarios of Flink SQL as jobs: tables as logs whose arrivals are the steps, results in the forms of JSON."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from jobs.aggregate_functions import FUNCTIONS

from flinkcore._internal.java.texts import float_text
from flinkcore.datastream import LogStream, StreamExecutionEnvironment
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.errors import DataError, UnsupportedOperationError
from flinkcore.sql.plan.compiled_plan import CompiledPlan
from flinkcore.sql.program import plan_sinks
from flinkcore.sql.types.logical_types import (
    BINARIES,
    FLOATS,
    TIMESTAMPS,
    LogicalType,
    Root,
    type_of,
)
from flinkcore.sql.types.times import (
    date_text,
    day_of_text,
    millis_of_day,
    time_text,
    timestamp_of_text,
    timestamp_text,
)

ARRIVAL = "arrival of the step"
EMITTED_AT = "emitted at step"
OF_VARIANCE = "DOUBLE of a variance"
_PER_UNIT = {"ms": 10**6, "us": 10**3, "ns": 1}


GOLDEN = Path(__file__).parents[1] / "golden" / "sql"


def golden(name: str) -> dict[str, Any]:
    """Return a committed scenario by its name, which begins with its kind."""
    for line in (GOLDEN / f"{name.partition('-')[0]}.jsonl").read_text().splitlines():
        scenario: dict[str, Any] = json.loads(line)
        if scenario["name"] == name:
            return scenario
    raise KeyError(name)


class Skipped(Exception):
    """The reason why a scenario does not run."""


# ---- values


def value_of(written: Any, kind: LogicalType) -> Any:
    """Return a value of Arrow from its form in JSON; dates and times as integers."""
    root = kind.root
    if written is None:
        return None
    if root in FLOATS:
        return float(written)
    if root is Root.DECIMAL:
        from decimal import Decimal

        return Decimal(written)
    if root in BINARIES:
        return bytes.fromhex(written)
    if root is Root.DATE:
        return day_of_text(written)
    if root is Root.TIME:
        return millis_of_day(written)
    if root in TIMESTAMPS:
        return timestamp_of_text(written.replace("T", " ").removesuffix("Z")) // _PER_UNIT[kind.unit]
    if root is Root.ARRAY:
        return [value_of(each, kind.children[0][1]) for each in written]
    if root is Root.ROW:
        return {
            name: value_of(each, child) for each, (name, child) in zip(written, kind.children, strict=True)
        }
    if root is Root.MAP:
        (_, key), (_, value) = kind.children
        return [(value_of(k, key), value_of(v, value)) for k, v in written]
    if root is Root.MULTISET:
        return [(value_of(k, kind.children[0][1]), v) for k, v in written]
    return written


def _storage(kind: pa.DataType) -> pa.DataType:
    """Return the type of the integers that stand for values."""
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_list(kind):
        return pa.list_(_storage(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_storage(kind.key_type), _storage(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _storage(each.type)) for each in kind])
    return kind


def column_of(values: list[Any], kind: LogicalType) -> pa.Array:
    """Return a column of a table of a scenario."""
    wanted = kind.arrow
    stored = pa.array([value_of(value, kind) for value in values], _storage(wanted))
    return stored if stored.type.equals(wanted) else stored.cast(wanted)


def _key_text(entry: list[Any]) -> str:
    return json.dumps(entry[0], ensure_ascii=False)


def _iso_date(days: int) -> str:
    """Return a day as ``LocalDate.toString`` writes it."""
    year, rest = date_text(days)[:-6], date_text(days)[-6:]
    return f"{'+' if int(year) > 9999 else '-' if int(year) < 0 else ''}{abs(int(year)):04d}{rest}"


def form_of(value: Any, kind: LogicalType) -> Any:
    """Return the form in JSON of a value of `plain_values`."""
    root = kind.root
    if value is None:
        return None
    if root in FLOATS:
        value = float(float_text(value)) if root is Root.FLOAT else value
        return (
            value if value - value == 0 else {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")
        )
    if root is Root.DECIMAL:
        return f"{value:f}"
    if root in BINARIES:
        return value.hex()
    if root is Root.DATE:
        return _iso_date(value)
    if root is Root.TIME:
        text, digits = time_text(value, 0), f"{value % 1000:03d}".ljust(9, "0")[: kind.precision]
        return f"{text}.{digits}" if digits else text
    if root in TIMESTAMPS:
        text = timestamp_text(value * _PER_UNIT[kind.unit], kind.precision).replace(" ", "T")
        return f"{text}Z" if root is Root.TIMESTAMP_LTZ else text
    if root is Root.ARRAY:
        return [form_of(each, kind.children[0][1]) for each in value]
    if root is Root.ROW:
        return [form_of(value[name], child) for name, child in kind.children]
    if root is Root.MAP:
        (_, key), (_, of_value) = kind.children
        return sorted(([form_of(k, key), form_of(v, of_value)] for k, v in value), key=_key_text)
    if root is Root.MULTISET:
        key = kind.children[0][1]
        return sorted(([form_of(k, key), v] for k, v in value), key=_key_text)
    return value


def forms_of(column: pa.Array, kind: LogicalType) -> list[Any]:
    """Return the forms in JSON of a column of results."""
    stored = _storage(column.type)
    plain = column if stored.equals(column.type) else column.cast(stored)
    return [form_of(value, kind) for value in plain.to_pylist()]


# ---- jobs


TICKS = 10**6
MOST_AT_ONCE = 100


def finer(scenario: dict[str, Any]) -> dict[str, Any]:
    """Return a scenario whose timers of processing time fire before rows that arrive with them, which come one by one.

    The recorder moves the clock before it adds a row. In a replay, what is due at a time comes after its rows, and rows
    that arrive together do not see each other's watermarks. So the clock runs faster, and delays are a bit shorter.
    """
    delays = {
        name: f"{int(value.removesuffix(' s')) * 1000 * TICKS - MOST_AT_ONCE} ms"
        for name, value in scenario["settings"].items()
        if name.endswith("-fire.delay") and value != "0 s"
    }
    if not any(name.startswith("table.exec.emit") for name in scenario["settings"]):
        return scenario
    if not any(isinstance(step, dict) for step in scenario["arrival"]):
        return {**scenario, "settings": scenario["settings"] | delays}
    clock, arrival = scenario.get("now", 0) * TICKS, []
    for step in scenario["arrival"]:
        clock = step["pt"] * TICKS if isinstance(step, dict) else clock + 1
        arrival.append({"pt": clock})
        if not isinstance(step, dict):
            arrival.append(step)
    return {**scenario, "settings": scenario["settings"] | delays, "arrival": arrival}


def clocks_of(scenario: dict[str, Any]) -> dict[str, list[int]]:
    """Return the steps of each table's rows, or the readings of the clock where the scenario moves it."""
    moves = any(isinstance(step, dict) for step in scenario["arrival"])
    clock, clocks = scenario.get("now", 0), {name: [] for name in scenario["tables"]}
    for number, step in enumerate(scenario["arrival"]):
        if isinstance(step, dict):
            clock = step["pt"]
        else:
            clocks[step].append(clock if moves else number)
    return clocks


def tables_of(environment: StreamExecutionEnvironment, scenario: dict[str, Any]) -> dict[str, Any]:
    """Return the log of each table."""
    clocks = clocks_of(scenario)
    logs: dict[str, Any] = {}
    for name, table in scenario["tables"].items():
        physical = [(column, kind) for column, kind in table["columns"] if not kind.startswith("AS ")]
        is_static = table.get("static", False)
        rows = table["rows"] if is_static else table["rows"][: len(clocks[name])]
        columns = {
            column: column_of([row[number] for row in rows], type_of(kind).with_nullable(True))
            for number, (column, kind) in enumerate(physical)
        }
        if is_static:
            logs[name] = pa.table(columns)
            continue
        columns[ARRIVAL] = pa.array(clocks[name], pa.int64())
        columns["time of none"] = pa.array([0] * len(rows), pa.int64())
        logs[name] = environment.from_event_log(
            pa.table(columns), timestamp="time of none", timestamp_unit="ms", arrival=ARRIVAL, split=None
        )
    return logs


def environment_of(scenario: dict[str, Any]) -> StreamExecutionEnvironment:
    """Return an environment with the settings of a scenario."""
    environment = StreamExecutionEnvironment.get_execution_environment().set_parallelism(3)
    interval = scenario["settings"].get("pipeline.auto-watermark-interval", "0 ms")
    environment.get_config().set_auto_watermark_interval(int(interval.removesuffix(" ms")))
    return environment


def stream_of(
    scenario: dict[str, Any], environment: StreamExecutionEnvironment, emitted_at: str | None = EMITTED_AT
) -> LogStream:
    """Return the rows into the sink of a scenario's plan; raise Skipped with the refusal if it does not run."""
    try:
        tables = tables_of(environment, scenario)
        found = plan_sinks(environment, scenario["plan"], tables, scenario["settings"], emitted_at, FUNCTIONS)
        (sink,) = found.values()
    except UnsupportedOperationError as error:
        if "it is not as Flink writes it" in str(error):
            raise
        raise Skipped(str(error)) from error
    return sink.stream


def cut_at(scenario: dict[str, Any], steps: int) -> dict[str, Any]:
    """Return a scenario with its first steps alone."""
    return scenario | {"arrival": scenario["arrival"][:steps]}


def of_steps(scenario: dict[str, Any], begin: int, end: int) -> dict[str, Any]:
    """Return a scenario with some of its steps, which have their numbers as arrivals; its clock does not move."""
    before = Counter(scenario["arrival"][:begin])
    tables = {
        name: {**table, "rows": table["rows"][before[name] :]} for name, table in scenario["tables"].items()
    }
    arrival: list[Any] = []
    for number, step in enumerate(scenario["arrival"][begin:end], begin):
        arrival += [{"pt": number}, step]
    return scenario | {"tables": tables, "arrival": arrival}


def results_of(scenario: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Run a scenario; return its rows and their steps as golden lines have them, and the report."""
    result = stream_of(scenario, environment_of(scenario)).execute()
    table = result.to_arrow()
    kinds = [type_of(kind) for _, kind in scenario["columns"]]
    columns = [forms_of(table.column(number).combine_chunks(), kind) for number, kind in enumerate(kinds)]
    at = table.column(EMITTED_AT).cast(pa.int64()).to_pylist()
    end = len(scenario["arrival"])
    of_changes = (
        table.column(ROW_KIND).to_pylist() if ROW_KIND in table.column_names else ["+I"] * table.num_rows
    )
    rows = [[kind, *values] for kind, *values in zip(of_changes, *columns, strict=True)] if columns else []
    return {"rows": rows, "at": [end if step is None else step for step in at]}, result.report


# ---- comparison, by the rules of the oracle


def _canonical(value: Any, kind: str) -> Any:
    if kind == OF_VARIANCE and value is not None:
        # Short fractions, of which the last digit is 5, are moved off the border between two roundings.
        return float(f"{float(value) * (1 + 3e-11):.9e}")
    if (
        kind.startswith(("FLOAT", "DOUBLE"))
        and isinstance(value, int | float)
        and not isinstance(value, bool)
    ):
        # Java 17 writes some floats with a digit too many: compared are the floats.
        number = float(value) if kind.startswith("DOUBLE") else float(np.float32(value))
        return float(f"{number:.9e}")
    if isinstance(value, list):
        return [_canonical(each, "DOUBLE" if isinstance(each, float) else "") for each in value]
    return value


def rounded_kinds(scenario: dict[str, Any]) -> list[list[str]]:
    """Return names and types of a scenario's columns; those that may come from a variance have a type of their own.

    Flink merges the slices of windows, and the last digits of a variance depend on where they are cut.
    """
    if "WELFORD" not in json.dumps(scenario["plan"]):
        return list(scenario["columns"])
    return [
        [name, OF_VARIANCE if kind.startswith(("DECIMAL", "DOUBLE")) else kind]
        for name, kind in scenario["columns"]
    ]


BY_CLOCK = ("ttl", "proctime")
"""Kinds of scenarios whose rows come at readings of the clock."""

NO_READING = 10**15
"""In place of a reading of the clock after the last row of the tables, of which a log does not know."""


def by_clock(scenario: dict[str, Any], found: list[int]) -> tuple[list[int], list[int]]:
    """Return the readings of the clock at which rows were found and are wanted; those found are steps at the end."""
    clock, last, readings = scenario["now"], scenario["now"], []
    for step in scenario["arrival"]:
        if isinstance(step, dict):
            clock = step["pt"]
        else:
            last = clock
        readings.append(clock)
    wanted = [readings[step] if step < len(readings) else NO_READING for step in scenario["at"]]
    end = len(readings)
    return (
        [NO_READING if reading == end else reading for reading in found],
        [reading if reading <= last else NO_READING for reading in wanted],
    )


def steps_of(line: dict[str, Any], columns: list[list[str]], end: int, with_at: bool) -> list[list[Any]]:
    """Return the rows of each step as a sorted list; the ends of all tables are one step."""
    rows = [
        [row[0], *(_canonical(value, kind) for value, (_, kind) in zip(row[1:], columns, strict=True))]
        for row in line["rows"]
    ]
    steps = [min(step, end) for step in line["at"]] if with_at else [0] * len(rows)
    ordered = sorted(zip(steps, rows, strict=True), key=lambda each: each[0])
    return [
        [step, sorted((row for _, row in group), key=json.dumps)]
        for step, group in groupby(ordered, key=lambda each: each[0])
    ]


def net_of(steps: list[list[Any]]) -> list[list[Any]]:
    """Return the net effect of each step of `steps_of`: how often each row is there more or less than before."""
    found = []
    for step, rows in steps:
        counts: Counter[str] = Counter()
        for kind, *values in rows:
            counts[json.dumps(values)] += 1 if kind in ("+I", "+U") else -1
        if any(counts.values()):
            found.append([step, sorted((row, count) for row, count in counts.items() if count)])
    return found


def late_of(scenario: dict[str, Any]) -> int:
    """Return how many late rows Flink's operators have dropped."""
    return sum(count for _, counter, count in scenario["late_dropped"] if counter == "numLateRecordsDropped")


def is_two_phase(scenario: dict[str, Any]) -> bool:
    """Return whether Flink counts late rows of a key and slice as one."""
    return any(node.kind == "local-window-aggregate" for node in CompiledPlan.of(scenario["plan"]).nodes)


def has_rows_of_several_windows(scenario: dict[str, Any]) -> bool:
    """Return whether Flink counts a late row once for each of its windows that have ended."""
    nodes = [node for node in CompiledPlan.of(scenario["plan"]).nodes if node.kind == "window-table-function"]
    return any(
        node.json["windowing"]["window"]["type"] in ("HoppingWindow", "CumulativeWindow") for node in nodes
    )


def _merges_elsewhere(scenario: dict[str, Any]) -> bool:
    """Return whether Flink merges accumulators of functions of users where they are not kept apart here."""
    return scenario["kind"] == "aggregate_functions" and (
        is_two_phase(scenario) or "SESSION" in scenario["sql"]
    )


def _without_merges(rows: list[list[Any]]) -> list[list[Any]]:
    """Return rows whose texts do not show which of their values were merged."""
    return [[re.sub("[()]", "", value) if isinstance(value, str) else value for value in row] for row in rows]


def _counts_no_late_rows(scenario: dict[str, Any]) -> bool:
    """Return whether late rows are a rate in Flink, as those of window joins, or not counted, as those of sorts."""
    sorts = any(node["type"].startswith("stream-exec-temporal-sort") for node in scenario["plan"]["nodes"])
    return sorts or any("LateRecordsDroppedRate" in counter for _, counter, _ in scenario["late_dropped"])


NOT_COMPARED = {
    "equal rows of several keys are ranked, and the order of keys within a step is open in Flink": (
        "window_topn-1-4",
        "window_topn-1-32",
    ),
    "an aggregate takes the matches of a row one by one, and their order is that of a hash map in Flink": (
        "regular_join-1-1",
        "regular_join-1-18",
        "regular_join-1-19",
        "regular_join-1-38",
        "regular_join-1-43",
    ),
    "NaN is ranked, which has no order in Flink": ("types-1-36",),
}
"""Scenarios whose rows are not Flink's, by the reason."""


def check(scenario: dict[str, Any]) -> None:
    """Assert that a scenario has Flink's rows, steps, late rows and failure; raise Skipped if it does not run."""
    if "plan" not in scenario:
        raise Skipped(f"Flink refuses it: {scenario['error']['message']}")
    for reason, names in NOT_COMPARED.items():
        if scenario["name"] in names:
            raise Skipped(reason)
    columns, error = rounded_kinds(scenario), scenario.get("error")
    moves = any(isinstance(step, dict) for step in scenario["arrival"])
    steps = len(scenario["arrival"])
    if error is not None:
        steps = error["at"]
        _check_failure(scenario, steps)
    done = finer(cut_at(scenario, steps))
    try:
        found, report = results_of(done)
    except DataError:  # at the end of the log, to which Flink does not come
        assert error is not None
        assert not scenario["rows"]
        return
    if error is not None:  # Flink has not come to the end of the tables
        kept = [number for number, step in enumerate(found["at"]) if step < steps]
        found = {name: [found[name][number] for number in kept] for name in ("rows", "at")}
    wanted = {"rows": scenario["rows"], "at": scenario["at"]}
    if _merges_elsewhere(scenario):
        found, wanted = ({**each, "rows": _without_merges(each["rows"])} for each in (found, wanted))
    if scenario["kind"] in BY_CLOCK:
        found["at"], wanted["at"] = by_clock(scenario, found["at"])
        moves, steps = False, NO_READING
    got, want = (steps_of(each, columns, steps, not moves) for each in (found, wanted))
    if scenario.get("compared") == "net":
        got, want = net_of(got), net_of(want)
    assert got == want, f"got {got}, want {want}"
    if error is None and not _counts_no_late_rows(scenario):
        late = sum(each.late for each in report.by_operator)
        if is_two_phase(scenario) and has_rows_of_several_windows(scenario):
            pass  # Flink counts late rows of a key as one, but in each of their windows
        elif is_two_phase(scenario):
            assert (late > 0) == (late_of(scenario) > 0)
            assert late >= late_of(scenario)
        elif has_rows_of_several_windows(scenario):
            assert late <= late_of(scenario)
        else:
            assert late == late_of(scenario)


def _check_failure(scenario: dict[str, Any], step: int) -> None:
    """Assert that the step at which Flink fails makes the job fail."""
    failing = stream_of(cut_at(scenario, step + 1), environment_of(scenario))
    try:
        failing.to_arrow()
    except DataError:
        return
    raise AssertionError(f"Flink fails at step {step}: {scenario['error']['message']}")
