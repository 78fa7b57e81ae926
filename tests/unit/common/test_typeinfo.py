"""Declared types: what they accept, convert, print, and which columns they are."""

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flinkcore.common import Instant, Row, RowKind, Types
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.common.typeinfo.type_information import require_type
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import ConfigurationError, DataError

PERSON = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])


def converted(type_info: TypeInformation, value: Any) -> Any:
    conversion = type_info.conversion()
    return value if conversion is None else conversion(value)


@pytest.mark.parametrize(
    ("type_info", "given", "wanted"),
    [
        (Types.TUPLE([Types.STRING(), Types.INT()]), ["a", 1], ("a", 1)),
        (Types.TUPLE([Types.STRING(), Types.INT()]), Row("a", 1), ("a", 1)),
        (Types.TUPLE([Types.STRING(), Types.DOUBLE()]), ("a", 1), ("a", 1.0)),
        (Types.TUPLE([Types.TUPLE([Types.DOUBLE()])]), ([2],), ((2.0,),)),
        (Types.DOUBLE(), 3, 3.0),
        (Types.FLOAT(), 0.1, 0.10000000149011612),
        (Types.FLOAT(), 1e300, float("inf")),
        (Types.LIST(Types.DOUBLE()), (1, 2.5), [1.0, 2.5]),
        (Types.BASIC_ARRAY(Types.INT()), (1, None), [1, None]),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"ab", b"ab"),
        (Types.MAP(Types.STRING(), Types.DOUBLE()), {"a": 1}, {"a": 1.0}),
        (Types.SQL_TIME(), datetime.time(1, 2, 3, 400), datetime.time(1, 2, 3)),
        (PERSON, None, None),
        (Types.TUPLE([Types.INT()]), None, None),
    ],
)
def test_what_a_function_gives_becomes_what_its_type_says(
    type_info: TypeInformation, given: Any, wanted: Any
) -> None:
    made = converted(type_info, given)
    assert made == wanted
    assert repr(made) == repr(wanted)


@pytest.mark.parametrize(
    "given", [("ann", 41), ["ann", 41], Row("ann", 41), {"age": 41, "name": "ann"}, Row(age=41, name="ann")]
)
def test_rows_get_the_names_of_their_type_in_its_order(given: Any) -> None:
    row = converted(PERSON, given)
    assert row._fields == ("name", "age")
    assert list(row) == ["ann", 41]


def test_a_row_without_all_names_of_the_type_is_read_by_position() -> None:
    assert list(converted(PERSON, Row(first="ann", second=41))) == ["ann", 41]


def test_a_row_keeps_its_kind() -> None:
    row = Row("ann", 41)
    row.set_row_kind(RowKind.DELETE)
    assert converted(PERSON, row).get_row_kind() is RowKind.DELETE


def test_what_is_right_already_is_the_same_object() -> None:
    pair = ("a", 1.5)
    assert converted(Types.TUPLE([Types.STRING(), Types.DOUBLE()]), pair) is pair
    row = converted(PERSON, ("ann", 41))
    assert converted(PERSON, row) is row


