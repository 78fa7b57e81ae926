"""PyFlink's ``pyflink.table.expressions``: functions that make expressions."""

from __future__ import annotations

from typing import Any, Final

from flinkcore._internal.python.missing_features import refuse_name
from flinkcore.table.calls import Call, called, java_name
from flinkcore.table.expression import Expression, JsonOnNull, TimePointUnit
from flinkcore.table.types import DataType
from flinkcore.table.udf import DeclaredFunction

__all__ = [
    "CURRENT_RANGE",
    "CURRENT_ROW",
    "UNBOUNDED_RANGE",
    "UNBOUNDED_ROW",
    "and_",
    "array",
    "atan2",
    "call",
    "call_sql",
    "coalesce",
    "col",
    "concat",
    "concat_ws",
    "convert_tz",
    "current_database",
    "current_date",
    "current_time",
    "current_timestamp",
    "current_watermark",
    "date_format",
    "descriptor",
    "e",
    "from_unixtime",
    "if_then_else",
    "json",
    "json_array",
    "json_array_agg",
    "json_object",
    "json_object_agg",
    "json_string",
    "lag",
    "lead",
    "lit",
    "local_time",
    "local_timestamp",
    "log",
    "map_",
    "map_from_arrays",
    "negative",
    "not_",
    "null_of",
    "or_",
    "pi",
    "rand",
    "rand_integer",
    "range_",
    "row",
    "row_interval",
    "source_watermark",
    "temporal_overlaps",
    "timestamp_diff",
    "to_date",
    "to_timestamp",
    "to_timestamp_ltz",
    "unix_timestamp",
    "uuid",
    "with_all_columns",
    "with_columns",
    "without_columns",
]


def _of(name: str, *arguments: Any) -> Expression[Any]:
    return Expression(called("Expressions", name, java_name(name), arguments))


def _given(name: str, *arguments: Any) -> Expression[Any]:
    """Return the call of a function without the arguments at the end that are None, as they are by default."""
    given = list(arguments)
    while given and given[-1] is None:
        given.pop()
    return _of(name, *given)


def _constant(name: str) -> Expression[Any]:
    return Expression(Call(name, "Expressions", (), name))


UNBOUNDED_ROW: Final = _constant("UNBOUNDED_ROW")
UNBOUNDED_RANGE: Final = _constant("UNBOUNDED_RANGE")
CURRENT_ROW: Final = _constant("CURRENT_ROW")
CURRENT_RANGE: Final = _constant("CURRENT_RANGE")


def col(name: str) -> Expression[Any]:
    """Return a column."""
    return _of("col", name)


def and_(predicate0: Any, predicate1: Any, *predicates: Any) -> Expression[Any]:
    """Return whether all conditions are met."""
    return _of("and_", predicate0, predicate1, *predicates)


def or_(predicate0: Any, predicate1: Any, *predicates: Any) -> Expression[Any]:
    """Return whether a condition is met."""
    return _of("or_", predicate0, predicate1, *predicates)


def not_(expression: Any) -> Expression[Any]:
    """Return whether a condition is not met; null stays null."""
    return _of("not_", expression)


def range_(start: Any, end: Any) -> Expression[Any]:
    """Return the columns from one to another, by name or by number from 1 on, for ``with_columns``."""
    return _of("range_", start, end)


def array(head: Any, *tail: Any) -> Expression[Any]:
    """Return an array of values."""
    return _of("array", head, *tail)


def row(head: Any, *tail: Any) -> Expression[Any]:
    """Return a row of values."""
    return _of("row", head, *tail)


def map_(key: Any, value: Any, *tail: Any) -> Expression[Any]:
    """Return a map of keys and values, one after the other."""
    return _of("map_", key, value, *tail)


def map_from_arrays(key: Any, value: Any) -> Expression[Any]:
    """Return a map of an array of keys and one of values."""
    return _of("map_from_arrays", key, value)


def concat(first: Any, *others: Any) -> Expression[Any]:
    """Return texts one after the other."""
    return _of("concat", first, *others)


def concat_ws(separator: Any, first: Any, *others: Any) -> Expression[Any]:
    """Return texts one after the other, with a separator between them."""
    return _of("concat_ws", separator, first, *others)


def coalesce(*args: Any) -> Expression[Any]:
    """Return the first value that is not null."""
    return _of("coalesce", *args)


def if_then_else(condition: Any, if_true: Any, if_false: Any) -> Expression[Any]:
    """Return one value if a condition is met, or else another one."""
    return _of("if_then_else", condition, if_true, if_false)


def null_of(data_type: DataType) -> Expression[Any]:
    """Return null of a type."""
    return _of("null_of", data_type)


def negative(v: Any) -> Expression[Any]:
    """Return a number with the other sign."""
    return _of("negative", v)


def atan2(y: Any, x: Any) -> Expression[Any]:
    """Return the angle of a point in radians."""
    return _of("atan2", y, x)


def pi() -> Expression[Any]:
    """Return the number pi."""
    return _of("pi")


def e() -> Expression[Any]:
    """Return Euler's number."""
    return _of("e")


def uuid() -> Expression[Any]:
    """Return a random UUID."""
    return _of("uuid")


def current_database() -> Expression[Any]:
    """Return the name of the current database."""
    return _of("current_database")


def current_date() -> Expression[Any]:
    """Return the day by UTC."""
    return _of("current_date")


def current_time() -> Expression[Any]:
    """Return the time of day by UTC."""
    return _of("current_time")


def current_timestamp() -> Expression[Any]:
    """Return the point in time."""
    return _of("current_timestamp")


def current_watermark(rowtimeAttribute: Any) -> Expression[Any]:
    """Return the watermark of a rowtime, or null."""
    return _of("current_watermark", rowtimeAttribute)


