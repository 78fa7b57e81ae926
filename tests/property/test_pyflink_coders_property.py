"""What PyFlink's coders write they read, and declared types come back from a checkpoint."""

import datetime
import json
import pickle
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flinkcore.checkpoint.declared_types import type_of_json, type_to_json
from flinkcore.common import Instant, Row, Types
from flinkcore.savepoints.pyflink_coders import CoderBytes, coder_of, pickled

LONGS = st.integers(-(2**63), 2**63 - 1)
BASIC = st.sampled_from(
    [
        (Types.STRING(), st.text(max_size=5)),
        (Types.BYTE(), st.integers(-128, 127)),
        (Types.SHORT(), st.integers(-(2**15), 2**15 - 1)),
        (Types.INT(), st.integers(-(2**31), 2**31 - 1)),
        (Types.LONG(), LONGS),
        (Types.BOOLEAN(), st.booleans()),
        (Types.FLOAT(), st.floats(width=32, allow_nan=False)),
        (Types.DOUBLE(), st.floats(allow_nan=False)),
        (Types.BIG_DEC(), st.integers().map(lambda n: Decimal(n).scaleb(-3))),
        (Types.INSTANT(), st.builds(Instant, st.integers(-(10**11), 10**11), st.integers(0, 10**9 - 1))),
        (Types.SQL_DATE(), st.dates()),
        (Types.SQL_TIME(), st.times().map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000))),
        (
            Types.SQL_TIMESTAMP(),
            st.datetimes().map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)),
        ),
        (Types.PICKLED_BYTE_ARRAY(), st.lists(st.none() | LONGS | st.text(max_size=5), max_size=3)),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), st.binary(max_size=9)),
    ]
)


def _rows(parts: list[Any]) -> Any:
    names = [f"n{number}" for number in range(len(parts))]
    values = st.tuples(*(st.none() | values for _, values in parts))
    kind = Types.ROW_NAMED(names, [each for each, _ in parts])
    return kind, values.map(lambda held: Row(*names)(*held))


def _composites(of: Any) -> Any:
    return st.one_of(
        of.map(lambda part: (Types.LIST(part[0]), st.lists(st.none() | part[1], max_size=3))),
        of.map(lambda part: (Types.PRIMITIVE_ARRAY(Types.LONG()), st.lists(LONGS, max_size=3))),
        of.map(
            lambda part: (
                Types.MAP(Types.STRING(), part[0]),
                st.dictionaries(st.text(max_size=5), st.none() | part[1], max_size=3),
            )
        ),
        st.lists(of, min_size=1, max_size=3).map(
            lambda parts: (Types.TUPLE([each for each, _ in parts]), st.tuples(*(v for _, v in parts)))
        ),
        st.lists(of, min_size=1, max_size=7).map(_rows),
    )


@given(st.data())
def test_coders_read_what_they_write(data: st.DataObject) -> None:
    type_info, values = data.draw(st.recursive(BASIC, _composites, max_leaves=4))
    value = data.draw(values)
    coder = coder_of(type_info, pickle.loads)
    written = coder.write(value)
    bytes_of_it = CoderBytes(written)
    assert coder.read(bytes_of_it) == value
    assert not bytes_of_it.has_more
    declared = type_of_json(json.loads(json.dumps(type_to_json(type_info))), "a type")
    assert declared == type_info


@given(
    st.recursive(st.none() | LONGS | st.text() | st.dates(), lambda inner: st.lists(inner) | st.tuples(inner))
)
def test_pickles_without_rows_are_those_of_python(value: Any) -> None:
    assert pickled(value) == pickle.dumps(value, 4)


def test_a_pickled_row_is_one_of_pyflinks_class() -> None:
    # As pickle.dumps of PyFlink 2.3 under Python 3.11 writes it.
    assert pickled(Row(a=1, b="x")) == (
        b"\x80\x04\x95T\x00\x00\x00\x00\x00\x00\x00\x8c\x14pyflink.common.types\x94\x8c\x0b_create_row\x94\x93\x94]"
        b"\x94(\x8c\x01a\x94\x8c\x01b\x94eK\x01\x8c\x01x\x94\x86\x94h\x00\x8c\x07RowKind\x94\x93\x94K\x00\x85\x94R"
        b"\x94\x87\x94R\x94."
    )
    assert datetime.date(2001, 1, 1) == pickle.loads(pickled(datetime.date(2001, 1, 1)))
