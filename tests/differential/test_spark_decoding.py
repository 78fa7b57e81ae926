"""Messages of Kafka, decoded on Spark: the same rows, rejections and errors as in this process."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from equipment.sampling import sampled

pytest.importorskip("pyspark")

from equipment.kafka_messages import CLICK, avro, descriptor_set, framed, kafka_table, protobuf
from equipment.spark_sessions import dataframe_of

import flinkcore as fc
from flinkcore.errors import DataError
from flinkcore.spark import SparkExecutionEnvironment

BAD = fc.OutputTag("bad")
ROWS = 300
DECODERS = {
    "json": fc.json_values("user STRING, at BIGINT"),
    "avro": fc.avro_values(schemas={3: CLICK}),
    "protobuf": fc.protobuf_values(descriptor_set(), "shop.Click", has_header=True),
}


def message(kind: str, number: int) -> bytes | None:
    user, at = f"u{number % 3}", 100 * number - 700 * (number % 5)
    if number % 50 == 49:
        return b"oops %d" % number
    if kind == "json":
        return json.dumps({"user": user, "at": at}).encode()
    if kind == "avro":
        return framed(3, avro(CLICK, {"user": user, "at": at, "price": Decimal(1)}))
    return framed(3, b"\x02\x02" + protobuf("shop.Click", user=user, at=at))


def job(env: Any, log: Any, decoder: Any, **settings: Any) -> Any:
    stream = env.from_event_log(
        log,
        timestamp="value.at",
        arrival="timestamp",
        split="partition",
        decode={"value": decoder},
        **settings,
    )
    bounded = fc.WatermarkStrategy.for_bounded_out_of_orderness(fc.Duration.of_millis(500))
    return (
        stream.assign_timestamps_and_watermarks(bounded)
        .key_by("value.user")
        .window(fc.TumblingEventTimeWindows.of(fc.Duration.of_seconds(1)))
        .aggregate(n=fc.count())
    )


def rows(result: Any) -> list[str]:
    return sorted(map(repr, result.to_arrow().to_pylist()))


def rejected(result: Any) -> list[tuple[Any, ...]]:
    found = result.get_side_output(BAD).to_arrow().to_pylist()
    return sorted((row["offset"], row["reason"], row["record"]["text"]) for row in found)


@pytest.mark.parametrize("kind", sampled(DECODERS, 3))
def test_spark_decodes_as_this_process_does(spark: Any, tmp_path: Path, kind: str) -> None:
    table = kafka_table([message(kind, number) for number in range(ROWS)])
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=40)
    embedded = fc.StreamExecutionEnvironment.get_execution_environment()
    on_spark = SparkExecutionEnvironment(spark)
    expected = job(embedded, tmp_path, DECODERS[kind], on_bad_row=BAD).execute()
    wanted, wanted_rejected = rows(expected), rejected(expected)
    assert expected.report.rejected == {"unreadable record": ROWS // 50}
    frame = dataframe_of(spark, table)
    logs = {
        "path": str(tmp_path),
        "frame": frame.repartition(3),
        "frame of files": spark.read.parquet(str(tmp_path)),
    }
    for name, log in logs.items():
        for position in (None, "offset"):
            result = job(on_spark, log, DECODERS[kind], on_bad_row=BAD, position=position).execute()
            assert (name, rows(result)) == (name, wanted)
            assert (name, rejected(result)) == (name, wanted_rejected)
            assert result.report.rejected == expected.report.rejected
    with pytest.raises(
        DataError, match=r"row 49 \(from 0\) of .*a\.parquet: column 'value' cannot be decoded"
    ):
        job(on_spark, str(tmp_path), DECODERS[kind]).to_arrow()
    with pytest.raises(Exception, match=r"partition \d+ of the DataFrame: column 'value' cannot be decoded"):
        job(on_spark, frame, DECODERS[kind]).to_arrow()


def test_kafkas_columns_need_no_settings_on_spark(spark: Any, tmp_path: Path) -> None:
    table = kafka_table([message("json", number) for number in range(40)], 3)
    table = table.take([7 * row % 40 for row in range(40)])
    records = pa.StructArray.from_arrays(
        [table[name].combine_chunks() for name in ("partition", "offset", "timestamp")],
        ["partition", "offset", "timestamp"],
    )
    redpanda = pa.table({"redpanda": records, "user": table["key"]})
    size = fc.TumblingEventTimeWindows.of(fc.Duration.of_seconds(10))
    strategy = fc.WatermarkStrategy.for_monotonous_timestamps()
    for name, log in {"kafka": table, "redpanda": redpanda}.items():
        pq.write_table(log, tmp_path / f"{name}.parquet")
        on_spark, embedded = (
            SparkExecutionEnvironment(spark),
            fc.StreamExecutionEnvironment.get_execution_environment(),
        )
        found = []
        for env, data in (
            (embedded, log),
            (on_spark, str(tmp_path / f"{name}.parquet")),
            (on_spark, dataframe_of(spark, log).repartition(2)),
        ):
            events = env.from_event_log(data).assign_timestamps_and_watermarks(strategy)
            result = events.window_all(size).aggregate(n=fc.count()).execute()
            found.append((rows(result), sorted(map(str, result.report.split_watermarks)), result.report.late))
        assert found[0] == found[1] == found[2]
        assert found[0][2] == 0
        assert len(found[0][1]) == 3


def test_debeziums_changes_are_in_order_on_spark(spark: Any, tmp_path: Path) -> None:
    rows_of = [{"id": n, "name": f"n{n}"} for n in range(30)]
    changes = [{"op": "c", "before": None, "after": row} for row in rows_of]
    changes += [{"op": "u", "before": row, "after": {**row, "name": "z"}} for row in rows_of[:20]]
    values = [json.dumps(each).encode() for each in changes] + [None, b"oops"]
    table = kafka_table(values, 3)
    table = table.take([7 * row % len(table) for row in range(len(table))])
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=10)
    strategy = fc.WatermarkStrategy.for_monotonous_timestamps()
    size = fc.TumblingEventTimeWindows.of(fc.Duration.of_seconds(60))
    on_spark, embedded = (
        SparkExecutionEnvironment(spark),
        fc.StreamExecutionEnvironment.get_execution_environment(),
    )
    found = []
    for env, log in (
        (embedded, table),
        (on_spark, str(tmp_path)),
        (on_spark, dataframe_of(spark, table).repartition(2)),
    ):
        decode = {"value": fc.debezium_values("id BIGINT, name STRING")}
        events = env.from_event_log(log, decode=decode, on_bad_row="drop").assign_timestamps_and_watermarks(
            strategy
        )
        keyed = events.with_columns(id=pc.struct_field(pc.field("value"), "id")).key_by("id")
        result = keyed.window(size).aggregate(kinds=fc.collect("row_kind"), n=fc.count()).execute()
        found.append((rows(result), result.report.rejected))
    assert found[0] == found[1] == found[2]
    assert found[0][1] == {"unreadable record": 1}
    assert sum("['+I', '-U', '+U']" in row for row in found[0][0]) == 20


def test_changes_that_arrive_together_keep_their_rows_in_order_on_spark(spark: Any, tmp_path: Path) -> None:
    changes = [
        {
            "op": "u",
            "before": {"id": n % 7, "price": n},
            "after": {"id": n % 7, "price": n + 1},
            "at": n // 20 * 1_000,
        }
        for n in range(140)
    ]
    pq.write_table(pa.Table.from_pylist(changes), tmp_path / "a.parquet", row_group_size=30)
    frame = spark.read.parquet(str(tmp_path))
    found = []
    for log in (frame, frame.repartition(3).withColumn("noted", frame["op"])):
        events = SparkExecutionEnvironment(spark).from_event_log(
            log, timestamp="at", arrival="at", decode="debezium"
        )
        events = events.assign_timestamps_and_watermarks(fc.WatermarkStrategy.for_monotonous_timestamps())
        windows = events.key_by("id").window(fc.TumblingEventTimeWindows.of(fc.Duration.of_seconds(1)))
        result = windows.aggregate(kinds=fc.collect("row_kind"), prices=fc.collect("price")).to_arrow()
        found.append(result.sort_by([("window_start", "ascending"), ("id", "ascending")]).to_pylist())
        for row in found[-1]:
            assert row["kinds"] == ["-U", "+U"] * (len(row["kinds"]) // 2)
            pairs = zip(row["prices"][::2], row["prices"][1::2], strict=True)
            assert all(after == before + 1 for before, after in pairs)
    assert [row["kinds"] for row in found[0]] == [row["kinds"] for row in found[1]]


def test_values_that_spark_keeps_have_their_types(spark: Any) -> None:
    kept = job(SparkExecutionEnvironment(spark), dataframe_of(spark, kafka_table([])), DECODERS["json"])
    assert kept.to_arrow().schema.field("value.user").type == pa.string()
