"""Any values that a checkpoint holds come back from their columns exactly."""

from datetime import timedelta, timezone
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore.checkpoint.value_decoding import decode
from flinkcore.checkpoint.value_encoding import encode
from flinkcore.datastream.functions.join_functions import TaggedUnion
from flinkcore.datastream.window import CountWindow, GlobalWindow, TimeWindow
from flinkcore.table import ListView, MapView


def list_view(values: list[Any]) -> ListView[Any]:
    view = ListView[Any]()
    view.add_all(values)
    return view


def map_view(values: dict[int, Any]) -> MapView[int, Any]:
    view = MapView[int, Any]()
    view.put_all(values)
    return view


zones = st.one_of(st.none(), st.timezones(), st.just(timezone.utc))
longs = st.integers(-(2**63), 2**63 - 1)
windows = st.one_of(
    st.builds(TimeWindow, longs, longs), st.builds(CountWindow, longs), st.just(GlobalWindow.get())
)
scalars = st.one_of(
    windows,
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(),
    # A signaling NaN cannot be hashed.
    st.decimals().filter(lambda value: not value.is_snan()),
    st.dates(),
    st.times().map(lambda value: value.replace(fold=0)),
    st.datetimes(timezones=zones),
    st.timedeltas(min_value=timedelta(-100_000), max_value=timedelta(100_000)),
)
hashables = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(hashables, inner, max_size=3),
        st.builds(TaggedUnion, inner, st.booleans()),
        st.lists(inner, max_size=3).map(list_view),
        st.dictionaries(st.integers(), inner, max_size=3).map(map_view),
    ),
    max_leaves=8,
)
uniform = st.sampled_from(
    [st.integers(), st.text(st.characters(exclude_categories=["Cs"])), scalars]
).flatmap(
    lambda inner: st.one_of(
        st.lists(st.lists(inner)), st.lists(st.tuples(inner, inner)), st.lists(st.dictionaries(inner, inner))
    )
)


@settings(deadline=None, max_examples=250)
@given(st.one_of(st.lists(values), uniform))
def test_values_come_back_exactly(given_values: list[Any]) -> None:
    array, shape = encode(given_values, "x")
    array.validate(full=True)
    assert repr(decode(array, shape)) == repr(given_values)
