"""Programs that read and write Kafka run as they are, over files that options name."""

import pickle
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from equipment.topic_dumps import PROGRAMS, lines, records

from flinkcore import savepoints
from flinkcore.cli import main

WORDS = ["stream", "table", "window", "event"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    finders = sys.meta_path[:]
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.meta_path[:] = finders
    for name in list(sys.modules):
        if name == "flinkcore.pyflink" or name.partition(".")[0] == "pyflink":
            del sys.modules[name]


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    status = main(["run", *arguments])
    printed = capsys.readouterr()
    assert status == 0, printed.err
    assert printed.err == ""
    return printed.out.splitlines()


def edited(folder: Path, program: str, start: str, end: str, instead: str) -> str:
    """Write a program in which something stands from one text to another, and return its path."""
    text = (PROGRAMS / program).read_text()
    first = text.index(start)
    path = folder / f"other_{program}"
    path.write_text(text[:first] + instead + text[text.index(end, first) + len(end) :])
    return str(path)


def messages(seed: int) -> list[dict[str, object]]:
    chosen = random.Random(seed)
    return [
        {
            "text": " ".join(chosen.choices(WORDS, k=4)),
            "sent_at": 1_000_000 + number * 40 - chosen.randrange(1500),
        }
        for number in range(800)
    ]


def test_a_word_count_over_a_dump_is_that_over_its_files(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = lines(folder / "topics" / "messages" / "partition=0" / "messages+0+0000000100.json", messages(1))
    options = ["--replace-source", "KafkaSource", "messages=topics/messages"]
    counted = output(capsys, str(PROGRAMS / "word_count.py"), *options)
    assert len(counted) > 12
    assert output(capsys, *options, str(PROGRAMS / "word_count.py")) == counted
    source = (
        "from pyflink.datastream.connectors.file_system import FileSource\n"
        "    from pyflink.datastream.formats.json import JsonReaderFormat\n"
        "    lines = JsonReaderFormat.for_row_type(message)\n"
        f"    source = FileSource.for_record_stream_format(lines, {str(dump)!r}).build()\n"
    )
    other = edited(folder, "word_count.py", "source = (", ".build()\n    )\n", source)
    assert output(capsys, other) == counted


def test_timers_fire_by_the_timestamps_of_kafka(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = random.Random(2)
    rows = []
    for partition in range(2):
        time_ms = 1_000_000
        for offset in range(200):
            time_ms += chosen.randrange(1500 + 500 * partition)
            rows.append((partition, offset, time_ms, f'{{"user": "u{chosen.randrange(6)}"}}'))
    records(folder / "clicks.parquet", rows)
    options = ["--replace-source", "KafkaSource", "clicks=clicks.parquet"]
    silent = output(capsys, str(PROGRAMS / "silent_users.py"), *options)
    assert len(silent) > 10
    log = (
        f"import pyarrow as pa\nrows = {sorted(rows)}\n"
        "names = ['partition', 'offset', 'ts', 'value']\n"
        "table = pa.table(dict(zip(names, zip(*rows))))\n"
        "log = env.from_event_log(table, timestamp='ts', arrival='ts', split='partition')\n"
        "log = log.assign_timestamps_and_watermarks(\n"
        "    WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)))\n"
        "clicks = log.elements().map(lambda row: row.value)\n"
    )
    other = edited(folder, "silent_users.py", "clicks = env.from_source(", "\n)\n", log)
    assert output(capsys, other) == silent


def test_a_program_that_writes_topics_writes_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        lines(folder / f"{name}.jsonl", ({"user": f"u{n % 3}", "price": n * 17} for n in range(20)))
    options = "--replace-source KafkaSource clicks-a=a.jsonl --replace-source KafkaSource clicks-b=b.jsonl"
    assert (
        output(
            capsys,
            str(PROGRAMS / "totals_to_topic.py"),
            *options.split(),
            "--replace-sink",
            "KafkaSink",
            "out",
        )
        == []
    )
    written = {name: pq.read_table(folder / "out" / name).to_pylist() for name in ("small", "large")}
    totals: dict[str, int] = {}
    expected: dict[str, list[bytes]] = {"small": [], "large": []}
    for user, price in ((f"u{n % 3}", n * 17) for n in range(20) for _ in range(2)):
        totals[user] = totals.get(user, 0) + price
        topic = "large" if totals[user] > 500 else "small"
        expected[topic].append(b'{"user":"%b","price":%d}' % (user.encode(), totals[user]))
    assert {name: [row["value"] for row in rows] for name, rows in written.items()} == expected
    assert {row["key"] for row in written["large"]} == {b'{"user":"u%d"}' % n for n in range(3)}


def test_a_topic_that_was_written_is_the_dump_of_the_next_program(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "program.py").write_text(
        "from pyflink.common import SimpleStringSchema, WatermarkStrategy\n"
        "from pyflink.datastream import StreamExecutionEnvironment\n"
        "from pyflink.datastream.connectors.kafka import *\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "schema = SimpleStringSchema()\n"
        "source = KafkaSource.builder().set_bootstrap_servers('b').set_topics('in')\n"
        "source.set_value_only_deserializer(schema)\n"
        "records = KafkaRecordSerializationSchema.builder().set_topic('out').set_value_serialization_schema(schema)\n"
        "sink = KafkaSink.builder().set_bootstrap_servers('b').set_record_serializer(records.build())\n"
        "stream = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), 'in')\n"
        "stream.map(lambda text: text + '!').sink_to(sink.build())\n"
        "env.execute()\n"
    )
    lines(folder / "first.txt", ["a", "b"])
    common = ["--sink-format", "parquet", "--replace-sink", "KafkaSink"]
    assert (
        output(capsys, *common, "one", "--replace-source", "KafkaSource", "in=first.txt", "program.py") == []
    )
    assert output(capsys, *common, "two", "--replace-source", "KafkaSource", "in=one/out", "program.py") == []
    assert pq.read_table(folder / "two" / "out")["value"].to_pylist() == [b"a!!", b"b!!"]


def failed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["run", *arguments]) == 1
    return capsys.readouterr().err


def test_without_a_dump_the_error_is_the_right_command_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = str(PROGRAMS / "word_count.py")
    error = failed(capsys, program)
    assert "word_count.py" in error
    assert "KafkaSource reads topic 'messages' of a cluster" in error
    assert "`flinkcore run --replace-source KafkaSource messages=PATH word_count.py`" in error
    other = failed(capsys, "--replace-source", "KafkaSource", "message=x", program)
    assert "there are dumps of 'message'" in other
    lines(folder / "clicks-a.jsonl", [{"user": "a", "price": 1}])
    without_sink = [
        "--replace-source",
        "KafkaSource",
        "clicks=clicks-a.jsonl",
        str(PROGRAMS / "totals_to_topic.py"),
    ]
    assert "--replace-sink KafkaSink DIRECTORY totals_to_topic.py" in failed(capsys, *without_sink)


@pytest.mark.parametrize("given", ["job.py", "clicks=", "=dump", "clicks"])
def test_a_source_is_replaced_by_topics_with_paths(capsys: pytest.CaptureFixture[str], given: str) -> None:
    for arguments in (
        ["--replace-source", "KafkaSource", given, "job.py"],
        [str(PROGRAMS / "word_count.py"), "--replace-source", "KafkaSource", given],
    ):
        with pytest.raises(SystemExit) as ended:
            main(["run", *arguments])
        assert ended.value.code == 2
        assert (
            f"--replace-source KafkaSource takes TOPIC=PATH for each topic, such as clicks=dump/clicks, and not "
            f"{given!r}" in (capsys.readouterr().err)
        )


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (
            "--replace-source PulsarSource a=b",
            "--replace-source replaces KafkaSource or FlinkKafkaConsumer, not PulsarSource",
        ),
        (
            "--replace-sink FileSink out",
            "--replace-sink replaces KafkaSink or FlinkKafkaProducer, not FileSink",
        ),
        ("--sink-format lines", "--sink-format is of the files of --replace-sink"),
    ],
)
def test_classes_without_files_in_their_place_are_refused(
    capsys: pytest.CaptureFixture[str], options: str, error: str
) -> None:
    assert main(["run", *options.split(), str(PROGRAMS / "word_count.py")]) != 0
    assert error in capsys.readouterr().err


