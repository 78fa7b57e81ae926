"""Fields of struct columns by dotted names."""

import pyarrow as pa
import pytest

from flinkcore._internal.arrow.nested_fields import (
    NestedField,
    field_values,
    named_columns,
    named_field,
    nested_field,
    nested_fields,
    paths_read,
    struct_of_paths,
    unknown_name,
    with_field_columns,
)

AFTER = pa.struct({"user_id": pa.string(), "amount": pa.int64()})
PAYLOAD = pa.struct({"after": AFTER, "op": pa.string(), "tags": pa.list_(pa.string())})
SCHEMA = pa.schema({"ts": pa.int64(), "payload": PAYLOAD})


def test_a_dotted_name_means_the_field_of_a_struct():
    assert nested_field(SCHEMA, "payload.after.user_id") == NestedField(
        "payload", ("after", "user_id"), pa.string()
    )
    assert nested_field(SCHEMA, "payload.after").type == AFTER


@pytest.mark.parametrize(
    "name",
    ["ts", "payload", "ts.x", "payload.op.x", "payload.before", "payload.", ".payload", ".", "", "a.b"],
)
def test_other_names_mean_no_field(name):
    assert nested_field(SCHEMA, name) is None


def test_a_column_of_the_very_name_wins():
    schema = SCHEMA.append(pa.field("payload.op", pa.int32()))

    assert nested_field(schema, "payload.op") is None
    assert named_field(schema, "payload.op").type == pa.int32()


def test_names_may_have_dots_themselves_and_the_longest_counts_first():
    inner = pa.struct({"c": pa.int64(), "b.c": pa.string()})
    schema = pa.schema({"a": inner, "a.b": pa.struct({"c": pa.bool_()})})

    assert nested_field(schema, "a.b.c") == NestedField("a.b", ("c",), pa.bool_())
    assert nested_field(pa.schema({"a": inner}), "a.b.c") == NestedField("a", ("b.c",), pa.string())


def test_a_field_is_plain_as_a_column_would_be():
    schema = pa.schema({"a": pa.struct({"b": pa.large_string()})})

    assert nested_field(schema, "a.b").type == pa.string()


def test_a_field_is_null_where_a_struct_around_it_is():
    rows = pa.array([{"after": {"amount": 1}}, {"after": None}, None, {"after": {"amount": 4}}], PAYLOAD)

    assert field_values(rows, ("after", "amount")).to_pylist() == [1, None, None, 4]
    assert field_values(rows.slice(1, 2), ("after", "amount")).to_pylist() == [None, None]


def test_values_that_lie_below_a_null_struct_are_not_given():
    amounts = pa.StructArray.from_arrays([pa.array([1, 2])], ["amount"])
    rows = pa.StructArray.from_arrays([amounts], ["after"], mask=pa.array([False, True]))

    assert field_values(rows, ("after", "amount")).to_pylist() == [1, None]


def test_a_field_of_a_dictionary_of_structs_is_given():
    structs = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array([{"b": "x"}, {"b": "y"}]))

    assert field_values(structs, ("b",)).to_pylist() == ["x", "y", "x"]


def test_a_table_gets_the_columns_of_its_fields_in_chunks():
    table = pa.table({"payload": pa.chunked_array([[{"op": "c"}], [None]], PAYLOAD)})

    assert with_field_columns(table, ["payload.op", "payload.xx", "payload", "payload.op"]).to_pydict() == {
        "payload": [{"after": None, "op": "c", "tags": None}, None],
        "payload.op": ["c", None],
    }
    assert (
        with_field_columns(table.slice(0, 0), ["payload.op"]).schema.field("payload.op").type == pa.string()
    )


def test_columns_and_fields_of_a_batch_are_named_in_any_order_and_stay_encoded():
    parts = pa.array(["x", "y", "x"]).dictionary_encode()
    batch = pa.record_batch({"n": [1, 2, 3], "k": pa.StructArray.from_arrays([parts], ["part"])})
    names = ["k.part", "n", "k"]
    found = named_columns(batch, names, nested_fields(batch.schema, names))

    assert found.schema.names == names
    assert found.column("k.part").equals(parts)
    assert found.column("k").equals(batch.column("k"))


def test_a_struct_is_narrowed_to_paths():
    narrowed = struct_of_paths(PAYLOAD, [("op",), ("after", "amount")])

    assert narrowed == pa.struct({"after": pa.struct({"amount": pa.int64()}), "op": pa.string()})
    assert struct_of_paths(PAYLOAD, [("after",), ("after", "amount")]) == pa.struct({"after": AFTER})


def test_only_wanted_leaves_are_read():
    wanted = struct_of_paths(PAYLOAD, [("op",), ("after", "amount")])

    assert paths_read("payload", wanted, PAYLOAD) == ["payload.after.amount", "payload.op"]
    assert paths_read("payload", PAYLOAD, PAYLOAD) == ["payload"]
    assert paths_read("payload", pa.struct({"after": AFTER}), PAYLOAD) == ["payload.after"]


def test_a_struct_that_lacks_the_wanted_leaf_is_read_for_its_rows():
    wanted = pa.struct({"note": pa.string()})

    assert paths_read("payload", wanted, PAYLOAD) == ["payload"]
    assert paths_read("payload", wanted, pa.int64()) == ["payload"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("user_id", " Did you mean 'payload.after.user_id'?"),
        (
            "payload.user_id",
            " The struct 'payload' has no field 'user_id': after, op, tags. Did you mean 'payload.after.user_id'?",
        ),
        (
            "payload.after.amonut",
            " The struct 'payload.after' has no field 'amonut': user_id, amount. Did you mean 'payload.after.amount'?",
        ),
        ("payload.op.x", " 'payload.op' is string and not a struct, so it has no field 'x'."),
        (
            "payload.tags.x.y",
            f" 'payload.tags' is {pa.list_(pa.string())} and not a struct, so it has no field 'x'.",
        ),
        ("PAYLOAD.After.USER_ID", " Did you mean 'payload.after.user_id'?"),
        ("Payload", " Did you mean 'payload'?"),
        ("zzz", ""),
        ("qqq.zzz", ""),
    ],
)
def test_what_is_said_of_a_name_that_means_nothing(name, told):
    assert unknown_name(SCHEMA, name) == told


def test_few_fields_of_a_wide_struct_are_shown():
    wide = pa.schema({"s": pa.struct({f"field_{number}": pa.int64() for number in range(2_000)})})

    assert "field_0, field_1, " in unknown_name(wide, "s.x")
    assert "field_11 and 1,988 more." in unknown_name(wide, "s.x")