@pytest.mark.parametrize(
    ("type_info", "given", "message"),
    [
        (Types.TUPLE([Types.INT()]), 5, r"5 is not a tuple, as TupleTypeInfo\(Integer\) wants it"),
        (Types.DOUBLE(), "x", "'x' is not of type Double"),
        (Types.TUPLE([Types.INT(), Types.DOUBLE()]), (1,), "has 1 fields, not 2"),
        (PERSON, ("ann",), "has 1 fields, not 2"),
        (PERSON, 5, "5 is not a row"),
        (Types.LIST(Types.INT()), "ab", "'ab' is not of type ListTypeInfo<Integer>"),
        (Types.MAP(Types.INT(), Types.INT()), [1], "is not of type MapTypeInfo"),
    ],
)
def test_what_cannot_be_of_a_type_is_refused(type_info: TypeInformation, given: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        converted(type_info, given)


TAGS = Types.ROW_NAMED(["user", "tags"], [Types.STRING(), Types.LIST(Types.STRING())])
SCORES = Types.MAP(Types.STRING(), Types.LIST(Types.DOUBLE()))


@pytest.mark.parametrize(
    ("type_info", "given", "message"),
    [
        (Types.INT(), 1.5, "1.5 is not of type Integer"),
        (Types.DOUBLE(), "1.5", "'1.5' is not of type Double"),
        (Types.FLOAT(), b"1", "b'1' is not of type Float"),
        (Types.DOUBLE(), 10**400, "10+ is not of type Double"),
        (Types.SQL_TIME(), "12:00", "'12:00' is not of type TimeTypeInfo"),
        (Types.SQL_DATE(), "today", "'today' is not of type DateTypeInfo"),
        (Types.SQL_TIMESTAMP(), datetime.date(2020, 1, 1), r".*is not of type TimestampTypeInfo"),
        (Types.TUPLE([Types.INT(), Types.STRING()]), (1, 2), "field 1: 2 is not of type String"),
        (Types.TUPLE([Types.INT(), Types.DOUBLE()]), (1, "2"), "field 1: '2' is not of type Double"),
        (Types.TUPLE([Types.INT()]), (1, 2), r"\(1, 2\) has 2 fields, not 1: TupleTypeInfo\(Integer\)"),
        (Types.TUPLE([Types.TUPLE([Types.INT()])]), ((1, 2),), r"field 0: \(1, 2\) has 2 fields, not 1"),
        (Types.TUPLE([Types.ROW([Types.INT()])]), ((1, 2),), r"field 0: \(1, 2\) has 2 fields, not 1"),
        (TAGS, ("ann", ["a", 1]), "field 'tags': item 1: 1 is not of type String"),
        (TAGS, {"user": 5, "tags": []}, "field 'user': 5 is not of type String"),
        (TAGS, Row("ann", "ab"), "field 'tags': 'ab' is not of type ListTypeInfo<String>"),
        (Types.LIST(TAGS), [None, ("ann", [b"a"])], "item 1: field 'tags': item 0: b'a' is not of type String"),
        (SCORES, {"ann": [1, "2"]}, "value of the key 'ann': item 1: '2' is not of type Double"),
        (SCORES, {"ann": [1], 5: []}, "key 5: 5 is not of type String"),
        (Types.MAP(Types.DOUBLE(), Types.INT()), {"5": 5}, "key '5': '5' is not of type Double"),
        (Types.MAP(Types.LIST(Types.INT()), Types.INT()), {(1, 2): 5}, r"key \(1, 2\): .*unhashable"),
        (Types.MAP(Types.STRING(), Types.INT()), {"b": 1.5}, "value of the key 'b': 1.5 is not of type Integer"),
        (Types.OBJECT_ARRAY(SCORES), [{}, {"a": 5}], "item 1: value of the key 'a': 5 is not of type ListTypeInfo"),
    ],
)  # fmt: skip
def test_what_is_not_of_a_type_is_refused_with_its_place(
    type_info: TypeInformation, given: Any, message: str
) -> None:
    with pytest.raises(DataError, match=f"^{message}"):
        converted(type_info, given)


ANYTHING = object()


@pytest.mark.parametrize(
    ("type_info", "given", "wanted"),
    [
        (Types.INT(), True, 1),
        (Types.INT(), np.int32(5), 5),
        (Types.DOUBLE(), np.float32(5), 5.0),
        (Types.SQL_DATE(), datetime.datetime(2020, 1, 1), datetime.date(2020, 1, 1)),
        (Types.TUPLE([Types.INT(), Types.STRING()]), (None, None), (None, None)),
        (Types.TUPLE([Types.PICKLED_BYTE_ARRAY()]), (ANYTHING,), (ANYTHING,)),
        (TAGS, ("ann", None), Row(user="ann", tags=None)),
        (TAGS, {"user": "ann"}, Row(user="ann", tags=None)),
        (TAGS, ("ann", ("a", None)), Row(user="ann", tags=["a", None])),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"ab", b"ab"),
        (SCORES, {"ann": [1, None], "bob": None}, {"ann": [1.0, None], "bob": None}),
        (SCORES, None, None),
        (Types.LIST(Types.PICKLED_BYTE_ARRAY()), [1, "a", ANYTHING], [1, "a", ANYTHING]),
        (Types.MAP(Types.PICKLED_BYTE_ARRAY(), Types.PICKLED_BYTE_ARRAY()), {1: "a"}, {1: "a"}),
    ],
)
def test_what_is_of_a_type_is_taken(type_info: TypeInformation, given: Any, wanted: Any) -> None:
    made = converted(type_info, given)
    assert made == wanted
    assert repr(made) == repr(wanted)


