"""Commands over columns of messages, which --decode decodes."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from equipment.kafka_messages import CLICK, avro, descriptor_set, framed, kafka_table, protobuf

from flinkcore.cli import main
from flinkcore.cli.decoders import decoders_named
from flinkcore.errors import ConfigurationError

CLICKS = [{"user": "ab"[n % 2], "at": 1_000 * n} for n in range(20)]


def counts(
    tmp_path: Path, values: list[bytes | None], *decode: str, key: str = "value.user"
) -> dict[str, int]:
    (tmp_path / "log").mkdir(exist_ok=True)
    pq.write_table(kafka_table(values), tmp_path / "log" / "a.parquet")
    options = [option for text in decode for option in ("--decode", text)]
    options += ["--key", key, "--window", "tumbling:1h", "--aggregate", "n=count()", "--engine", "embedded"]
    output = tmp_path / "out"
    assert main(["replay", str(tmp_path / "log"), *options, "--quiet", "--output", str(output)]) == 0
    table = pq.read_table(output)
    return dict(zip(table[key].to_pylist(), table["n"].to_pylist(), strict=True))


def test_a_command_decodes_messages_in_json(tmp_path: Path) -> None:
    values = [json.dumps(click).encode() for click in CLICKS]
    assert counts(tmp_path, values, "value=json:user STRING, at BIGINT") == {"a": 10, "b": 10}


def test_a_command_decodes_changes_in_messages(tmp_path: Path) -> None:
    values = [json.dumps({"op": "c", "after": click}).encode() for click in CLICKS]
    assert counts(tmp_path, values, "value=debezium:user STRING, at BIGINT") == {"a": 10, "b": 10}


def test_a_command_decodes_two_columns(tmp_path: Path) -> None:
    schema = tmp_path / "key.avsc"
    schema.write_text(
        json.dumps({"type": "record", "name": "Key", "fields": [{"name": "k", "type": "string"}]})
    )
    table = kafka_table([json.dumps(click).encode() for click in CLICKS])
    keys = [avro(json.loads(schema.read_text()), {"k": "x"})] * len(CLICKS)
    at = table.schema.get_field_index("key")
    (tmp_path / "log").mkdir()
    pq.write_table(table.set_column(at, table.field(at), [keys]), tmp_path / "log" / "a.parquet")
    options = ["--decode", "value=json:user STRING", "--decode", f"key=avro:{schema}", "--key", "key.k"]
    options += ["--window", "tumbling:1h", "--aggregate", "last=max_by(value.user, offset)", "--quiet"]
    output = ["--engine", "embedded", "--output", str(tmp_path / "out")]
    assert main(["replay", str(tmp_path / "log"), *options, *output]) == 0
    assert pq.read_table(tmp_path / "out")["key.k"].to_pylist() == ["x"]


@pytest.mark.parametrize("form", ["file", "file with header", "folder"])
def test_a_command_decodes_messages_in_avro(form: str, tmp_path: Path) -> None:
    folder = tmp_path / "schemas"
    folder.mkdir()
    (folder / "3.avsc").write_text(json.dumps(CLICK))
    bodies = [avro(CLICK, {**click, "price": None}) for click in CLICKS]
    is_framed = form != "file"
    named = {"file": "3.avsc", "file with header": "3.avsc,header", "folder": ""}[form]
    values = [framed(3, body) if is_framed else body for body in bodies]
    assert counts(tmp_path, values, f"value=avro:{folder}/{named}") == {"a": 10, "b": 10}


@pytest.mark.parametrize("is_framed", [False, True])
def test_a_command_decodes_messages_in_protobuf(is_framed: bool, tmp_path: Path) -> None:
    (tmp_path / "shop.desc").write_bytes(descriptor_set())
    values = [protobuf("shop.Click", **click) for click in CLICKS]
    values = [framed(3, b"\x02\x02" + body) if is_framed else body for body in values]
    end = ",header" if is_framed else ""
    decode = f"value=protobuf:{tmp_path}/shop.desc,shop.Click{end}"
    assert counts(tmp_path, values, decode) == {"a": 10, "b": 10}


def test_a_registry_is_named_with_a_subject() -> None:
    decoder = decoders_named(["value=avro:http://registry:8081,clicks-value"])["value"]
    assert (decoder.registry, decoder.subject, decoder.is_framed) == (
        "http://registry:8081",
        "clicks-value",
        True,
    )


@pytest.mark.parametrize(
    "text",
    [
        "json",
        "value",
        "value=json",
        "value=json:",
        "=json:a INT",
        "value=xml:a",
        "value=protobuf:shop.desc",
        "value=avro:a.avsc,b.avsc",
        "value=protobuf:a,b,c",
        "value=avro:http://registry,a,b",
    ],
)
def test_an_option_that_is_not_a_decoder_says_what_to_write(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"is not a decoder\. Write COLUMN=json:DDL") as error:
        decoders_named([text])
    assert repr(text) in str(error.value)


def test_decoders_that_exclude_each_other_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="column 'value' is given twice"):
        decoders_named(["value=json:a INT", "value=json:b INT"])
    with pytest.raises(ConfigurationError, match="write COLUMN=debezium:DDL"):
        decoders_named(["debezium", "value=json:b INT"])
