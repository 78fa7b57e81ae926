"""Functions of JSON, as Flink's ``SqlJsonUtils`` and its code generation compute them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from flinkcore._internal.java.texts import double_text
from flinkcore.errors import UnsupportedOperationError
from flinkcore.sql.expressions.evaluation import Evaluation, by_row, function, scalar_of, strict, text_of
from flinkcore.sql.formats.json_documents import (
    json_quote,
    json_unquote,
    quoted,
    read_json,
    scalar_text,
    without_halves,
    write_json,
)
from flinkcore.sql.formats.json_paths import PathError, json_path
from flinkcore.sql.plan.rex import Literal, Rex, RexCall
from flinkcore.sql.types.logical_types import BINARIES, INTEGERS, TEXTS, LogicalType, Root
from flinkcore.sql.types.times import NANOS_OF_DAY, civil

# ---- values at a path


class _Empty(ValueError):
    """The outcome that ON EMPTY handles."""


def _symbols(call: RexCall) -> list[str]:
    return [
        str(each.value)
        for each in call.operands[2:]
        if isinstance(each, Literal) and each.type.root is Root.SYMBOL
    ]


def _path(call: RexCall) -> str | None:
    path = text_of(call.operands[1])
    if path is None:
        return f"{call.name} takes a constant path"
    try:
        json_path(path)
    except UnsupportedOperationError as error:
        return f"{call.name}: {error}"
    return None


def _value_at(text: str, path: str) -> Any:
    """Return the value of a document at a path; ValueError where ON ERROR decides, None where nothing is found."""
    compiled = json_path(path)
    try:
        document = read_json(text)
    except ValueError:
        if compiled.is_lax:
            return None
        raise
    return compiled.read(document)


@function("JSON_EXISTS", check=_path)
def json_exists(rows: Evaluation, call: RexCall) -> pa.Array:
    path = text_of(call.operands[1]) or ""
    on_error = (_symbols(call) or ["FALSE"])[0]

    def of_row(text: str) -> bool | None:
        try:
            return _value_at(text, path) is not None
        except ValueError as error:
            if on_error == "ERROR":
                raise ValueError(f"JSON_EXISTS finds nothing at {path!r} ({error})") from None
            return {"TRUE": True, "FALSE": False}.get(on_error)

    return by_row(rows, call, of_row, rows(call.operands[0]), fails=on_error == "ERROR")


_RETURNED: Final = frozenset((*TEXTS, Root.INT, Root.DOUBLE, Root.BOOLEAN))


def _behaviours(call: RexCall) -> dict[str, tuple[str, Any]]:
    """Return the behaviours of JSON_VALUE ON EMPTY and ON ERROR, each with its default."""
    found: dict[str, tuple[str, Any]] = {"EMPTY": ("NULL", None), "ERROR": ("NULL", None)}
    behaviour, default = "", None
    for operand in call.operands[2:]:
        assert isinstance(operand, Literal)
        if operand.type.root is not Root.SYMBOL:
            default = scalar_of(operand).as_py()
        elif operand.value in found and behaviour:
            found[operand.value] = (behaviour, default)
            behaviour, default = "", None
        else:
            behaviour = str(operand.value)
    return found


def _value_call(call: RexCall) -> str | None:
    if call.type.root not in _RETURNED:
        return f"JSON_VALUE RETURNING {call.type} is not supported in Flink either"
    if not all(isinstance(operand, Literal) for operand in call.operands[1:]):
        return "JSON_VALUE takes a constant path and constant defaults"
    return _path(call)


def _returned(value: Any, kind: LogicalType) -> Any:
    """Return a scalar as the type that is returned; a value of another class fails, as Flink's cast does."""
    if value is None:
        return None
    if kind.root in TEXTS:
        return without_halves(value if isinstance(value, str) else scalar_text(value))
    if kind.root is Root.BOOLEAN and isinstance(value, bool):
        return value
    if kind.root is Root.INT and type(value) is int and -(2**31) <= value < 2**31:
        return value
    if kind.root is Root.DOUBLE and isinstance(value, Decimal):
        return float(value)
    raise ValueError(f"{scalar_text(value)} is not of the type {kind} that JSON_VALUE returns")


@function("JSON_VALUE", check=_value_call)
def json_value(rows: Evaluation, call: RexCall) -> pa.Array:
    path = text_of(call.operands[1]) or ""
    is_lax = json_path(path).is_lax
    behaviours = _behaviours(call)

    def of_row(text: str) -> Any:
        try:
            value = _value_at(text, path)
            is_scalar = not isinstance(value, dict | list)
            if value is None or (is_lax and not is_scalar):
                behaviour, default = behaviours["EMPTY"]
                if behaviour == "ERROR":
                    raise _Empty("Empty result of JSON_VALUE function is not allowed")
                return _returned(default, call.type)
            if not is_scalar:
                raise PathError(
                    f"Strict jsonpath mode requires scalar value, and the actual value is {value}"
                )
        except _Empty:
            raise
        except ValueError as error:
            behaviour, default = behaviours["ERROR"]
            if behaviour == "ERROR":
                raise ValueError(f"JSON_VALUE at {path!r}: {error}") from None
            return _returned(default, call.type)
        return _returned(value, call.type)

    return by_row(rows, call, of_row, rows(call.operands[0]), fails=True)


