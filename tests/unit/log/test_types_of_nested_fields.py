"""Types that the user gives for nested fields: `schema=` with dotted names."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from flinkcore.cli import main
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import ConfigurationError, DataError, SchemaError


def rows(path: Path, *names: str, schema: Any, **settings: Any) -> dict[str, list[Any]]:
    stream = StreamExecutionEnvironment().from_event_log(
        str(path), timestamp="p.ts", schema=schema, **settings
    )
    return stream.select(*names).to_arrow().to_pydict()  # type: ignore[no-any-return]


def write_json(path: Path, *lines: dict[str, Any]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_field_of_json_has_the_type_that_is_given(tmp_path):
    write_json(
        tmp_path / "log.json", {"p": {"ts": 1, "zip": "007"}}, {"p": {"ts": 2, "price": 0.1, "zip": "7"}}
    )

    found = rows(tmp_path, "p.zip", "p.price", schema={"p.price": "decimal(10, 2)", "p.zip": "string"})

    assert found == {"p.zip": ["007", "7"], "p.price": [None, Decimal("0.10")]}


def test_times_of_several_forms_in_a_field_of_json_are_text_if_that_is_given(tmp_path):
    write_json(tmp_path / "log.json", {"p": {"ts": 1, "at": "2024-01-01"}}, {"p": {"ts": 2, "at": "soon"}})

    assert rows(tmp_path, "p.at", schema={"p.at": "string"}) == {"p.at": ["2024-01-01", "soon"]}


def test_a_field_that_only_later_lines_have_is_read_with_the_type_that_is_given(tmp_path):
    write_json(tmp_path / "1.json", {"p": {"ts": 1}}, {"p": None})
    write_json(tmp_path / "2.json", {"p": {"ts": 2, "q": {"n": 5}}})

    found = rows(tmp_path, "p.q.n", "p.q.m", schema={"p.q.m": "string", "p.q.n": "int16"}, on_bad_row="drop")

    assert found == {"p.q.n": [None, 5], "p.q.m": [None, None]}


def test_a_key_of_json_with_the_very_name_has_the_type(tmp_path):
    write_json(tmp_path / "log.json", {"p": {"ts": 1, "n": 1}, "p.n": 5}, {"p": {"ts": 2, "n": 2}, "p.n": 6})

    assert rows(tmp_path, "p.n", "p", schema={"p.n": "decimal(3, 1)"}) == {
        "p.n": [Decimal(5), Decimal(6)],
        "p": [{"ts": 1, "n": 1}, {"ts": 2, "n": 2}],
    }


def test_a_float_of_a_field_may_round_if_that_is_given(tmp_path):
    write_json(tmp_path / "log.json", {"p": {"ts": 1, "id": 0.5}}, {"p": {"ts": 2, "id": 2**53 + 1}})

    assert rows(tmp_path, "p.id", schema={"p.id": "double"}) == {"p.id": [0.5, 2.0**53]}
    with pytest.raises(SchemaError, match=r"would round: 9007199254740993"):
        rows(tmp_path, "p.id", schema=None)


def test_a_field_of_other_files_has_the_type_that_is_given(tmp_path):
    pq.write_table(pa.table({"p": [{"ts": 1, "zip": 7, "n": 1}]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"p": [{"ts": 2, "zip": "007"}]}), tmp_path / "2.parquet")

    assert rows(tmp_path, "p.zip", "p.n", schema={"p.zip": "string"}) == {
        "p.zip": ["7", "007"],
        "p.n": [1, None],
    }
    with pytest.raises(SchemaError, match=r"column 'p' is .* in .*1\.parquet but .* in .*2\.parquet"):
        rows(tmp_path, "p.zip", schema=None)


def test_a_value_that_the_given_type_of_a_field_does_not_hold_names_its_row(tmp_path):
    pq.write_table(pa.table({"p": [{"ts": 1, "n": 1}, {"ts": 2, "n": 300}]}), tmp_path / "1.parquet")

    with pytest.raises(DataError, match=r"row 1 \(from 0\) of .*1\.parquet has .*300"):
        rows(tmp_path, "p.n", schema={"p.n": "int8"})
    assert rows(tmp_path, "p.n", schema={"p.n": "int8"}, on_bad_row="drop") == {"p.n": [1]}


def test_a_field_that_no_file_has_is_an_error_with_the_right_name(tmp_path):
    pq.write_table(pa.table({"p": [{"ts": 1, "price": 1}]}), tmp_path / "1.parquet")

    with pytest.raises(
        ConfigurationError, match=r"The struct 'p' has no field 'prize'.*Did you mean 'p\.price'\?"
    ):
        rows(tmp_path, "p.price", schema={"p.prize": "double"})


def test_the_type_of_a_field_is_given_on_the_command_line(tmp_path):
    write_json(tmp_path / "log.json", {"p": {"ts": 1, "price": 0.1}}, {"p": {"ts": 2, "price": 0.2}})
    options = [
        "--timestamp",
        "p.ts",
        "--key",
        "p.ts",
        "--type",
        "p.price=decimal(10, 2)",
        "--window",
        "tumbling:1s",
    ]
    options += ["--aggregate", "s=sum(p.price)", "--engine", "embedded", "--quiet"]

    assert not main(["replay", str(tmp_path / "log.json"), *options, "--output", str(tmp_path / "out")])

    assert sorted(pq.read_table(tmp_path / "out").column("s").to_pylist()) == [
        Decimal("0.10"),
        Decimal("0.20"),
    ]


def test_a_record_is_bad_only_for_the_fields_that_the_job_reads(tmp_path):
    write_json(
        tmp_path / "log.json",
        {"p": {"ts": 1, "n": 1, "m": 1}},
        {"p": {"ts": 2, "n": "x", "m": 2}},
        {"p": {"ts": 3, "n": 3, "m": 3}},
    )
    settings = {"schema": {"p.n": "int64"}, "on_bad_row": "drop"}

    assert rows(tmp_path, "p.m", **settings) == {"p.m": [1, 2, 3]}
    assert rows(tmp_path, "p.n", **settings) == {"p.n": [1, 3]}


def test_fields_that_are_computed_by_their_paths_have_the_given_types(tmp_path):
    write_json(tmp_path / "log.json", {"p": {"ts": 1, "n": 1}})
    stream = StreamExecutionEnvironment().from_event_log(
        str(tmp_path), timestamp="p.ts", schema={"p.n": "decimal(5, 1)"}
    )

    assert stream.select(n=pc.field("p", "n")).to_arrow().schema.field("n").type == pa.decimal128(5, 1)


def test_an_error_about_a_value_in_a_struct_names_the_field_and_a_schema_that_helps(tmp_path: Path) -> None:
    for number, value in enumerate([2.5, 2**60 + 1]):
        table = pa.table({"ts": [number], "p": [{"k": "x", "q": {"a": value}}]})
        pq.write_table(table, tmp_path / f"{number}.parquet")

    def values(**schema: Any) -> list[Any]:
        log = StreamExecutionEnvironment().from_event_log(str(tmp_path), timestamp="ts", **schema)
        return log.select("p.q.a").to_arrow()["p.q.a"].to_pylist()  # type: ignore[no-any-return]

    def read_whole() -> None:
        StreamExecutionEnvironment().from_event_log(str(tmp_path), timestamp="ts").select("p").to_arrow()

    with pytest.raises(DataError) as raised:
        read_whole()
    assert f"has {2**60 + 1} in field 'p.q.a', which is int64 there. double, the type of the field" in str(
        raised.value
    )
    assert "schema={'p.q.a': 'string'}" in str(raised.value)
    assert values(schema={"p.q.a": "string"}) == ["2.5", str(2**60 + 1)]
