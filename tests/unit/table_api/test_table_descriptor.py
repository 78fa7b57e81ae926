"""Descriptors of tables: their texts are those that PyFlink 2.3 prints, and their statements those of SQL."""

from typing import Any

import pytest

from flinkcore.common import ConfigOptions
from flinkcore.errors import ArgumentTypeError, ConfigurationError
from flinkcore.table import DataTypes, FormatDescriptor, Schema, TableDescriptor

SCHEMA = (
    Schema.new_builder()
    .from_row_data_type(
        DataTypes.ROW(
            [DataTypes.FIELD("id", DataTypes.INT(False)), DataTypes.FIELD("x y", DataTypes.DECIMAL(10, 2))]
        )
    )
    .column("z", "BIGINT NOT NULL")
    .column_by_metadata("topic", DataTypes.TIME(), None, True)
    .column_by_expression("ts", "orig_ts - INTERVAL '60' MINUTE")
    .column_by_metadata("orig_ts", "TIMESTAMP(3)", "timestamp")
    .watermark("ts", "ts - INTERVAL '5' SECOND")
    .primary_key("id", "z")
    .build()
)
JSON = FormatDescriptor.for_format("json").option("ignore-parse-errors", "true")
KEY = ConfigOptions.key("key.format").string_type().no_default_value()
COUNT = ConfigOptions.key("n").int_type().no_default_value()
TABLE = (
    TableDescriptor.for_connector("kafka")
    .schema(SCHEMA)
    .option("topic", "it's")
    .option(COUNT, 5)
    .format(JSON.build())
    .format(JSON.build(), KEY)
    .partitioned_by("id")
    .comment("hello 'x'")
    .build()
)


def test_descriptors_are_shown_as_pyflink_shows_them() -> None:
    assert str(SCHEMA) == (
        "(\n  `id` INT NOT NULL,\n  `x y` DECIMAL(10, 2),\n  `z` [BIGINT NOT NULL],\n"
        "  `topic` TIME(0) METADATA VIRTUAL,\n  `ts` AS [orig_ts - INTERVAL '60' MINUTE],\n"
        "  `orig_ts` [TIMESTAMP(3)] METADATA FROM 'timestamp',\n"
        "  WATERMARK FOR `ts` AS [ts - INTERVAL '5' SECOND],\n"
        "  CONSTRAINT `PK_id_z` PRIMARY KEY (`id`, `z`) NOT ENFORCED\n)"
    )
    assert str(TABLE).startswith(
        f"{SCHEMA}\nCOMMENT 'hello 'x''\nPARTITIONED BY (`id`)\nWITH (\n  'connector' = 'kafka',\n  'topic' = 'it''s',"
    )
    assert str(JSON.build()) == "json[{ignore-parse-errors=true}]"
    assert str(TableDescriptor.for_connector("datagen").build()) == "\nWITH (\n  'connector' = 'datagen'\n)"


def test_options_of_a_format_have_its_name_before_them() -> None:
    assert TABLE.get_options() == {
        "connector": "kafka",
        "topic": "it's",
        "n": "5",
        "format": "json",
        "json.ignore-parse-errors": "true",
        "key.format": "json",
        "key.json.ignore-parse-errors": "true",
    }
    assert (TABLE.get_partition_keys(), TABLE.get_comment()) == (["id"], "hello 'x'")
    assert TableDescriptor.for_connector("a").format("csv").build().get_options()["format"] == "csv"


def test_a_descriptor_becomes_a_statement() -> None:
    assert TABLE._created("CREATE TABLE t") == (
        "CREATE TABLE t (`id` INT NOT NULL, `x y` DECIMAL(10, 2), `z` BIGINT NOT NULL, "
        "`topic` TIME(0) METADATA VIRTUAL, `ts` AS orig_ts - INTERVAL '60' MINUTE, "
        "`orig_ts` TIMESTAMP(3) METADATA FROM 'timestamp', WATERMARK FOR `ts` AS ts - INTERVAL '5' SECOND, "
        "CONSTRAINT `PK_id_z` PRIMARY KEY (`id`, `z`) NOT ENFORCED) COMMENT 'hello ''x''' PARTITIONED BY (`id`) "
        "WITH ('connector' = 'kafka', 'topic' = 'it''s', 'n' = '5', 'format' = 'json', "
        "'json.ignore-parse-errors' = 'true', 'key.format' = 'json', 'key.json.ignore-parse-errors' = 'true')"
    )


def test_schemas_of_the_same_columns_are_equal() -> None:
    copy = Schema.new_builder().from_schema(SCHEMA).build()
    assert copy == SCHEMA
    assert hash(copy) == hash(SCHEMA)
    assert copy != Schema.new_builder().column("id", "INT").build()


def test_a_table_without_columns_and_a_key_that_may_be_null_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"no columns. Call schema\(...\)"):
        TableDescriptor.for_connector("print").build()._created("CREATE TABLE t")
    schema = Schema.new_builder().column("a", DataTypes.INT()).primary_key("a").build()
    with pytest.raises(
        ConfigurationError, match=r"'a' of the primary key may be null. Write DataTypes.BIGINT"
    ):
        TableDescriptor.for_connector("print").schema(schema).build()._created("CREATE TABLE t")
    of_stream = Schema.new_builder().column_by_expression("b", "a + 1").primary_key("a").build()
    with pytest.raises(ConfigurationError, match="'a' of the primary key may be null"):
        of_stream._ddl([("a", "INT")])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda builder: builder.column("a", 1), "'a' has the type 1. Write DataTypes"),
        (lambda builder: builder.column_by_expression("a", object()), "Write it as SQL text"),
        (lambda builder: builder.watermark("a", object()), "Write it as SQL text"),
        (
            lambda builder: builder.from_row_data_type(DataTypes.INT()),
            r"not a type of rows. Write DataTypes.ROW",
        ),
        (lambda builder: builder.from_fields(["a"], []), "1 columns have 0 types"),
        (lambda builder: builder.from_resolved_schema(None), "call from_schema, or column for each column"),
    ],
)
def test_what_a_schema_does_not_take_is_named(call: Any, message: str) -> None:
    with pytest.raises((ArgumentTypeError, ConfigurationError, AttributeError), match=message):
        call(Schema.new_builder())