@pytest.mark.parametrize(
    ("type_info", "accepted", "refused"),
    [
        (Types.INT(), 5, "5"),
        (Types.STRING(), "x", 5),
        (Types.BOOLEAN(), True, 1),
        (Types.DOUBLE(), 1, "1"),
        (Types.BIG_DEC(), Decimal(1), 1.0),
        (Types.SQL_DATE(), datetime.date(2020, 1, 1), "2020-01-01"),
        (Types.TUPLE([Types.INT()]), (1,), (1, 2)),
        (PERSON, Row("a", 1), 5),
        (Types.LIST(Types.INT()), [1], "1"),
        (Types.MAP(Types.INT(), Types.INT()), {}, []),
    ],
)
def test_a_type_tells_its_values_from_others(type_info: TypeInformation, accepted: Any, refused: Any) -> None:
    assert type_info.accepts(accepted)
    assert not type_info.accepts(refused)


def test_types_of_equal_parts_are_equal_whatever_the_names_of_their_fields() -> None:
    assert Types.TUPLE([Types.INT()]) == Types.TUPLE([Types.INT()])
    assert hash(Types.LIST(Types.INT())) == hash(Types.LIST(Types.INT()))
    assert Types.ROW([Types.STRING(), Types.INT()]) == PERSON
    assert Types.INT() != Types.LONG()
    assert Types.LIST(Types.INT()) != Types.BASIC_ARRAY(Types.INT())


@pytest.mark.parametrize(
    ("type_info", "value", "text"),
    [
        (Types.INT(), 5, "5"),
        (Types.BOOLEAN(), True, "true"),
        (Types.DOUBLE(), 1e10, "1.0E10"),
        (Types.DOUBLE(), 0.00015, "1.5E-4"),
        (Types.DOUBLE(), 100.0, "100.0"),
        (Types.DOUBLE(), float("nan"), "NaN"),
        (Types.DOUBLE(), float("-inf"), "-Infinity"),
        (Types.STRING(), None, "null"),
        (Types.TUPLE([Types.STRING(), Types.BOOLEAN()]), ("a", False), "(a,false)"),
        (Types.LIST(Types.INT()), [1, None], "[1, null]"),
        (Types.MAP(Types.STRING(), Types.INT()), {"a": 1}, "{a=1}"),
        (PERSON, Row("ann", 41), "+I[ann,41]"),
        (Types.PICKLED_BYTE_ARRAY(), {"a": True}, "{'a': True}"),
    ],
)
def test_values_are_printed_as_pyflink_prints_them(type_info: TypeInformation, value: Any, text: str) -> None:
    assert type_info.printed(value) == text


def test_types_are_columns_of_arrow_where_there_is_one() -> None:
    assert PERSON.to_arrow_type() == pa.struct([("name", pa.string()), ("age", pa.int32())])
    nested = Types.TUPLE([Types.LIST(Types.DOUBLE()), Types.MAP(Types.STRING(), Types.SQL_TIMESTAMP())])
    assert nested.to_arrow_type() == pa.struct(
        [("f0", pa.list_(pa.float64())), ("f1", pa.map_(pa.string(), pa.timestamp("us")))]
    )
    assert Types.LIST(Types.PRIMITIVE_ARRAY(Types.BYTE())).to_arrow_type() == pa.list_(pa.binary())
    assert Types.PRIMITIVE_ARRAY(Types.SHORT()).to_arrow_type() == pa.list_(pa.int16())
    for type_info in (Types.PICKLED_BYTE_ARRAY(), Types.BIG_INT(), Types.LIST(Types.PICKLED_BYTE_ARRAY())):
        with pytest.raises(ConfigurationError, match="no column of Arrow holds values"):
            type_info.to_arrow_type()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Types.TUPLE(Types.INT()), "Types.TUPLE takes a list of types"),  # type: ignore[arg-type]
        (lambda: Types.ROW([int]), "a field of Types.ROW has a type"),  # type: ignore[list-item]
        (lambda: Types.ROW_NAMED(["a"], [Types.INT(), Types.INT()]), "needs as many different names"),
        (lambda: Types.ROW_NAMED(["a", "a"], [Types.INT(), Types.INT()]), "different names"),
        (lambda: Types.LIST(int), "elements of ListTypeInfo have a type"),  # type: ignore[arg-type]
        (lambda: Types.MAP(Types.INT(), int), "keys and values of a map have types"),  # type: ignore[arg-type]
    ],
)
def test_types_of_what_is_no_type_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make()


def test_a_dict_in_place_of_a_type_is_told_how_columns_are_declared() -> None:
    with pytest.raises(ConfigurationError, match=r"declared by a pyarrow schema, such as pyarrow\.schema\("):
        require_type({"k": "string"}, "output_type")


