"""States of any types that are written as savepoints are read back as they were."""

from __future__ import annotations

import tempfile
from datetime import datetime, timezone
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from equipment.rewritten_savepoints import written_operator
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore import savepoints
from flinkcore.savepoints import ReadSettings
from flinkcore.savepoints.keyed_state import KeyedState
from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.serializers import basic, times
from flinkcore.savepoints.serializers.composite import (
    BufferEntrySerializer,
    EitherSerializer,
    ListSerializer,
    MapSerializer,
    NullableSerializer,
    RowSerializer,
    SetSerializer,
    StreamRecordSerializer,
    TupleSerializer,
)
from flinkcore.savepoints.serializers.serializer import StateSerializer
from flinkcore.savepoints.writing.java_values import arrow_type
from flinkcore.savepoints.writing.savepoint_writer import OperatorContent, SavepointWriter
from flinkcore.savepoints.writing.state_files import KeyedStateContent

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)
MOMENTS = st.datetimes(datetime(1700, 1, 1), datetime(2250, 1, 1))


def integers(bits: int) -> st.SearchStrategy[Any]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


AVRO = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "i", "type": ["int", "null"]},
        {"name": "u", "type": ["null", "string", "long", {"type": "array", "items": "bytes"}]},
        {"name": "m", "type": {"type": "map", "values": {"type": "array", "items": ["null", "double"]}}},
        {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 3}},
        {
            "name": "f",
            "type": {"type": "fixed", "name": "F", "size": 5, "logicalType": "decimal", "precision": 9},
        },
        {"name": "t", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}