def test_files_that_no_program_uses_are_warned_of(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines(folder / "messages.json", messages(3)[:5])
    options = "--replace-source KafkaSource messages=messages.json --replace-source KafkaSource orders=o"
    options += " --replace-sink KafkaSink out"
    assert main(["run", *options.split(), str(PROGRAMS / "word_count.py")]) == 0
    assert capsys.readouterr().err.splitlines() == [
        f"flinkcore: warning: no KafkaSource of the program reads topic 'orders': its dump {folder / 'o'} was not used",
        f"flinkcore: warning: the program has no KafkaSink: nothing was written into {folder / 'out'}",
    ]


def test_options_after_two_dashes_are_the_programs_own(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "program.py").write_text("import sys; print(sys.argv[1:])")
    own = ["--replace-source", "KafkaSource", "nothing"]
    assert output(capsys, "program.py", "--", *own) == [str(own)]


ELEMENTS = """
from pyflink.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection(["a"]).print()
env.execute()
"""
COUNTED = """
from pyflink.common import Duration, Time, Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.kafka import KafkaSource
from pyflink.common.serialization import SimpleStringSchema
from pyflink.datastream.window import TumblingEventTimeWindows

env = StreamExecutionEnvironment.get_execution_environment()
env.get_config().set_auto_watermark_interval(1)
source = KafkaSource.builder().set_bootstrap_servers("b").set_topics("words").set_value_only_deserializer(
    SimpleStringSchema()).build()
strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0))
pair = Types.TUPLE([Types.STRING(), Types.LONG()])
words = env.from_source(source, strategy, "words").map(lambda word: (word, 1), pair)
windows = words.key_by(lambda pair: pair[0], Types.STRING()).window(TumblingEventTimeWindows.of(Time.seconds(1)))
windows.reduce(lambda one, other: (one[0], one[1] + other[1])).uid("counts").print()
env.execute()
"""


def test_a_program_stops_at_a_time_with_a_savepoint_for_pyflink(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [(0, number, 1_000_000 + 300 * number, "ab"[number % 2]) for number in range(20)]
    records(folder / "words" / "a.parquet", rows)
    (folder / "counted.py").write_text(COUNTED)
    options = ["--replace-source", "KafkaSource", "words=words", "--until", "1970-01-01T00:16:42.100"]
    options += ["--stop-with-savepoint", "live", "--execution-mode", "thread"]
    assert output(capsys, *options, "counted.py") == ["(a,2)", "(b,2)"]
    state = savepoints.open(folder / "live").operator("counts").state("window-contents")
    open_windows = [
        (row["key"]["f0"], row["namespace"]["start_ms"], pickle.loads(row["value"]))
        for row in state.to_arrow().to_pylist()
    ]
    assert sorted(open_windows) == [("a", 1_001_000, ("a", 2)), ("b", 1_001_000, ("b", 1))]


def test_a_dump_without_timestamps_is_not_cut_at_one(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines(folder / "words" / "words+0+0000000000.json", ["a"])
    (folder / "counted.py").write_text(COUNTED)
    options = ["--replace-source", "KafkaSource", "words=words", "--until", "1970-01-02", "counted.py"]
    assert main(["run", *options]) == 1
    assert "has no timestamps, and cannot be cut at one" in capsys.readouterr().err


def test_a_time_at_which_no_source_is_cut_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "elements.py").write_text(ELEMENTS)
    assert main(["run", "--until", "1970-01-02", "elements.py"]) == 1
    captured = capsys.readouterr()
    assert "--until cuts event logs" in captured.err.splitlines()[-1]
    assert captured.out == ""
    assert main(["run", "--until", "noon", "elements.py"]) == 1
    assert "--until 'noon' is not a time" in capsys.readouterr().err