def _query_call(call: RexCall) -> str | None:
    element = call.type.children[0][1].root if call.type.root is Root.ARRAY else Root.VARCHAR
    if element not in TEXTS:
        return f"JSON_QUERY RETURNING {call.type} is not supported"
    return _path(call)


@function("JSON_QUERY", check=_query_call)
def json_query(rows: Evaluation, call: RexCall) -> pa.Array:
    path = text_of(call.operands[1]) or ""
    is_lax = json_path(path).is_lax
    wrapper, on_empty, on_error = [*_symbols(call), "WITHOUT_ARRAY", "NULL", "NULL"][:3]
    wrapper = wrapper.removeprefix("WITH_")
    is_array = call.type.root is Root.ARRAY

    def instead(behaviour: str, message: str) -> Any:
        if behaviour == "ERROR":
            raise _Empty(f"JSON_QUERY at {path!r}: {message}")
        if is_array:
            return None if behaviour == "NULL" else []
        return {"EMPTY_ARRAY": "[]", "EMPTY_OBJECT": "{}"}.get(behaviour)

    def of_row(text: str) -> Any:
        try:
            value = _value_at(text, path)
            if value is not None and (
                wrapper == "UNCONDITIONAL_ARRAY"
                or (wrapper == "CONDITIONAL_ARRAY" and not isinstance(value, list))
            ):
                value = [value]
            is_scalar = not isinstance(value, dict | list)
            if value is None or (is_lax and is_scalar):
                return instead(on_empty, "Empty result of JSON_QUERY function is not allowed")
            if is_scalar or (is_array and not isinstance(value, list)):
                raise PathError(f"an array or object is required, and the actual value is {value}")
        except _Empty:
            raise
        except ValueError as error:
            return instead(on_error, str(error))
        if not is_array:
            return without_halves(write_json(value))
        return [
            each
            if each is None or isinstance(each, str)
            else write_json(each)
            if isinstance(each, dict | list)
            else scalar_text(each)
            for each in value
        ]

    return by_row(rows, call, of_row, rows(call.operands[0]), fails=True)


# ---- tests

_OF_KIND: Final[dict[str, Callable[[Any], bool]]] = {
    "VALUE": lambda value: True,
    "OBJECT": lambda value: isinstance(value, dict),
    "ARRAY": lambda value: isinstance(value, list),
    "SCALAR": lambda value: not isinstance(value, dict | list),
}


@function(*(f"IS {no}JSON {kind}" for kind in _OF_KIND for no in ("", "NOT ")))
def is_json(rows: Evaluation, call: RexCall) -> pa.Array:
    of_kind = _OF_KIND[call.name.rpartition(" ")[2]]
    negated = "NOT" in call.name

    def of_row(text: str) -> bool:
        try:
            return of_kind(read_json(text)) is not negated
        except ValueError:
            return negated

    return by_row(rows, call, of_row, rows(call.operands[0])).fill_null(negated)


# ---- texts

strict("JSON_QUOTE")(json_quote)
strict("JSON_UNQUOTE")(json_unquote)


# ---- values as JSON


def _writer(kind: LogicalType) -> Callable[[Any], str] | None:
    """Return a function that writes values of a type as JSON, or None if Flink does not write the type."""
    root = kind.root
    if root in TEXTS:
        return quoted
    if root in INTEGERS or root is Root.BOOLEAN:
        return scalar_text
    if root is Root.DECIMAL:
        return str
    if root in (Root.DOUBLE, Root.FLOAT):
        return _double
    if root in BINARIES:
        return lambda value: f'"{base64.b64encode(value).decode()}"'
    if root is Root.TIMESTAMP or root is Root.TIMESTAMP_LTZ:
        end = '"' if root is Root.TIMESTAMP else 'Z"'
        per_unit = {"ms": 10**6, "us": 10**3, "ns": 1}[kind.unit]
        return lambda value: f'"{_iso(value * per_unit)}{end}'
    writers = [_writer(child) for _, child in kind.children]
    if None in writers or root not in (Root.ARRAY, Root.ROW, Root.MAP):
        return None
    if root is Root.ARRAY:
        return lambda value: f"[{','.join(_or_null(writers[0], each) for each in value)}]"
    if root is Root.MAP:
        if kind.children[0][1].root not in TEXTS:
            return None
        return lambda value: _object({key: _or_null(writers[1], each) for key, each in value})
    names = [name for name, _ in kind.children]
    return lambda value: _object(
        {name: _or_null(write, value[name]) for name, write in zip(names, writers, strict=True)}
    )