def local_time() -> Expression[Any]:
    """Return the time of day in the zone of the session."""
    return _of("local_time")


def local_timestamp() -> Expression[Any]:
    """Return date and time in the zone of the session."""
    return _of("local_timestamp")


def source_watermark() -> Expression[Any]:
    """Return the watermark of the source, in a schema."""
    return _of("source_watermark")


def to_date(date_str: Any, format: Any = None) -> Expression[Any]:
    """Return the day that a text has, by default as ``yyyy-MM-dd``."""
    return _given("to_date", date_str, format)


def to_timestamp(timestamp_str: Any, format: Any = None) -> Expression[Any]:
    """Return date and time that a text has, by default as ``yyyy-MM-dd HH:mm:ss``."""
    return _given("to_timestamp", timestamp_str, format)


def to_timestamp_ltz(*args: Any) -> Expression[Any]:
    """Return the point in time that a number, with its precision, or a text has."""
    return _of("to_timestamp_ltz", *args)


def date_format(timestamp: Any, format: Any) -> Expression[Any]:
    """Return date and time as text."""
    return _of("date_format", timestamp, format)


def convert_tz(date_str: Any, tz_from: Any, tz_to: Any) -> Expression[Any]:
    """Return date and time, as text, in another time zone."""
    return _of("convert_tz", date_str, tz_from, tz_to)


def from_unixtime(unixtime: Any, format: Any = None) -> Expression[Any]:
    """Return seconds since the epoch as text, in the zone of the session."""
    return _given("from_unixtime", unixtime, format)


def unix_timestamp(date_str: Any = None, format: Any = None) -> Expression[Any]:
    """Return the seconds since the epoch, now or of a text."""
    return _given("unix_timestamp", date_str, format)


def timestamp_diff(time_point_unit: TimePointUnit, time_point1: Any, time_point2: Any) -> Expression[Any]:
    """Return the time between two points, in a unit."""
    return _of("timestamp_diff", time_point_unit, time_point1, time_point2)


def temporal_overlaps(
    left_time_point: Any, left_temporal: Any, right_time_point: Any, right_temporal: Any
) -> Expression[Any]:
    """Return whether two intervals have a point in common."""
    return _of("temporal_overlaps", left_time_point, left_temporal, right_time_point, right_temporal)


def row_interval(rows: int) -> Expression[Any]:
    """Return an interval of rows."""
    return _of("row_interval", rows)


def descriptor(*column_names: str) -> Expression[Any]:
    """Return names of columns, of a table function."""
    return _of("descriptor", *column_names)


def json(value: Any) -> Expression[Any]:
    """Return a text as JSON within other JSON."""
    return _of("json", value)


def json_string(value: Any) -> Expression[Any]:
    """Return a value as a text of JSON."""
    return _of("json_string", value)


def with_all_columns() -> Expression[Any]:
    """Return all columns."""
    return _of("with_all_columns")


def with_columns(head: Any, *tails: Any) -> Expression[Any]:
    """Return columns by name, number or range."""
    return _of("with_columns", head, *tails)


def without_columns(head: Any, *tails: Any) -> Expression[Any]:
    """Return all columns but some, by name, number or range."""
    return _of("without_columns", head, *tails)


def lit(v: Any, data_type: Any = None) -> Expression[Any]:
    """Return a constant, perhaps of a type; without one, null has no type."""
    return _of("lit", v) if data_type is None else _of("lit", v, data_type)


def log(v: Any, base: Any = None) -> Expression[Any]:
    """Return the natural logarithm, or the one to a base."""
    return _of("log", v) if base is None else _of("log", base, v)


def rand(seed: Any = None) -> Expression[Any]:
    """Return a random number from 0 to below 1."""
    return _given("rand", seed)


def rand_integer(bound: Any, seed: Any = None) -> Expression[Any]:
    """Return a random whole number from 0 to below a bound."""
    return _of("rand_integer", bound) if seed is None else _of("rand_integer", seed, bound)


def json_object(on_null: JsonOnNull = JsonOnNull.NULL, *args: Any) -> Expression[Any]:
    """Return a JSON object of keys and values."""
    return _of("json_object", on_null, *args)


def json_object_agg(on_null: JsonOnNull, key_expr: Any, value_expr: Any) -> Expression[Any]:
    """Return a JSON object of the keys and values of all rows."""
    return _of("json_object_agg", on_null, key_expr, value_expr)


def json_array(on_null: JsonOnNull = JsonOnNull.ABSENT, *args: Any) -> Expression[Any]:
    """Return a JSON array of values."""
    return _of("json_array", on_null, *args)


def json_array_agg(on_null: JsonOnNull, item_expr: Any) -> Expression[Any]:
    """Return a JSON array of the values of all rows."""
    return _of("json_array_agg", on_null, item_expr)


def lag(expr: Any, offset: Any = 1, default: Any = None) -> Expression[Any]:
    """Return the value of the row so many rows before, of a window of OVER."""
    return _given("lag", expr, offset, default)


def lead(expr: Any, offset: Any = 1, default: Any = None) -> Expression[Any]:
    """Return the value of the row so many rows after, of a window of OVER."""
    return _given("lead", expr, offset, default)


def call(f: str | DeclaredFunction, *args: Any) -> Expression[Any]:
    """Return the call of a function by its name, or of one in Python."""
    return f(*args) if isinstance(f, DeclaredFunction) else _of("call", f, *args)


def call_sql(sql_expression: str) -> Expression[Any]:
    """Return an expression of SQL text."""
    return _of("call_sql", sql_expression)


def __getattr__(name: str) -> Any:
    """Report what to use instead of a name of PyFlink's that flinkcore does not have."""
    refuse_name(__name__, name)
