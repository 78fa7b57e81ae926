"""Maps in messages of JSON against Python's own reader of JSON."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore.log.decoding.json_values import json_values
from flinkcore.log.decoding.map_fields import MapFields, with_lists

NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.none()
INNER = st.dictionaries(st.text(max_size=3), NUMBERS, max_size=3) | st.none()
OUTER = st.dictionaries(st.text(max_size=3), st.lists(INNER, max_size=3) | st.none(), max_size=3) | st.none()
TEXTS = st.text(max_size=4) | st.none()
ROWS = st.fixed_dictionaries({"m": OUTER, "t": TEXTS, "r": st.none() | st.fixed_dictionaries({"n": INNER})})
OTHERS = st.dictionaries(
    st.sampled_from("xyz"),
    st.recursive(TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS.filter(bool), inner)),
)

INNER_TYPE = pa.map_(pa.string(), pa.int64())
FIELDS = pa.schema(
    [
        ("m", pa.map_(pa.string(), pa.list_(INNER_TYPE))),
        ("t", pa.string()),
        ("r", pa.struct([("n", INNER_TYPE)])),
    ]
)


def as_maps(value: Any) -> Any:
    """Return a row as Python sees it in Arrow: maps are lists of entries."""

    def inner(each: dict[str, Any] | None) -> Any:
        return None if each is None else list(each.items())

    outer, row = value["m"], value["r"]
    maps = (
        None
        if outer is None
        else [
            (key, None if values is None else [inner(each) for each in values])
            for key, values in outer.items()
        ]
    )
    return {"m": maps, "t": value["t"], "r": None if row is None else {"n": inner(row["n"])}}


@settings(deadline=None)
@given(
    st.lists(st.tuples(ROWS, OTHERS), min_size=1, max_size=4), st.booleans(), st.sampled_from([None, 0, 2])
)
def test_maps_have_the_entries_of_their_objects(
    rows: list[tuple[dict[str, Any], dict[str, Any]]], is_ascii: bool, indent: int | None
) -> None:
    decoder = MapFields(
        json_values(pa.schema([field.with_type(with_lists(field.type)) for field in FIELDS])),
        pa.struct(list(FIELDS)),
    ).prepared()
    messages = [
        json.dumps(others | row, ensure_ascii=is_ascii, indent=indent).encode() for row, others in rows
    ]
    found = decoder.decode(messages)
    assert not found.faults
    found.values.validate(full=True)
    assert found.values.to_pylist() == [as_maps(row) for row, _ in rows]


@settings(deadline=None)
@given(st.binary(max_size=12), st.sampled_from(["", "{", '{"m":', '{"m":{"a":']))
def test_any_bytes_are_decoded_or_are_a_fault(message: bytes, before: str) -> None:
    decoder = MapFields(
        json_values(pa.schema([("m", with_lists(INNER_TYPE))])), pa.struct([("m", INNER_TYPE)])
    )
    found = decoder.decode([before.encode() + message, b'{"m":{"k":1}}'])
    assert len(found.values) == 2
    assert found.values[1].as_py() == {"m": [("k", 1)]}


@pytest.mark.parametrize("inner", [b'{"a":', b"["])
def test_a_message_that_is_too_deep_is_a_fault(inner: bytes) -> None:
    decoder = MapFields(
        json_values(pa.schema([("m", with_lists(INNER_TYPE))])), pa.struct([("m", INNER_TYPE)])
    )
    found = decoder.decode([b'{"other":' + inner * 10_000, b'{"m":{"k":1}}'])
    assert sorted(found.faults) == [0]
    assert found.values.to_pylist() == [None, {"m": [("k", 1)]}]
