"""Scans of tables: logs in place of the connectors of a plan, with values of the types that the plan declares."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.expressions import ColumnExpression, RowFailure, TimeRequirement
from flinkcore._internal.io.stores import ENVIRONMENT
from flinkcore._internal.io.table_directories import TableSearch
from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore.common.rowtime_watermarks import RowtimeWatermarksSupplier
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.datastream.graph.declared_messages import ignores_errors
from flinkcore.datastream.graph.log_settings import LogSettings
from flinkcore.datastream.graph.transformations import (
    EventLogSource,
    OneInputTransformation,
    Transformation,
)
from flinkcore.datastream.logs.log_stream import LogStream
from flinkcore.errors import ConfigurationError
from flinkcore.sql.expressions.casts import cast_text
from flinkcore.sql.expressions.evaluation import all_true, nulls
from flinkcore.sql.nodes.messages import declared_messages, has_changes
from flinkcore.sql.nodes.rows import ARRIVAL, Program, Rows, unique_names
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.plan.rex import InputRef, Literal, Rex, RexCall
from flinkcore.sql.plan.settings import SOURCE_IDLE_TIMEOUT, duration_ms
from flinkcore.sql.types.logical_types import TEXTS, LogicalType, Root, type_of

if TYPE_CHECKING:
    from flinkcore.datastream.stream_execution_environment import StreamExecutionEnvironment

_INSTANT: Final = LogicalType(Root.TIMESTAMP_LTZ, precision=3)


@dataclass(frozen=True, eq=False)
class ScannedColumn(ColumnExpression):
    """A column of a log as one of a table: its values have the type that the plan declares; picklable.

    Attributes
    ----------
    name : str
        Column of the log.
    type : LogicalType
        Type in the plan.
    is_lenient : bool
        Whether a value that is not of the type is null, as with ``ignore-parse-errors``.
    is_exact : bool
        Whether digits of a time that the type does not have are refused, and not cut off.
    """

    name: str
    type: LogicalType
    is_lenient: bool = False
    is_exact: bool = False

    @property
    def required_columns(self) -> frozenset[str]:
        return frozenset([self.name])

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        array, wanted = batch.column(self.name), self.type.arrow
        if array.type.equals(wanted):
            return array
        try:
            return self._converted(array, wanted)
        except (pa.ArrowException, ValueError) as error:
            if self.is_lenient:
                return pa.concat_arrays(
                    [self._of_row(array.slice(row, 1), wanted) for row in range(len(array))]
                )
            raise RowFailure(
                self._failing_row(array, wanted), f"a value is not {self.type}: {error}"
            ) from error

    def _converted(self, array: pa.Array, wanted: pa.DataType) -> pa.Array:
        given = array.type
        if pa.types.is_string(given) and self.type.root not in TEXTS:
            return cast_text(array, self.type)
        if pa.types.is_timestamp(given) and pa.types.is_timestamp(wanted):
            # Further digits are cut off, toward the past; the instants of a zone are local times of UTC.
            times = array if self.is_exact else pc.floor_temporal(array, unit=_UNITS[wanted.unit])
            return times.cast(pa.timestamp(wanted.unit, "UTC" if given.tz else None)).cast(wanted)
        if pa.types.is_integer(given) and pa.types.is_timestamp(wanted):
            return array.cast(pa.int64()).cast(pa.timestamp("ms")).cast(wanted)
        if pa.types.is_floating(given) and pa.types.is_floating(wanted):
            return array.cast(wanted, safe=False)
        if pa.types.is_integer(given) and pa.types.is_decimal(wanted):
            return array.cast(pa.decimal128(38, wanted.scale)).cast(
                wanted
            )  # whatever fits, not only small types
        if pa.types.is_duration(given):
            return array.cast(pa.duration("ms")).cast(pa.int64()).cast(wanted)
        return array.cast(wanted)

    def _of_row(self, value: pa.Array, wanted: pa.DataType) -> pa.Array:
        try:
            return self._converted(value, wanted)
        except (pa.ArrowException, ValueError):
            return pa.nulls(1, wanted)

    def _failing_row(self, array: pa.Array, wanted: pa.DataType) -> int:
        for row in range(len(array)):
            try:
                self._converted(array.slice(row, 1), wanted)
            except (pa.ArrowException, ValueError):
                return row
        return 0

    def __str__(self) -> str:
        return f"{self.name} as {self.type}"


_UNITS: Final = {"s": "second", "ms": "millisecond", "us": "microsecond", "ns": "nanosecond"}
_OF_SOURCE: Final = frozenset(
    (
        *("ProjectPushDown", "ReadingMetadata", "FilterPushDown", "WatermarkPushDown", "SourceWatermark"),
        "LimitPushDown",  # the node after the scan limits, too
    )
)


def table_scan(program: Program, node: PlanNode) -> Rows:
    """Return the rows of the log that stands for a table."""
    source = node.json["scanTableSource"]
    table = source["table"]
    schema = table.get("resolvedTable", {}).get("schema", {})
    abilities: dict[str, Any] = {each["type"]: each for each in source.get("abilities") or ()}
    for ability in abilities:
        if ability not in _OF_SOURCE:
            raise node.refuse(
                f"{ability} is not supported: the source would leave rows out by itself",
                "Compile the plan against a connector without it, such as kafka",
            )
    if "SourceWatermark" in abilities:
        raise node.refuse(
            "SOURCE_WATERMARK() is not supported", "Declare WATERMARK FOR ts AS ts - INTERVAL ..."
        )
    _check_messages(node, table)
    options = table.get("resolvedTable", {}).get("options") or {}
    is_stream = options.get("connector") == "stream"
    scan = partial(ScannedColumn, is_lenient=ignores_errors(options), is_exact=is_stream)
    kinds = {each["name"]: each for each in schema.get("columns", ())}
    stream = log_of_table(program, table)
    if program.expires and ((log := event_log_of(stream)) is None or log.arrival is None):
        raise node.refuse(
            "state of the plan expires by processing time, which is the rows' arrival, and its log has none",
            "Give from_event_log(..., arrival='column'), or plan the query with SET 'table.exec.state.ttl' = '0 ms'",
        )
    names = unique_names(node)
    scanned = {
        name: scan(column, kind.with_nullable(True))
        for name, (column, kind) in zip(names, _produced(node, abilities), strict=True)
    }
    if "FilterPushDown" in abilities:
        stream = _filtered(program, node, stream, abilities["FilterPushDown"], kinds, scan)
    pushed = abilities.get("WatermarkPushDown")
    carried: tuple[str, ...] = ()
    changes: frozenset[str] = frozenset()
    if has_changes(options):
        carried, changes = (ROW_KIND,), frozenset(("+I", "-U", "+U", "-D"))
    kinds_of = tuple(kind for _, kind in node.fields)
    if program.reads_arrivals:
        rows = _with_arrivals(program, node, stream, scanned, kinds_of, carried)
    else:
        rows = Rows(stream.select(*carried, **scanned), names, kinds_of)
    rows = replace(rows, changes=changes)
    if pushed is None or program.by_arrival:
        return rows
    return _with_pushed_watermark(program, node, rows, pushed)


def _check_messages(node: PlanNode, table: Mapping[str, Any]) -> None:
    """Refuse what a table declares about its messages and a log cannot give."""
    options = table.get("resolvedTable", {}).get("options") or {}
    if options.get("connector", "").startswith("upsert-") and ignores_errors(options):
        raise node.refuse(
            "ignore-parse-errors of an upsert connector is not supported, for deletions would be dropped, too",
            "Leave the option out",
        )
    for key, value in options.items():
        if key.endswith("fail-on-missing-field") and value == "true":
            raise node.refuse(
                f"{key} is not supported: a field that a message lacks is null",
                "Leave the option out, and filter by IS NOT NULL",
            )


def _with_arrivals(
    program: Program,
    node: PlanNode,
    stream: LogStream,
    scanned: Mapping[str, ScannedColumn],
    kinds: tuple[LogicalType, ...],
    carried: Sequence[str],
) -> Rows:
    """Return rows with their arrivals, if the log has them; in a plan of processing time they are the timestamps."""
    log = event_log_of(stream)
    if log is None or log.arrival is None or log.arrival_unit not in (None, "ms"):
        if program.by_arrival:
            raise node.refuse(
                "a node of the plan waits for the processing time, which is the arrival of rows, and its log has "
                "none, or not in ms",
                "Give from_event_log(..., arrival='column', split=None)",
            )
        return Rows(stream.select(*carried, **scanned), tuple(scanned), kinds)
    raw = log.arrival
    if not isinstance(raw, str):
        stream, raw = stream.with_columns(**{ARRIVAL: raw}), ARRIVAL
    arrival = ScannedColumn(raw, _INSTANT)
    stream = stream.select(*carried, **scanned, **{ARRIVAL: arrival})
    rows = Rows(stream, tuple(scanned), kinds, has_arrival=True)
    if not program.by_arrival:
        return rows
    if log.split is not None:
        raise node.refuse(
            "a node of the plan waits for the processing time, and the splits of its log have a clock each",
            "Give from_event_log(..., split=None), with rows in the order of their arrivals",
        )
    # A row that arrives with the last millisecond of a window is still in it: the clock has then passed it not yet.
    strategy = WatermarkStrategy.for_generator(RowtimeWatermarksSupplier(1, 0)).with_timestamp_assigner(
        ARRIVAL
    )
    if program.has_one_clock:
        strategy = strategy.with_idleness(1)
    return replace(rows, stream=rows.stream.assign_timestamps_and_watermarks(strategy))


def event_log_of(stream: LogStream) -> LogSettings | None:
    """Return the event log of which a stream has the rows, or None of another stream."""
    source: Transformation = stream._transformation
    while isinstance(source, OneInputTransformation):
        source = source.input
    return source.log if isinstance(source, EventLogSource) else None


def _produced(node: PlanNode, abilities: Mapping[str, Any]) -> list[tuple[str, LogicalType]]:
    """Return the columns that the source produces; those of metadata, which come last, by their keys."""
    for ability in ("ReadingMetadata", "ProjectPushDown"):
        produced = abilities.get(ability, {}).get("producedType")
        if produced is not None:
            columns = list(type_of(produced).children)
            keys = abilities.get("ReadingMetadata", {}).get("metadataKeys") or ()
            first = len(columns) - len(keys)
            return [
                (keys[number - first] if number >= first else name, kind)
                for number, (name, kind) in enumerate(columns)
            ]
    return list(node.fields)


def _filtered(
    program: Program,
    node: PlanNode,
    stream: LogStream,
    pushed: Mapping[str, Any],
    kinds: Mapping[str, Any],
    scan: Callable[[str, LogicalType], ScannedColumn],
) -> LogStream:
    from flinkcore.sql.expressions.sql_expression import SqlExpression

    physical = [name for name, kind in kinds.items() if "dataType" in kind]
    typed = {
        f"{name}#scan": scan(name, type_of(kinds[name]["dataType"]).with_nullable(True)) for name in physical
    }
    for written in pushed["predicates"]:
        condition = program.rex(node, written)
        stream = stream.filter(
            _Pushed(SqlExpression(condition, tuple(typed), program.zone), tuple(typed.items()))
        )
    return stream


@dataclass(frozen=True, eq=False)
class _Pushed(ColumnExpression):
    """A condition of a scan, over the columns of the table before the projection."""

    condition: ColumnExpression
    columns: tuple[tuple[str, ScannedColumn], ...]

    @property
    def required_columns(self) -> frozenset[str]:
        return frozenset(
            column.name for name, column in self.columns if name in self.condition.required_columns
        )

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        needed = [(name, column) for name, column in self.columns if name in self.condition.required_columns]
        arrays = [column.evaluate(batch) for _, column in needed]
        if not needed:
            return self.condition.evaluate(batch)
        return self.condition.evaluate(pa.RecordBatch.from_arrays(arrays, [name for name, _ in needed]))

    def __str__(self) -> str:
        return str(self.condition)


def names_of(identifier: str) -> list[str]:
    """Return the names of a table, the short one first."""
    parts = [part.replace("``", "`") for part in re.findall(r"`((?:[^`]|``)*)`", identifier)] or [identifier]
    return [parts[-1], ".".join(parts), identifier]


def log_of_table(program: Program, table: Mapping[str, Any]) -> LogStream:
    names = names_of(table["identifier"])
    options = table.get("resolvedTable", {}).get("options") or {}
    given = program.tables.log_of(names, options)
    if given is None:
        known = ", ".join(program.tables.logs) or "none"
        raise ConfigurationError(
            f"the plan reads the table {names[0]}{_described(options)}, and tables= has {known}. Give "
            f"tables={{'{names[0]}': ...}}: a path, Arrow data or env.from_event_log(...)"
        )
    if isinstance(given, LogStream):
        return _with_messages(given, table)
    arrivals = program.tables.arrivals
    arrival = next((arrivals[name] for name in names if name in arrivals), None)
    return _new_log(program.environment, table, given, arrival)


def _with_messages(stream: LogStream, table: Mapping[str, Any]) -> LogStream:
    """Return a log with the messages that its table declares, if it is a log as it was recorded."""
    source = stream._transformation
    options = table.get("resolvedTable", {}).get("options") or {}
    messages = declared_messages(_physical_columns(table), options)
    if messages is None or not isinstance(source, EventLogSource) or source.decode is not None:
        return stream
    return stream._environment._log_stream(replace(source, decode=messages))


def _described(options: Mapping[str, str]) -> str:
    """Return what to know about a connector in whose place no log is given."""
    connector = options.get("connector")
    if connector is None:
        return ""
    if connector == "datagen":
        return " of the connector datagen, whose rows are random in Flink, too"
    return f" of the connector {connector}, which is replaced by a log"


def _new_log(
    environment: StreamExecutionEnvironment, table: Mapping[str, Any], data: Any, arrival: str | None
) -> LogStream:
    columns = _physical_columns(table)
    texts = {name: "STRING" for name, kind in columns if kind.root in TEXTS}
    options = table.get("resolvedTable", {}).get("options") or {}
    messages = declared_messages(columns, options)
    is_path = isinstance(data, str | os.PathLike | list) and not _is_lake_table(data)
    decode: Any = messages
    return environment.from_event_log(
        data,
        timestamp=pc.scalar(0),
        timestamp_unit="ms",
        schema=texts if is_path and texts and messages is None else None,
        arrival=arrival,
        decode=decode,
        on_bad_row="drop" if ignores_errors(options) else "fail",
    )


def _is_lake_table(location: Any) -> bool:
    """Return whether a path is, or lies in, the directory of a table, which has types of its own."""
    if isinstance(location, list):
        return False
    place = ENVIRONMENT.locate(location)
    return TableSearch().around(place.filesystem, place.path, is_file=False) is not None


def _physical_columns(table: Mapping[str, Any]) -> list[tuple[str, LogicalType]]:
    columns = table.get("resolvedTable", {}).get("schema", {}).get("columns", ())
    return [
        (each["name"], type_of(each["dataType"]))
        for each in columns
        if "dataType" in each and each.get("kind") != "METADATA"
    ]


# ---- watermarks


@dataclass(frozen=True, eq=False)
class RequiredRowtime(TimeRequirement):
    """True for every row; fails for a null rowtime, as a watermark assigner does. Picklable."""

    column: str

    @property
    def required_columns(self) -> frozenset[str]:
        return frozenset([self.column])

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        array = batch.column(self.column)
        if array.null_count:
            raise RowFailure(int(nulls(array).argmax()), "the rowtime is null")
        return all_true(batch.num_rows)

    def __str__(self) -> str:
        return f"{self.column} is a rowtime"


def delay_of(program: Program, node: PlanNode, written: Mapping[str, Any], rowtime: int) -> int:
    """Return the delay in ms of a watermark expression: a rowtime column minus an interval.

    Raises
    ------
    UnsupportedOperationError
        If it is another one.
    """
    rex: Rex = program.rex(node, written)
    delay = 0
    while isinstance(rex, RexCall) and rex.name in ("-", "+") and len(rex.operands) == 2:
        rest, amount = rex.operands
        if not isinstance(amount, Literal) or amount.type.root is not Root.INTERVAL_MS:
            break
        delay += int(amount.value) if rex.name == "-" else -int(amount.value)
        rex = rest
    while isinstance(rex, RexCall) and rex.name == "CAST" and rex.type.root is rex.operands[0].type.root:
        (rex,) = rex.operands
    if isinstance(rex, InputRef) and rex.index == rowtime:
        return delay
    raise node.refuse(
        f"the watermark {rex} is not supported", "Declare WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"
    )


def watermark_assigner(program: Program, node: PlanNode, rows: Rows) -> Rows:
    """Return rows with the timestamps and watermarks that a table declares."""
    rowtime = node.json["rowtimeFieldIndex"]
    delay = delay_of(program, node, node.json["watermarkExpr"], rowtime)
    if program.by_arrival or not program.has_event_time:
        required = RequiredRowtime(rows.columns[rowtime])
        return replace(
            rows, stream=rows.stream.filter(required), types=tuple(kind for _, kind in node.fields)
        )
    if duration_ms(SOURCE_IDLE_TIMEOUT, program.settings):
        raise node.refuse(
            f"{SOURCE_IDLE_TIMEOUT.key()} is supported where the connector generates watermarks, as kafka without a "
            "computed rowtime, and not where an operator assigns them",
            "Plan the query with such a connector, or leave the setting out",
        )
    interval = program.environment.get_config().get_auto_watermark_interval()
    supplier = RowtimeWatermarksSupplier(delay, interval)
    strategy = WatermarkStrategy.for_generator(supplier).with_timestamp_assigner(rows.columns[rowtime])
    stream = rows.stream.assign_timestamps_and_watermarks(strategy)
    kinds = tuple(kind for _, kind in node.fields)
    return replace(rows, stream=stream, types=kinds, times=frozenset((rowtime,)))


def _with_pushed_watermark(program: Program, node: PlanNode, rows: Rows, pushed: Mapping[str, Any]) -> Rows:
    from flinkcore.sql.plan.rex import input_refs, rex_of

    referred = set(input_refs(rex_of(pushed["watermarkExpr"])))
    if len(referred) != 1:
        raise node.refuse(
            "its watermark does not depend on one column", "Declare WATERMARK FOR ts AS ts - INTERVAL ..."
        )
    (rowtime,) = referred
    supplier = RowtimeWatermarksSupplier(
        delay_of(program, node, pushed["watermarkExpr"], rowtime), None, MIN_TIMESTAMP
    )
    strategy = WatermarkStrategy.for_generator(supplier).with_timestamp_assigner(rows.columns[rowtime])
    idle_ms = int(pushed.get("idleTimeoutMillis") or 0)
    if idle_ms > 0:
        strategy = strategy.with_idleness(idle_ms)
    stream = rows.stream.assign_timestamps_and_watermarks(strategy)
    return replace(rows, stream=stream, times=frozenset((rowtime,)))
