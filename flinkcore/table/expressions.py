"""PyFlink's ``pyflink.table.expressions``: functions that make expressions."""

from __future__ import annotations

from typing import Any, Final

from flinkcore._internal.python.missing_features import refuse_name
from flinkcore.table.calls import Call, called, java_name
from flinkcore.table.expression import Expression, JsonOnNull
from flinkcore.table.udf import DeclaredFunction

_FUNCTIONS: Final = (
    "and_ array atan2 coalesce col concat concat_ws convert_tz current_database current_date current_time "
    "current_timestamp current_watermark date_format descriptor e from_unixtime if_then_else json json_string local_time "
    "local_timestamp map_ map_from_arrays negative not_ null_of or_ pi range_ row row_interval source_watermark "
    "temporal_overlaps timestamp_diff to_date to_timestamp to_timestamp_ltz unix_timestamp uuid with_all_columns "
    "with_columns without_columns"
).split()
"""Static methods of Flink's ``Expressions`` that PyFlink has as functions of the same arguments."""

__all__ = [
    "CURRENT_RANGE",
    "CURRENT_ROW",
    "UNBOUNDED_RANGE",
    "UNBOUNDED_ROW",
    "call",
    "call_sql",
    "json_array",
    "json_array_agg",
    "json_object",
    "json_object_agg",
    "lag",
    "lead",
    "lit",
    "log",
    "rand",
    "rand_integer",
    *_FUNCTIONS,
]


def _of(name: str, *arguments: Any) -> Expression[Any]:
    """Return the call of a function; defaults of PyFlink at its end are left out."""
    given = list(arguments)
    while given and given[-1] is None:
        given.pop()
    return Expression(called("Expressions", name, java_name(name), tuple(given)))


def _function(name: str) -> Any:
    def function(*arguments: Any) -> Expression[Any]:
        return _of(name, *arguments)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return the expression ``{java_name(name)}`` of Flink's ``Expressions``."
    return function


for _name in _FUNCTIONS:
    globals()[_name] = _function(_name)


def _constant(name: str) -> Expression[Any]:
    return Expression(Call(name, "Expressions", (), name))


UNBOUNDED_ROW: Final = _constant("UNBOUNDED_ROW")
UNBOUNDED_RANGE: Final = _constant("UNBOUNDED_RANGE")
CURRENT_ROW: Final = _constant("CURRENT_ROW")
CURRENT_RANGE: Final = _constant("CURRENT_RANGE")


def lit(v: Any, data_type: Any = None) -> Expression[Any]:
    """Return a constant, perhaps of a type; without one, null has no type."""
    return Expression(called("Expressions", "lit", "lit", (v,) if data_type is None else (v, data_type)))


def log(v: Any, base: Any = None) -> Expression[Any]:
    """Return the natural logarithm, or the one to a base."""
    return _of("log", v) if base is None else _of("log", base, v)


def rand(seed: Any = None) -> Expression[Any]:
    """Return a random number from 0 to below 1."""
    return _of("rand", seed)


def rand_integer(bound: Any, seed: Any = None) -> Expression[Any]:
    """Return a random whole number from 0 to below a bound."""
    return _of("rand_integer", bound) if seed is None else _of("rand_integer", seed, bound)


def json_object(on_null: JsonOnNull = JsonOnNull.NULL, *args: Any) -> Expression[Any]:
    """Return a JSON object of keys and values."""
    return Expression(called("Expressions", "json_object", "jsonObject", (on_null, *args)))


def json_object_agg(on_null: JsonOnNull, key_expr: Any, value_expr: Any) -> Expression[Any]:
    """Return a JSON object of the keys and values of all rows."""
    return _of("json_object_agg", on_null, key_expr, value_expr)


def json_array(on_null: JsonOnNull = JsonOnNull.ABSENT, *args: Any) -> Expression[Any]:
    """Return a JSON array of values."""
    return Expression(called("Expressions", "json_array", "jsonArray", (on_null, *args)))


def json_array_agg(on_null: JsonOnNull, item_expr: Any) -> Expression[Any]:
    """Return a JSON array of the values of all rows."""
    return _of("json_array_agg", on_null, item_expr)


def lag(expr: Any, offset: Any = 1, default: Any = None) -> Expression[Any]:
    """Return the value of the row so many rows before, of a window of OVER."""
    return _of("lag", expr, offset, default)


def lead(expr: Any, offset: Any = 1, default: Any = None) -> Expression[Any]:
    """Return the value of the row so many rows after, of a window of OVER."""
    return _of("lead", expr, offset, default)


def call(f: str | DeclaredFunction, *args: Any) -> Expression[Any]:
    """Return the call of a function by its name, or of one in Python."""
    return f(*args) if isinstance(f, DeclaredFunction) else _of("call", f, *args)


def call_sql(sql_expression: str) -> Expression[Any]:
    """Return an expression of SQL text."""
    return _of("call_sql", sql_expression)


def __getattr__(name: str) -> Any:
    """Report what to use instead of a name of PyFlink's that flinkcore does not have."""
    refuse_name(__name__, name)