def member(number: int, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return values.map(lambda value: {f"member{i}": value if i == number else None for i in range(3)})


AVRO_RECORDS = st.fixed_dictionaries(
    {
        "i": st.none() | integers(32),
        "u": st.none()
        | member(0, TEXTS)
        | member(1, integers(64))
        | member(2, st.lists(st.binary(max_size=2))),
        "m": st.dictionaries(TEXTS, st.lists(st.none() | st.floats(), max_size=3), max_size=2).map(
            lambda entries: list(entries.items())
        ),
        "d": st.integers(-(10**40) + 1, 10**40 - 1).map(
            lambda number: Decimal(number).scaleb(-3, Context(50))
        ),
        "f": st.integers(-(10**9) + 1, 10**9 - 1).map(Decimal),
        "t": MOMENTS.map(lambda moment: moment.replace(tzinfo=timezone.utc)),
    }
)
SIMPLE: list[tuple[StateSerializer, st.SearchStrategy[Any]]] = [
    (basic.LONG, integers(64)),
    (basic.INT, integers(32)),
    (basic.SHORT, integers(16)),
    (basic.BYTE, integers(8)),
    (basic.BOOLEAN, st.booleans()),
    (basic.DOUBLE, st.floats()),
    (basic.FLOAT, st.floats(width=32)),
    (basic.STRING, TEXTS),
    (basic.CHAR, st.characters(max_codepoint=0xFFFF, exclude_categories=("Cs",))),
    (basic.BYTES, st.binary(max_size=5)),
    (basic.BIG_INTEGER, st.integers().map(str)),
    (basic.BIG_DECIMAL, st.decimals(allow_nan=False, allow_infinity=False).map(lambda d: str(Decimal(d)))),
    (basic.PRIMITIVE_ARRAYS[basic.INT], st.lists(integers(32), max_size=3)),
    (times.LOCAL_DATE, st.dates()),
    (times.LOCAL_TIME, st.times()),
    (times.LOCAL_DATE_TIME, MOMENTS),
    (times.INSTANT, MOMENTS.map(lambda moment: moment.replace(tzinfo=timezone.utc))),
    (times.SQL_TIMESTAMP, MOMENTS.map(lambda moment: moment.replace(tzinfo=timezone.utc))),
    (
        times.SQL_DATE,
        st.datetimes(datetime(1700, 1, 1), datetime(2250, 1, 1)).map(
            lambda moment: moment.replace(tzinfo=timezone.utc, microsecond=moment.microsecond // 1000 * 1000)
        ),
    ),
    (savepoints.avro(AVRO), AVRO_RECORDS),
    (savepoints.enum("com.acme.Color", ["RED", "GREEN"]), st.sampled_from(["RED", "GREEN"])),
]
Typed = tuple[StateSerializer, st.SearchStrategy[Any]]


def fields(parts: list[Typed], names: list[str], nulls: bool) -> st.SearchStrategy[Any]:
    values = [st.none() | strategy if nulls else strategy for _, strategy in parts]
    return st.fixed_dictionaries(dict(zip(names, values, strict=True)))


def tuples(parts: list[Typed]) -> Typed:
    names = [f"f{i}" for i in range(len(parts))]
    return TupleSerializer(tuple(each for each, _ in parts)), fields(parts, names, False)


def rows(parts: list[Typed]) -> Typed:
    names = [f"f{i}" for i in range(len(parts))]
    kinds = st.sampled_from(["+I", "-U", "+U", "-D"])
    values = st.tuples(fields(parts, names, True), kinds).map(lambda pair: {**pair[0], "row_kind": pair[1]})
    return RowSerializer(tuple(each for each, _ in parts)), values


def pojos(parts: list[Typed]) -> Typed:
    names = [f"name{i}" for i in range(len(parts))]
    serializer = savepoints.pojo("com.acme.Some", dict(zip(names, [each for each, _ in parts], strict=True)))
    return serializer, fields(parts, names, True)


def lists(part: Typed) -> Typed:
    return ListSerializer((part[0],)), st.lists(part[1], max_size=3)


def sets(part: Typed) -> Typed:
    return SetSerializer((part[0],)), st.lists(st.none() | part[1], max_size=3)


def maps(parts: tuple[Typed, Typed]) -> Typed:
    key, value = parts
    return MapSerializer((key[0], value[0])), st.lists(st.tuples(key[1], st.none() | value[1]), max_size=3)


def either(parts: tuple[Typed, Typed]) -> Typed:
    left = parts[0][1].map(lambda value: {"left": value, "right": None})
    right = parts[1][1].map(lambda value: {"left": None, "right": value})
    return EitherSerializer((parts[0][0], parts[1][0])), left | right


def wrapped(part: Typed) -> st.SearchStrategy[Typed]:
    joined = st.tuples(st.booleans(), part[1]).map(
        lambda pair: dict(zip(("joined", "value"), pair, strict=True))
    )
    record = st.tuples(st.none() | integers(64), part[1]).map(
        lambda pair: dict(zip(("timestamp_ms", "value"), pair, strict=True))
    )
    return st.sampled_from(
        [
            (BufferEntrySerializer((part[0],)), joined),
            (StreamRecordSerializer((part[0],)), record),
            (NullableSerializer((part[0],), 3), st.none() | part[1]),
        ]
    )


SIMPLE_TYPES = st.sampled_from(SIMPLE)
TYPES: st.SearchStrategy[Typed] = st.recursive(
    SIMPLE_TYPES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(tuples),
        st.lists(inner, min_size=1, max_size=9).map(rows),
        st.lists(inner, min_size=1, max_size=3).map(pojos),
        inner.map(lists),
        inner.map(sets),
        st.tuples(SIMPLE_TYPES, inner).map(maps),
        st.tuples(inner, inner).map(either),
        inner.flatmap(wrapped),
    ),
    max_leaves=4,
)
KEYS = SIMPLE_TYPES | st.lists(SIMPLE_TYPES, min_size=1, max_size=3).map(tuples)
WINDOWS: Typed = (
    times.TIME_WINDOW,
    st.fixed_dictionaries({"start_ms": integers(64), "end_ms": integers(64)}),
)


@st.composite
def states(draw: st.DrawFn, key: Typed, max_parallelism: int, name: str) -> tuple[KeyedTypes, pa.Table]:
    kind = draw(st.sampled_from(["VALUE", "REDUCING", "AGGREGATING", "LIST", "MAP", "TIMERS"]))
    namespace = draw(st.sampled_from([None, WINDOWS, (basic.STRING, TEXTS)]))
    value, map_key = draw(TYPES), draw(TYPES)
    has_ttl = kind != "TIMERS" and draw(st.booleans())
    types = KeyedTypes(
        kind,
        key[0],
        times.VOID_NAMESPACE if namespace is None else namespace[0],
        map_key[0] if kind == "MAP" else None,
        None if kind == "TIMERS" else value[0],
        has_ttl,
    )
    n_rows = draw(st.integers(0, 4))

    def column(strategy: st.SearchStrategy[Any], arrow: pa.DataType) -> pa.Array:
        return pa.array([draw(strategy) for _ in range(n_rows)], arrow)

    columns = {
        "key_group": column(st.integers(0, max_parallelism - 1), pa.int32()),
        "key": column(key[1], arrow_type(key[0])),
    }
    if namespace is not None:
        columns["namespace"] = column(namespace[1], arrow_type(namespace[0]))
    if kind == "TIMERS":
        columns["timestamp_ms"] = column(integers(64), pa.int64())
        return types, pa.table(columns)
    if kind == "MAP":
        columns["map_key"] = column(map_key[1], arrow_type(map_key[0]))
    if kind == "LIST":
        lengths = [draw(st.integers(1, 3)) for _ in range(n_rows)]
        values = [[draw(value[1]) for _ in range(length)] for length in lengths]
        columns["value"] = pa.array(values, pa.list_(arrow_type(value[0])))
        if has_ttl:
            accesses = [[draw(integers(64)) for _ in range(length)] for length in lengths]
            columns["last_access_ms"] = pa.array(accesses, pa.list_(pa.int64()))
    else:
        columns["value"] = column(value[1], arrow_type(value[0]))
        if has_ttl:
            columns["last_access_ms"] = column(integers(64), pa.int64())
    return types, pa.table(columns)


@settings(deadline=None)
@given(st.data())
def test_states_are_read_as_they_were_written(data: st.DataObject) -> None:
    max_parallelism = data.draw(st.sampled_from([1, 3, 128, 129, 300]), "max_parallelism")
    parallelism = data.draw(st.integers(1, min(4, max_parallelism)), "parallelism")
    key = data.draw(KEYS, "key")
    drawn = {
        f"s{i}": data.draw(states(key, max_parallelism, f"s{i}"), f"s{i}")
        for i in range(data.draw(st.integers(1, 3)))
    }

    def content(name: str, types: KeyedTypes, table: pa.Table) -> KeyedStateContent:
        def batches(groups: range) -> Any:
            rows = [row for row, group in enumerate(table["key_group"].to_pylist()) if group in groups]
            return iter(table.take(pa.array(rows, pa.int64())).to_batches(max_chunksize=2))

        return KeyedStateContent(name, types, batches)

    contents = [content(name, *each) for name, each in drawn.items()]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "savepoint"
        writer = SavepointWriter.begin(path, is_compressed=data.draw(st.booleans(), "is_compressed"))
        writer.commit(
            [written_operator(writer, OperatorContent("op", max_parallelism, parallelism, key[0], contents))]
        )
        settings = ReadSettings(block_bytes=data.draw(st.sampled_from([7, 1 << 20]), "block_bytes"))
        operator = savepoints.open(path, settings=settings).operator("op")
        assert not operator.unread
        for name, (types, table) in drawn.items():
            state = operator.state(name)
            assert isinstance(state, KeyedState)
            assert state.keyed_types == types
            found = state.to_arrow()
            assert found.schema.names == table.schema.names
            order = sorted(range(table.num_rows), key=lambda row: table["key_group"][row].as_py())
            assert repr(found.to_pylist()) == repr(table.take(pa.array(order, pa.int64())).to_pylist())
