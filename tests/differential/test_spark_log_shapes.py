"""Logs in the shapes that systems leave them in: the same rows by path, as DataFrame and by command, or what to do.

Each `Shape` is a log as it is found, with the settings that its user tries first. Either these give the right rows
and nothing is said, or an error or a warning holds the line to write, and the settings with that line give them.
"""

import io
import json
import re
import struct
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from equipment.encrypted_parquet import write_encrypted
from equipment.iceberg_tables import catalog_at
from equipment.sampling import in_turn
from equipment.spark_sessions import dataframe_of
from pyspark.errors import PySparkException

from flinkcore.cli import main
from flinkcore.common import Duration, Time, WatermarkStrategy
from flinkcore.datastream import FILE, DataStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import Aggregate
from flinkcore.errors import FlinkcoreError
from flinkcore.spark import SparkExecutionEnvironment

# Results are instants, whatever the zone of the session.
pytestmark = pytest.mark.spark_session(
    "local[2]", spark_sql_shuffle_partitions="1", spark_sql_session_timeZone="America/New_York"
)

START = 1_704_067_200  # 2024-01-01
SECONDS = range(120)
INSTANTS = pa.timestamp("ms", "UTC")

Rows = list[tuple[Any, ...]]


def rows_of(
    zone: str = "+00:00",
    result: Callable[[int], Any] = lambda start: 15,
    users: Any = ("a", "b"),
    behind_s: int = 0,
) -> Rows:
    """Return rows of windows of half a minute in which two users click in turn, the second one late by some time."""
    rows = [
        (user, f"{shown(START + start - late_s)}{zone}", result(start))
        for user, late_s in zip(users, (0, behind_s), strict=True)
        for start in range(0, 120, 30)
    ]
    return sorted(rows, key=repr)


def shown(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%dT%H:%M:%S}"


RIGHT = rows_of()
COUNT = Aggregate("count")


# ---- the ways


@dataclass
class Outcome:
    """Rows, unless there was an error, and what was said by errors and warnings."""

    rows: Rows | None
    said: list[str]


