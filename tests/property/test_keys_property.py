"""The key dictionary against a dict, over keys of every type, in batches that are slices of others."""

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from models.keys import NOT_FOUND, KeyDictionaryModel, canonical_key

from flinkcore._native.key_dictionary import KeyDictionary
from flinkcore._native.key_groups import key_groups


def integers(bits: int, signed: bool = True) -> st.SearchStrategy[int]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return st.integers(max(low, -3), 3) | st.integers(low, high)


TEXTS = st.text("ab", max_size=3) | st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
PAIR = pa.struct([("n", pa.int32()), ("t", pa.string())])

# Temporal values are drawn and compared as the integers that they are stored as.
VALUES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int8(), integers(8)),
    (pa.uint16(), integers(16, signed=False)),
    (pa.int32(), integers(32)),
    (pa.uint32(), integers(32, signed=False)),
    (pa.int64(), integers(64)),
    (pa.uint64(), integers(64, signed=False)),
    (pa.bool_(), st.booleans()),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats() | st.sampled_from([0.0, -0.0, float("nan")])),
    (pa.date32(), integers(32)),
    (pa.time32("ms"), st.integers(0, 5) | st.integers(0, 86399999)),
    (pa.timestamp("us", "Europe/Berlin"), integers(64)),
    (pa.duration("ns"), integers(64)),
    (pa.string(), TEXTS),
    (pa.large_string(), TEXTS),
    (pa.binary(), st.binary(max_size=20)),
    (pa.large_binary(), st.binary(max_size=3)),
    (pa.binary(3), st.binary(min_size=3, max_size=3)),
    (pa.decimal128(20, 2), st.decimals(-(10**15), 10**15, places=2)),
    (PAIR, st.fixed_dictionaries({"n": st.none() | integers(32), "t": st.none() | TEXTS})),
]


def stored(column: pa.Array) -> list[Any]:
    """Values as they were drawn."""
    arrow_type = column.type
    if pa.types.is_temporal(arrow_type):
        column = column.view(pa.int32() if arrow_type.bit_width == 32 else pa.int64())
    return column.to_pylist()  # type: ignore[no-any-return]


def struct_slice(columns: list[pa.Array], names: list[str], start: int) -> Any:
    """A record batch to the Arrow protocol, with an offset in the parent and others in the children."""
    padded = [
        pa.concat_arrays([column.slice(0, 1), column.slice(0, 1), column]).slice(1) for column in columns
    ]
    return pa.StructArray.from_arrays(padded, names=names).slice(1 + start)


class KeyDictionaryMachine(RuleBasedStateMachine):
    @initialize(types=st.lists(st.sampled_from(VALUES), min_size=1, max_size=4))
    def make(self, types: list[tuple[pa.DataType, st.SearchStrategy[Any]]]) -> None:
        self.names = [f"k{i}" for i in range(len(types))]
        self.schema = pa.schema(zip(self.names, [arrow_type for arrow_type, _ in types], strict=True))
        self.cells = [values if len(types) == 1 else st.none() | values for _, values in types]
        self.dictionary = KeyDictionary(self.schema, self.names, max_parallelism=37)
        self.model = KeyDictionaryModel()

    def draw_rows(self, data: st.DataObject, max_size: int = 30) -> list[dict[str, Any]]:
        cells = dict(zip(self.names, self.cells, strict=True))
        fresh = st.fixed_dictionaries(cells)
        known = st.sampled_from(self.model.rows) if self.model.rows else st.nothing()
        return data.draw(st.lists(fresh | known, max_size=max_size))

    def batch(self, rows: list[dict[str, Any]]) -> Any:
        columns = [pa.array([row[field.name] for row in rows], field.type) for field in self.schema]
        return struct_slice(columns, self.names, 0) if rows else pa.record_batch(columns, schema=self.schema)

    @rule(data=st.data())
    def add(self, data: st.DataObject) -> None:
        rows = self.draw_rows(data)
        assert self.dictionary.ids(self.batch(rows)).tolist() == self.model.ids(rows)

    @rule(data=st.data())
    def find(self, data: st.DataObject) -> None:
        rows = self.draw_rows(data, 5)
        assert self.dictionary.find(self.batch(rows)).tolist() == self.model.find(rows)

    @rule(data=st.data())
    def read_back(self, data: st.DataObject) -> None:
        start = data.draw(st.integers(0, len(self.model.rows)))
        stop = data.draw(st.integers(start, len(self.model.rows)))
        found = pa.record_batch(self.dictionary.keys(start, stop))
        found.validate(full=not any(pa.types.is_temporal(field.type) for field in self.schema))
        assert found.schema == self.schema
        want = self.model.rows[start:stop]
        for name in self.names:
            values = [canonical_key(value) for value in stored(found.column(name))]
            assert values == [canonical_key(row[name]) for row in want]

    @rule(data=st.data())
    def look_up_key_groups(self, data: st.DataObject) -> None:
        rows = self.draw_rows(data, 5)
        ids = self.dictionary.ids(self.batch(rows))
        assert ids.tolist() == self.model.ids(rows)
        want = key_groups(self.batch(rows), 37).tolist() if rows else []
        assert self.dictionary.key_group(ids).tolist() == want

    @invariant()
    def is_consistent(self) -> None:
        if hasattr(self, "dictionary"):
            assert len(self.dictionary) == len(self.model.rows)
            self.dictionary._check()


TestKeyDictionary = KeyDictionaryMachine.TestCase
TestKeyDictionary.settings = settings(max_examples=60, stateful_step_count=12, deadline=None)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8), st.integers(1, 40))
def test_regular_steps_do_not_pile_up(steps: list[int], shift: int) -> None:
    # Multiples of a power of two are what tables with bad hashes fear.
    keys = sorted({(step + (i << shift)) % 2**64 for step in steps for i in range(500)})
    batch = pa.record_batch({"key": pa.array(keys, pa.uint64())})
    dictionary = KeyDictionary(batch.schema, ["key"])
    assert dictionary.ids(batch).tolist() == list(range(len(keys)))
    assert dictionary.find(batch).tolist() == list(range(len(keys)))
    unknown = pa.record_batch({"key": pa.array([keys[-1] ^ 1], pa.uint64())})
    assert dictionary.find(unknown).tolist() == [
        keys.index(keys[-1] ^ 1) if keys[-1] ^ 1 in keys else NOT_FOUND
    ]
    dictionary._check()