def _or_null(write: Callable[[Any], str] | None, value: Any) -> str:
    assert write is not None
    return "null" if value is None else write(value)


def _object(fields: dict[str, str]) -> str:
    order = sorted(fields, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    return "{" + ",".join(f"{quoted(name)}:{fields[name]}" for name in order) + "}"


def _double(value: float) -> str:
    if value - value != 0:
        raise ValueError(f"{double_text(value)} cannot be written as JSON")
    return scalar_text(Decimal(double_text(value)))


def _iso(nanos: int) -> str:
    """Return a moment as ``DateTimeFormatter.ISO_LOCAL_DATE_TIME`` writes it: without zeros at the end."""
    days, within = divmod(nanos, NANOS_OF_DAY)
    year, month, day = civil(days)
    second, fraction = divmod(within, 10**9)
    date = f"{'+' if year > 9999 else ''}{year:04d}-{month:02d}-{day:02d}"
    text = f"{date}T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    digits = f"{fraction:09d}".rstrip("0")
    return f"{text}.{digits}" if digits else text


def _writable(call: RexCall) -> str | None:
    for operand in call.operands:
        if operand.type.contains(Root.MULTISET):
            return (
                f"{call.name} of {operand.type} is not supported, for its keys come in the order of a hash map in Flink"
                ": count its elements by GROUP BY, or UNNEST it"
            )
        if operand.type.root is not Root.SYMBOL and _writer(operand.type) is None:
            return f"{call.name} of {operand.type} is not supported in Flink either: CAST it to STRING"
    return None


def _texts_of(rows: Evaluation, rex: Rex) -> list[str | None]:
    """Return the values of an expression as JSON; None where they are null."""
    array = rows(rex)
    if isinstance(rex, RexCall) and rex.name in ("JSON_OBJECT", "JSON_ARRAY", "JSON"):
        found: list[str | None] = array.to_pylist()  # they are JSON already
        return found
    write = _writer(rex.type)
    assert write is not None, "checked when the plan was read"
    if rex.type.root in (Root.TIMESTAMP, Root.TIMESTAMP_LTZ):
        array = array.view(pa.int64())
    texts: list[str | None] = []
    for row, value in enumerate(array.to_pylist()):
        try:
            texts.append(None if value is None else write(value))
        except ValueError as error:
            rows.fail(row, str(error))
    return texts


def _no_nested_times(call: RexCall) -> str | None:
    if any(_has_times(operand.type, False) for operand in call.operands):
        return f"{call.name} of times within another value is not supported"
    return _writable(call)


def _has_times(kind: LogicalType, nested: bool) -> bool:
    if nested and kind.root in (Root.TIMESTAMP, Root.TIMESTAMP_LTZ):
        return True
    return any(_has_times(child, True) for _, child in kind.children)


@function("JSON_STRING", check=_no_nested_times)
def json_string(rows: Evaluation, call: RexCall) -> pa.Array:
    return pa.array(_texts_of(rows, call.operands[0]), pa.string())


@function("JSON")
def json_(rows: Evaluation, call: RexCall) -> pa.Array:
    """Return the text of a document as Flink writes it again in JSON_OBJECT and JSON_ARRAY."""

    def of_row(text: str) -> str:
        return "null" if not text.strip(" \t\r\n") else without_halves(write_json(read_json(text)))

    return by_row(rows, call, of_row, rows(call.operands[0]), fails=True)


@function("JSON_OBJECT", check=_no_nested_times)
def json_object(rows: Evaluation, call: RexCall) -> pa.Array:
    symbol, *operands = call.operands
    assert isinstance(symbol, Literal)
    columns = [_texts_of(rows, operand) for operand in operands[1::2]]
    names = [rows(operand).to_pylist() for operand in operands[::2]]
    found = []
    for row in range(rows.num_rows):
        fields = {
            name[row]: column[row] or "null"
            for name, column in zip(names, columns, strict=True)
            if column[row] is not None or symbol.value == "NULL"
        }
        found.append(_object(fields))
    return pa.array(found, pa.string())


@function("JSON_ARRAY", check=_no_nested_times)
def json_array(rows: Evaluation, call: RexCall) -> pa.Array:
    symbol, *operands = call.operands
    assert isinstance(symbol, Literal)
    columns = [_texts_of(rows, operand) for operand in operands]
    found = []
    for row in range(rows.num_rows):
        values = [
            column[row] or "null" for column in columns if column[row] is not None or symbol.value == "NULL"
        ]
        found.append(f"[{','.join(values)}]")
    return pa.array(found, pa.string())