def plain(value: Any) -> Any:
    """Return a value that can be sorted and compared: NaN is equal to NaN."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict):
        return tuple((name, plain(part)) for name, part in value.items())
    if isinstance(value, list):
        return tuple(map(plain, value))
    return "NaN" if value != value else value


def sorted_rows(results: pa.Table) -> Rows:
    columns = [
        name for name in results.column_names if name not in ("window_end", "watermark", "late_firing")
    ]
    rows = [tuple(map(plain, row.values())) for row in results.select(columns).to_pylist()]
    return sorted(rows, key=repr)


def job(log: DataStream, key: str, aggregate: Aggregate, where: Any) -> DataStream:
    events = log if where is None else log.filter(where)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    keyed = events.assign_timestamps_and_watermarks(strategy).key_by(key)
    return keyed.window(TumblingEventTimeWindows.of(Time.seconds(30))).aggregate(result=aggregate)


def by_program(
    env: Any, log: Callable[[], Any], settings: Mapping[str, Any], aggregate: Aggregate, key: str
) -> Outcome:
    """Run the job in an environment; errors of Spark itself count as errors, too."""
    given = {"timestamp": "ts", "rate": 1.0, **settings}
    where = given.pop("where", None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            rows = sorted_rows(job(env.from_event_log(log(), **given), key, aggregate, where).to_arrow())
            said = []
        except (FlinkcoreError, PySparkException) as error:
            rows, said = None, [str(error)]
    return Outcome(
        rows, said + [str(each.message) for each in caught if issubclass(each.category, UserWarning)]
    )


def called(aggregate: Aggregate) -> str:
    return f"{aggregate.function}({','.join(filter(None, (aggregate.column, aggregate.by)))})"


def by_command(path: Path, settings: Mapping[str, Any], aggregate: Aggregate, key: str) -> Outcome:
    """Run ``flinkcore replay``, on the session that runs already."""
    given = {"timestamp": "ts", "rate": 1.0, **settings}
    if given.get("split") is FILE:
        given["split_per_file"] = given.pop("split")
    options = [
        text
        for name, value in given.items()
        if value is not None
        for text in (f"--{name.replace('_', '-')}", *([] if value is FILE else [str(value)]))
    ]
    output, said = path.parent / "results", io.StringIO()
    arguments = ["replay", str(path), *options, "--key", key, "--window", "tumbling:30s", "--quiet"]
    arguments += ["--engine", "spark"]
    arguments += ["--out-of-orderness", "1s", "--output", str(output), "--mode", "overwrite"]
    arguments += ["--parallelism", "1", "--aggregate", f"result={called(aggregate)}"]
    with redirect_stderr(said), redirect_stdout(io.StringIO()):
        status = main(arguments)
    rows = None if status else sorted_rows(pq.read_table(output))
    return Outcome(rows, said.getvalue().splitlines())


# ---- the shapes


@dataclass(frozen=True)
class Expected:
    """What the settings that are tried first lead to.

    Attributes
    ----------
    says
        Regular expression of an error or a warning, with the line to write; None: nothing is said.
    mended
        Settings which that line adds; then nothing is said. None: there is no such line, for the reason in a comment.
    rows
        Rows in the end; None: there are none.
    """

    says: str | None = None
    mended: Mapping[str, Any] | None = None
    rows: Rows | None = field(default_factory=lambda: RIGHT)


def refused(says: str) -> Expected:
    """Return that there are no rows, and that settings give none: the log has to be written anew."""
    return Expected(says, rows=None)


@dataclass(frozen=True)
class Shape:
    """A log, how Spark reads it, and what comes of it; `but` has the ways in which that is different."""

    write: Callable[[Path], Path | None]
    frame: Callable[[Any, Path], Any]
    expected: Expected = Expected()
    settings: Mapping[str, Any] = field(default_factory=dict)
    aggregate: Aggregate = COUNT
    key: str = "user"
    but: Mapping[str, Expected] = field(default_factory=dict)


def times(seconds: Iterable[float]) -> pa.Array:
    return pa.array([int(1000 * (START + second)) for second in seconds], INSTANTS)


def clicks(seconds: Iterable[float] = SECONDS, ts: Any = None, **columns: Any) -> pa.Table:
    """Clicks of two users in turn, the times of which may be written in another type."""
    given = list(seconds)
    users = ["ab"[int(second) % 2] for second in given]
    return pa.table({"ts": times(given) if ts is None else ts, "user": users, **columns})


def file(table: pa.Table, name: str = "clicks.parquet", **options: Any) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path / name, **options)

    return write


def parquet(spark: Any, path: Path) -> Any:
    return spark.read.parquet(str(path))


def merged_parquet(spark: Any, path: Path) -> Any:
    return spark.read.option("mergeSchema", True).parquet(str(path))


def united(kind: str, **options: Any) -> Callable[[Any, Path], Any]:
    """Return what reads files one by one and unites their rows by the names of columns."""

    def read(spark: Any, path: Path) -> Any:
        one, other = (spark.read.load(str(path / f"{n}.{kind}"), kind, **options) for n in (1, 2))
        return one.unionByName(other, allowMissingColumns=True)

    return read


def json_lines(spark: Any, path: Path) -> Any:
    return spark.read.json(str(path))


def csv(spark: Any, path: Path) -> Any:
    return spark.read.csv(str(path), "ts STRING, user STRING", header=True)


def avro(spark: Any, path: Path) -> Any:
    """Read Avro, for which Spark needs a package of its own."""
    rows = [
        row for name in sorted(path.rglob("*.avro")) for row in fastavro.reader(io.BytesIO(name.read_bytes()))
    ]
    return dataframe_of(spark, pa.Table.from_pylist(rows))


def clicks_of_table(spark: Any, path: Path) -> Any:
    """Return the rows that a table has now, for which Spark needs a package of its own."""
    return dataframe_of(spark, clicks())


def within(table: pa.Table, *names: str) -> pa.Table:
    """Return a table whose rows are structs within structs, by the names from the outermost on."""
    rows = pa.StructArray.from_arrays(
        [column.combine_chunks() for column in table.columns], table.column_names
    )
    for name in reversed(names[1:]):
        rows = pa.StructArray.from_arrays([rows], [name])
    return pa.table({names[0]: rows})


def of_kafka() -> pa.Table:
    """Return clicks in no order, with the places of records that Kafka has given them."""
    table = clicks(partition=[second % 2 for second in SECONDS], offset=[second // 2 for second in SECONDS])
    return table.rename_columns({"ts": "timestamp"}).take([second * 77 % 120 for second in SECONDS])


def in_a_topic_of_redpanda(path: Path) -> None:
    table = of_kafka()
    places = table.select(["partition", "offset", "timestamp"])
    file(within(places, "redpanda").append_column("user", table["user"]))(path)


def in_envelopes(path: Path) -> None:
    """Write the changes of a table to which each click adds a row."""
    path.mkdir()
    with (path / "changes.json").open("w") as opened:
        for second in SECONDS:
            after, source = {"user": "ab"[second % 2]}, {"ts_ms": 1000 * (START + second)}
            print(json.dumps({"op": "c", "before": None, "after": after, "source": source}), file=opened)


ENVELOPE = "op STRING, before STRUCT<user: STRING>, after STRUCT<user: STRING>, source STRUCT<ts_ms: BIGINT>"


def in_tabs(path: Path) -> None:
    path.mkdir()
    lines = [f"{shown(START + second)}Z\t{'ab'[second % 2]}\n" for second in SECONDS]
    (path / "clicks.tsv").write_text("".join(["ts\tuser\n", *lines]))


def write_orc(path: Path) -> None:
    path.mkdir()
    for number, part in enumerate((range(60), range(60, 120))):
        pa.orc.write_table(clicks(part), str(path / f"{number}.orc"))


def orc(spark: Any, path: Path) -> Any:
    return spark.read.orc(str(path))


def in_directories_of_partitions(path: Path) -> None:
    for partition in range(3):
        # The second file is the larger one, which Spark reads first.
        for name, part in (
            ("a.parquet", range(partition, 30, 3)),
            ("b.parquet", range(30 + partition, 120, 3)),
        ):
            file(clicks(part), name)(path / f"partition={partition}")


def in_files_that_overlap(path: Path) -> None:
    for number in range(3):
        file(clicks(range(number, 120, 3)), f"{number}.parquet")(path)


def write_avro(path: Path, rows: Iterable[Mapping[str, Any]], ts: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fields = [{"name": "ts", "type": ts}, {"name": "user", "type": [{"type": "null"}, {"type": "string"}]}]
    with path.open("wb") as opened:
        fastavro.writer(opened, {"type": "record", "name": "click", "fields": fields}, rows)


AVRO_MICROS = {"type": "long", "logicalType": "timestamp-micros"}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}


def in_files_of_kafka_connect(path: Path) -> None:
    for partition in range(2):
        for offset in (0, 42):
            seconds = range(offset + partition, 42 if offset == 0 else 120, 2)
            write_avro(path / f"clicks+{partition}+{offset:010}.avro", clicks(seconds).to_pylist(), MILLIS)


def text(suffix: str) -> pa.Array:
    """Return times as text; +05:30 is that offset."""
    hours = 5.5 if suffix == "+05:30" else 0
    stamps = [datetime.fromtimestamp(START + second + 3600 * hours, timezone.utc) for second in SECONDS]
    return pa.array([f"{stamp:%Y-%m-%dT%H:%M:%S}{suffix}" for stamp in stamps])


def with_bad_row(suffix: str) -> Callable[[Path], None]:
    """Write CSV whose last row has no time."""

    def write(path: Path) -> None:
        path.mkdir()
        bad = pa.table({"ts": ["?"], "user": ["a"]})
        pacsv.write_csv(pa.concat_tables([clicks(ts=text(suffix)), bad]), path / "clicks.csv")

    return write


def overwritten_delta(path: Path) -> None:
    deltalake.write_deltalake(path, clicks(range(60)))
    deltalake.write_deltalake(path, clicks(), mode="overwrite")


def overwritten_iceberg(path: Path) -> Path:
    path.mkdir()
    catalog = catalog_at(path)
    found = catalog.create_table("logs.clicks", schema=clicks().cast(MICROS).schema)
    found.append(clicks(range(60)).cast(MICROS))
    found.overwrite(clicks().cast(MICROS))
    catalog.close()
    return Path(found.location().removeprefix("file://"))


MICROS = pa.schema({"ts": pa.timestamp("us", "UTC"), "user": pa.string()})


def growing_json(path: Path) -> None:
    path.mkdir()
    rows = [{**row, "ts": row["ts"].isoformat()} for row in clicks().to_pylist()]
    grown = [{**row, "click": {"page": 1, "size": 2}} for row in rows]
    known = [{**row, "click": {"page": 1}} for row in rows]
    for name, lines in (("1.json", known[:60]), ("2.json", grown[60:])):
        (path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))


def growing_columns(path: Path) -> None:
    file(clicks(range(60)), "1.parquet")(path)
    file(clicks(range(60, 120), size=[1] * 60), "2.parquet")(path)


def growing_numbers(path: Path) -> None:
    file(clicks(range(60), size=[1] * 60), "1.parquet")(path)
    file(clicks(range(60, 120), size=[0.5] * 60), "2.parquet")(path)


def growing_csv(path: Path) -> None:
    path.mkdir()
    for name, table in ("1", clicks(range(60))), ("2", clicks(range(60, 120), size=[1] * 60)):
        pacsv.write_csv(table, str(path / f"{name}.csv"))


def growing_structs(path: Path) -> None:
    file(clicks(range(60), click=[{"page": 1}] * 60), "1.parquet")(path)
    file(clicks(range(60, 120), click=[{"page": 1, "size": 2}] * 60), "2.parquet")(path)


def with_links(path: Path) -> None:
    file(clicks())(path / "day1")
    for link, target in (("latest", "day1"), ("again", "latest"), ("day1/up", ".."), ("day1/top", "../..")):
        (path / link).symlink_to(target)


def with_temporary(path: Path) -> None:
    file(clicks())(path)
    file(clicks(range(60)), "part-0.parquet")(path / "_temporary" / "0" / "task_1")
    (path / "_temporary" / "0" / "task_1" / "part-1.parquet").write_bytes(b"PAR1 half")


def encrypted(path: Path) -> None:
    path.mkdir()
    write_encrypted(path / "clicks.parquet", clicks(), ["ts"], plaintext_footer=True)


NAN = float("nan")
OTHER_NAN = struct.unpack("<d", bytes.fromhex("010000000000f8ff"))[0]
STRUCTS = pa.array(
    [{"x": 0.5 if second % 2 == 0 else (NAN, OTHER_NAN)[second % 4 // 2]} for second in SECONDS]
)
MAPS = pa.array([[("x", NAN)]] * 120, pa.map_(pa.string(), pa.float64()))
NUMBERS = [START + second for second in SECONDS]
AHEAD = [*range(60), 76 * 366 * 86_400, *range(60, 120)]
DAY_AFTER = pa.scalar(1000 * (START + 86_400), INSTANTS)
BEHIND = [second - 600 * (second % 2) for second in SECONDS]
STAMP_MS = pa.array([1000 * number for number in NUMBERS], pa.timestamp("ms"))
STAMPS_IN_LISTS = pa.array(
    [[1000 * (number - number % 30)] for number in NUMBERS], pa.list_(pa.timestamp("ms"))
)
UNTIL_THE_LEAP = [row for row in RIGHT if "00:00:" in row[1]]
PAGES = rows_of(result=lambda start: (("page", 1), ("size", None if start < 60 else 2)))


def line(setting: str, option: str) -> str:
    """Return what names a setting to programs, with its option, and to the command, that alone."""
    return rf"(?:{setting} \({option}\)|(?<!\(){option})"


POSITION = "position='ts'"
BY_TIME = Expected(
    f"The log has no (--)?arrival.*{line(POSITION, '--position ts')}, which takes the events in the order of their",
    {"position": "ts"},
)


def unit(name: str) -> Expected:
    return Expected(rf"timestamp_unit='{name}'|--timestamp-unit {name}", {"timestamp_unit": name})


DROPS = Expected(r'on_bad_row="drop"|--on-bad-row drop', {"on_bad_row": "drop"})


SHAPES: dict[str, Shape] = {
    "directories of partitions": Shape(
        in_directories_of_partitions,
        parquet,
        # Spark reads the larger of the files of a partition first.
        but={"frame": BY_TIME},
    ),
    "files of Kafka Connect": Shape(
        in_files_of_kafka_connect,
        avro,
        # A DataFrame of their rows has no names of files.
        but={"frame": BY_TIME},
    ),
    "a column of partitions": Shape(
        file(clicks([*range(0, 120, 2), *range(1, 120, 2)], kafka_partition=[0] * 60 + [1] * 60)),
        parquet,
        Expected(
            "give " + line("split='kafka_partition'", "--split kafka_partition"), {"split": "kafka_partition"}
        ),
    ),
    "rows in no order": Shape(
        file(clicks([second * 77 % 120 for second in SECONDS])),
        parquet,
        BY_TIME,
    ),
    "files that are each in order": Shape(
        in_files_that_overlap,
        parquet,
        Expected(line("split=FILE", "--split-per-file"), {"split": FILE}),
        # A DataFrame has rows, and no files.
        but={"frame": BY_TIME},
    ),
    "an event far ahead": Shape(
        file(clicks(AHEAD)),
        parquet,
        Expected(
            r"A clock was ahead: .* has the event time 2100-.*pc\.field\('ts'\) < \.\.\.",
            {"where": pc.field("ts") < DAY_AFTER},
        ),
        # The command has no filter, and advises a program.
        but={
            "command": Expected(
                "A clock was ahead: .* write one for that",
                rows=[*UNTIL_THE_LEAP[:2], ("a", "2100-02-27T00:00:00+00:00", 1), *UNTIL_THE_LEAP[2:]],
            )
        },
    ),
    "a split far behind": Shape(
        file(clicks(BEHIND, at=times(SECONDS), device=[second % 2 for second in SECONDS])),
        parquet,
        Expected(
            r"name the column that tells sources apart \((split=, )?--split\)",
            {"split": "device"},
            rows_of(behind_s=600),
        ),
        {"arrival": "at"},
    ),
    "seconds as integers": Shape(file(clicks(ts=NUMBERS)), parquet, unit("s")),
    "microseconds as integers": Shape(
        file(clicks(ts=[number * 10**6 for number in NUMBERS])), parquet, unit("us")
    ),
    "seconds as floats": Shape(file(clicks(ts=[number + 0.25 for number in NUMBERS])), parquet, unit("s")),
    "seconds as decimals": Shape(
        file(clicks(ts=pa.array(map(Decimal, NUMBERS), pa.decimal128(20, 3)))), parquet, unit("s")
    ),
    "text with Z": Shape(file(clicks(ts=text("Z"))), parquet),
    "text with an offset": Shape(file(clicks(ts=text("+05:30"))), parquet),
    "text without an offset": Shape(file(clicks(ts=text(""))), parquet),
    "text with Z and a bad row": Shape(with_bad_row("Z"), csv, DROPS),
    "text with an offset and a bad row": Shape(with_bad_row("+05:30"), csv, DROPS),
    "text without an offset and a bad row": Shape(with_bad_row(""), csv, DROPS),
    "naive timestamps": Shape(file(clicks(ts=STAMP_MS)), parquet, Expected(rows=rows_of(""))),
    "INT96": Shape(file(clicks(ts=STAMP_MS), use_deprecated_int96_timestamps=True), parquet),
    "INT96 within lists": Shape(
        file(clicks(at=STAMPS_IN_LISTS), use_deprecated_int96_timestamps=True),
        parquet,
        Expected(rows=rows_of(result=lambda start: (f"{shown(START + start)}+00:00",))),
        aggregate=Aggregate("min_by", "at", "ts"),
    ),
    "ORC": Shape(write_orc, orc),
    "tabs": Shape(
        in_tabs,
        lambda spark, path: spark.read.csv(str(path), "ts STRING, user STRING", sep="\t", header=True),
    ),
    "structs within structs": Shape(
        file(within(clicks(), "payload", "after")),
        parquet,
        settings={"timestamp": "payload.after.ts"},
        key="payload.after.user",
    ),
    "structs whose field has another name": Shape(
        file(within(clicks(), "payload", "after")),
        parquet,
        Expected("'payload.after.ts'", {"timestamp": "payload.after.ts"}),
        settings={"timestamp": "payload.ts"},
        key="payload.after.user",
    ),
    "Spark's columns of Kafka": Shape(
        file(of_kafka().append_column("topic", [["clicks"] * 120]).append_column("value", [[b""] * 120])),
        parquet,
        settings={"timestamp": None},
    ),
    "Redpanda's columns of Kafka": Shape(in_a_topic_of_redpanda, parquet, settings={"timestamp": None}),
    "Debezium's envelopes": Shape(
        in_envelopes,
        lambda spark, path: spark.read.schema(ENVELOPE).json(str(path)),
        settings={"timestamp": "source.ts_ms", "decode": "debezium"},
    ),
    "Debezium's envelopes without a type of before": Shape(
        in_envelopes,
        json_lines,
        settings={"timestamp": "source.ts_ms", "decode": "debezium"},
        # Spark takes a column of nulls for text.
        but={"frame": refused(r"before and after .* both string and struct.* spark\.read\.schema")},
    ),
    "a Delta table": Shape(overwritten_delta, clicks_of_table),
    "an Iceberg table": Shape(overwritten_iceberg, clicks_of_table),
    "JSON with keys that grow": Shape(
        growing_json,
        json_lines,
        Expected(rows=PAGES),
        {"position": "ts"},
        Aggregate("last", "click"),
    ),
    "Parquet with a further column": Shape(
        growing_columns,
        merged_parquet,
        Expected(rows=rows_of(result=lambda start: None if start < 60 else 1)),
        {"position": "ts"},
        Aggregate("last", "size"),
    ),
    "Parquet with integers, then floats": Shape(
        growing_numbers,
        united("parquet"),
        Expected(rows=rows_of(result=lambda start: 1.0 if start < 60 else 0.5)),
        {"position": "ts"},
        Aggregate("last", "size"),
    ),
    "CSV with a further column": Shape(
        growing_csv,
        united("csv", header=True, inferSchema=True),
        Expected(rows=rows_of(result=lambda start: None if start < 60 else 1)),
        {"position": "ts"},
        Aggregate("last", "size"),
    ),
    "Parquet with a struct that grows": Shape(
        growing_structs,
        merged_parquet,
        Expected(rows=PAGES),
        {"position": "ts"},
        Aggregate("last", "click"),
    ),
    "Avro with a null in long form": Shape(
        lambda path: write_avro(path / "clicks.avro", clicks().to_pylist(), [{"type": "null"}, AVRO_MICROS]),
        avro,
    ),
    "Avro with nanoseconds": Shape(
        lambda path: write_avro(
            path / "clicks.avro",
            clicks(ts=[number * 10**9 for number in NUMBERS]).to_pylist(),
            {"type": "long", "logicalType": "timestamp-nanos"},
        ),
        clicks_of_table,
    ),
    "Avro with local times": Shape(
        lambda path: write_avro(
            path / "clicks.avro",
            clicks(ts=STAMP_MS).to_pylist(),
            {"type": "long", "logicalType": "local-timestamp-millis"},
        ),
        avro,
        Expected(rows=rows_of("")),
    ),
    "links in circles": Shape(
        with_links, lambda spark, path: spark.read.parquet(str(path / "day1" / "clicks.parquet"))
    ),
    "_temporary of a killed run": Shape(with_temporary, parquet),
    "encrypted times": Shape(
        encrypted,
        parquet,
        refused("The file is encrypted.* write it without encryption"),
        # Spark reads the files, and may have the keys.
        but={"frame": refused("It is encrypted.* write it without encryption")},
    ),
    "structs with NaN as keys": Shape(
        file(clicks().set_column(1, "user", STRUCTS)),
        parquet,
        Expected(rows=rows_of(users=((("x", 0.5),), (("x", "NaN"),)))),
    ),
    "maps as keys": Shape(
        file(clicks().set_column(1, "user", MAPS)),
        parquet,
        refused(r"map_lookup\(pyarrow\.compute\.field\('user'\)"),
    ),
}


@pytest.mark.parametrize(
    ("name", "way"), [*((name, "path") for name in SHAPES), *in_turn(SHAPES, ["frame", "command"])]
)
def test_a_shape_gives_the_right_rows_or_the_line_that_does(
    spark: Any, tmp_path: Path, name: str, way: str
) -> None:
    shape = SHAPES[name]
    path = shape.write(tmp_path / "clicks") or tmp_path / "clicks"
    expected = shape.but.get(way, shape.expected)

    def run(settings: Mapping[str, Any]) -> Outcome:
        if way == "command":
            return by_command(path, settings, shape.aggregate, shape.key)
        env = StreamExecutionEnvironment() if way == "path" else SparkExecutionEnvironment(spark)
        env.set_parallelism(1)
        log = (lambda: str(path)) if way == "path" else lambda: shape.frame(spark, path)
        return by_program(env, log, settings, shape.aggregate, shape.key)

    first = run(shape.settings)
    if expected.says is None:
        assert first.said == []
    else:
        assert any(re.search(expected.says, text) for text in first.said), first
    if expected.mended is None:
        assert first.rows == expected.rows
        return
    assert first.rows != expected.rows
    if way == "command":  # whose user has options, and no settings
        assert not re.search(r"\b(arrival|split|position|timestamp_unit|on_bad_row)=", "".join(first.said))
    assert run({**shape.settings, **expected.mended}) == Outcome(expected.rows, [])