@pytest.mark.parametrize(
    ("type_info", "value", "text"),
    [
        (Types.SQL_TIMESTAMP(), datetime.datetime(2021, 1, 2, 3, 4, 5, 678000), "2021-01-02 03:04:05.678"),
        (Types.SQL_TIMESTAMP(), datetime.datetime(2021, 1, 2, 3, 4, 5), "2021-01-02 03:04:05.0"),
        (Types.INSTANT(), Instant(1, 234_000_000), "1970-01-01T00:00:01.234Z"),
        (Types.INSTANT(), Instant(-1, 0), "1969-12-31T23:59:59Z"),
        (Types.INSTANT(), Instant(1_600_000_000, 500), "2020-09-13T12:26:40.000000500Z"),
        (Types.INSTANT(), Instant(2**40, 0), "Instant<1099511627776, 0>"),
        (
            Types.TUPLE([Types.FLOAT(), Types.ROW([Types.FLOAT(), Types.STRING()])]),
            (0.1, Row(0.1, "a")),
            "(0.1,+I[0.1, a])",
        ),
        (Types.ROW([Types.INT(), Types.ROW([Types.INT()])]), Row(1, Row(2)), "+I[1, +I[2]]"),
        (PERSON, Row("ann", None), "+I[ann, null]"),
        (
            Types.ROW([Types.PICKLED_BYTE_ARRAY(), Types.PRIMITIVE_ARRAY(Types.BYTE())]),
            Row(bytearray(b"a\xff"), b"\x80"),
            "+I[[97, -1], [-128]]",
        ),
        (Types.LIST(Types.ROW([Types.BOOLEAN(), Types.INT()])), [Row(True, None)], "[+I[true, null]]"),
        (
            Types.MAP(Types.STRING(), Types.SQL_TIMESTAMP()),
            {"a": datetime.datetime(2021, 1, 2)},
            "{a=2021-01-02 00:00:00.0}",
        ),
    ],
)
def test_texts_of_values_are_those_of_java(type_info: TypeInformation, value: Any, text: str) -> None:
    assert type_info.text(value) == text


def test_floats_of_32_bits_are_collected_with_the_digits_that_tell_them_apart() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    third = 0.3333333432674408
    types = [
        (
            Types.FLOAT(),
            [third, 1.0, 1e10, 3.4e-5, -0.0, math.inf],
            [0.33333334, 1.0, 1e10, 3.4e-5, -0.0, math.inf],
        ),
        (
            Types.TUPLE([Types.FLOAT(), Types.DOUBLE()]),
            [(third, third), (None, 0.1)],
            [(0.33333334, third), (None, 0.1)],
        ),
        (Types.ROW_NAMED(["a"], [Types.FLOAT()]), [Row(a=third)], [Row(a=0.33333334)]),
        (Types.LIST(Types.MAP(Types.STRING(), Types.FLOAT())), [[{"a": third}]], [[{"a": 0.33333334}]]),
    ]
    for type_info, given, expected in types:
        seen: list[Any] = []
        stream = env.from_collection(given, type_info)
        stream = stream.map(lambda value, seen=seen: seen.append(value) or value, type_info)  # type: ignore[misc]
        assert list(stream.execute_and_collect()) == expected
        assert seen[0] != expected[0]  # functions see all digits
        assert stream.execute_and_collect(limit=1) == expected[:1]


def test_days_and_times_of_day_are_made_of_what_has_more() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    moment = datetime.datetime(2021, 1, 2, 3, 4, 5, 678901)
    zone = datetime.timezone(datetime.timedelta(hours=2))
    days = env.from_collection([moment, moment.date(), None], Types.SQL_DATE())
    times = env.from_collection(
        [datetime.time(1, 2, 3, 456789, tzinfo=zone), moment.time()], Types.SQL_TIME()
    )
    assert [repr(day) for day in days.execute_and_collect()] == 2 * ["datetime.date(2021, 1, 2)"] + ["None"]
    assert list(times.execute_and_collect()) == [datetime.time(23, 2, 3), datetime.time(3, 4, 5)]


def test_a_row_type_without_names_shows_and_finds_none() -> None:
    types = [Types.INT(), Types.STRING()]
    assert repr(Types.ROW(types)) == "RowTypeInfo(Integer, String)"
    assert Types.ROW(types).get_field_names() == ["f0", "f1"]
    assert Types.ROW(types).get_field_index("f0") == -1
    named = Types.ROW_NAMED(["a", "b"], types)
    assert repr(named) == "RowTypeInfo(a: Integer, b: String)"
    assert named.get_field_index("b") == 1
    with pytest.raises(ValueError, match="x"):
        named.get_field_index("x")
