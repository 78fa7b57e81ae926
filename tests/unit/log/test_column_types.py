"""Logs with columns of every type that Arrow has: a job that reads one works, or an error names the column."""

import ctypes

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from equipment.arrow_protocol import ArrowArray, ArrowSchema
from equipment.arrow_versions import READS_NULL_FIXED_LISTS

from flinkcore.common import Row, Time, WatermarkStrategy
from flinkcore.datastream import KeyedProcessFunction, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count, last
from flinkcore.errors import FlinkcoreError


def with_format(column, path, format):
    """A batch with a column of which a part has another type of the same layout."""
    schema, array = ArrowSchema(), ArrowArray()
    batch = pa.record_batch({"k": ["a", "a", "b"], "ts": [1, 2, 3], "v": column})
    batch._export_to_c(ctypes.addressof(array), ctypes.addressof(schema))
    part = schema
    for at in (2, *path):
        part = part.children[at].contents
    part.format = format
    return pa.RecordBatch._import_from_c(ctypes.addressof(array), ctypes.addressof(schema))


def unions():
    codes, places = pa.array([0, 1, 0], pa.int8()), pa.array([0, 0, 1], pa.int32())
    return {
        "dense_union": pa.UnionArray.from_dense(codes, places, [pa.array([1, 2]), pa.array(["x"])]),
        "sparse_union": pa.UnionArray.from_sparse(codes, [pa.array([1, 2, 3]), pa.array(["x", "y", "z"])]),
    }


def arrays():
    """Three values of each type; the last one is null where that is possible."""
    numbers = [1, 2, None]
    found = {
        "null": pa.nulls(3),
        "bool": pa.array([True, False, None]),
        "float16": pa.array([1.0, 2.0, None]).cast(pa.float16()),
        "date64": pa.array([0, 86_400_000, None], pa.date64()),
        "month_day_nano": pa.array([(1, 2, 3), (0, 0, 1), None], pa.month_day_nano_interval()),
        "fixed_size_binary": pa.array([b"aa", b"bb", None], pa.binary(2)),
        "fixed_size_list": pa.array([[1, 2], [3, 4], None], pa.list_(pa.int64(), 2)),
        "map": pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "struct": pa.array([{"a": 1}, {"a": 2}, None]),
        "empty_struct": pa.array([{}, {}, None], pa.struct([])),
        "run_end_encoded": pa.RunEndEncodedArray.from_arrays([1, 3], [5, 6]),
        "dictionary": pa.array(["a", "b", None]).dictionary_encode(),
        "opaque": pa.ExtensionArray.from_storage(pa.opaque(pa.int64(), "type", "vendor"), pa.array(numbers)),
        "uuid": pa.ExtensionArray.from_storage(
            pa.uuid(), pa.array([b"a" * 16, b"b" * 16, None], pa.binary(16))
        ),
        **unions(),
    }
    for kind in (
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float32(), pa.float64(), pa.date32(), pa.time32("s"), pa.time64("ns"), pa.duration("ns")),
        *(pa.timestamp("ns"), pa.timestamp("s", "Europe/Berlin")),
    ):
        found[str(kind)] = pa.array(numbers, kind)
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        found[str(kind)] = pa.array(["a", "b", None], kind)
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        found[str(kind)] = pa.array([b"a", b"b", None], kind)
    for kind in (pa.list_, pa.large_list, pa.list_view, pa.large_list_view):
        found[kind.__name__] = pa.array([[1], [2, 3], None], kind(pa.int64()))
    for bits in (32, 64, 128, 256):
        if hasattr(pa, f"decimal{bits}"):
            kind = getattr(pa, f"decimal{bits}")(5, 2)
            found[f"decimal{bits}"] = pa.array(numbers, pa.decimal128(5, 2)).cast(kind)
    for name in ("month_day_nano", "dense_union", "sparse_union", "duration[ns]"):
        found[f"list of {name}"] = pa.ListArray.from_arrays([0, 1, 2, 3], found[name])
        found[f"struct of {name}"] = pa.StructArray.from_arrays([found[name]], ["x"])
    return found


MONTHS, DAYS = pa.array([1, 2, None], pa.int32()), pa.array([1, 2, None], pa.int64())
WITHOUT_ARRAYS = {
    "month_interval": (MONTHS, (), b"tiM"),
    "day_time_interval": (DAYS, (), b"tiD"),
    "list of month_interval": (pa.ListArray.from_arrays([0, 1, 2, 3], MONTHS), (0,), b"tiM"),
    "struct of month_interval": (pa.StructArray.from_arrays([MONTHS], ["x"]), (0,), b"tiM"),
}
ARRAYS = arrays()


def table_of(name):
    if name in WITHOUT_ARRAYS:
        return pa.Table.from_batches([with_format(*WITHOUT_ARRAYS[name])])
    return pa.table({"k": ["a", "a", "b"], "ts": [1, 2, 3], "v": ARRAYS[name]})


def sources(name, folder):
    """The log in each form that there is for the type."""
    table = table_of(name)
    yield table
    with pa.OSFile(str(folder / "log.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    yield str(folder / "log.arrow")
    try:
        pq.write_table(table, folder / "log.parquet")
    except (pa.ArrowException, KeyError):
        return
    yield str(folder / "log.parquet")


def events(source):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    log = env.from_event_log(source, timestamp="ts")
    return log.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())


class Shown(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield Row(v=str(value))


def windows(stream):
    return stream.key_by("k").window(TumblingEventTimeWindows.of(Time.seconds(1)))


JOBS = {
    "rows": lambda stream: stream,
    "a condition": lambda stream: stream.filter(pc.field("v").is_valid()),
    "an aggregate": lambda stream: windows(stream).aggregate(v=last("v")),
    "a key": lambda stream: (
        stream.key_by("v").window(TumblingEventTimeWindows.of(Time.seconds(1))).aggregate(n=count())
    ),
    "a function": lambda stream: stream.key_by("k").process(
        Shown(), output_type=pa.schema({"v": pa.string()})
    ),
}


def test_every_type_of_arrow_is_among_those_that_are_tried():
    known = {getattr(pa.lib, name) for name in dir(pa.lib) if name.startswith("Type_")}
    tried = {table_of(name).schema.field("v").type.id for name in (*ARRAYS, *WITHOUT_ARRAYS)}
    assert known - tried == set()
    assert {21, 22} <= tried  # intervals of months, and of days, which have no name there


@pytest.mark.parametrize("name", [*ARRAYS, *WITHOUT_ARRAYS])
def test_a_job_that_does_not_read_the_column_works(name, tmp_path):
    for source in sources(name, tmp_path):
        few = events(source).filter(pc.field("ts") < 3)
        assert windows(few).aggregate(n=count()).execute().to_arrow()["n"].to_pylist() == [2]
        assert events(source).select("k", "ts").execute().to_arrow().num_rows == 3


def fault(call, *arguments):
    """The message of flinkcore's error that a call raises; None if it works."""
    try:
        call(*arguments)
    except FlinkcoreError as error:
        return str(error)
    return None


@pytest.mark.parametrize("job", list(JOBS))
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=READS_NULL_FIXED_LISTS if name == "fixed_size_list" else ())
        for name in ARRAYS
    ],
)
def test_a_job_that_reads_the_column_works_or_names_it(name, job, tmp_path):
    for number, source in enumerate(sources(name, tmp_path)):
        message = fault(
            lambda source: JOBS[job](events(source)).execute().to_arrow().validate(full=True), source
        )
        assert message is None or "'v'" in message
        if job != "rows":
            continue
        assert message is None
        result = events(source).execute()
        for take in (result.to_pandas, result.to_polars, result.show):
            message = fault(take)
            assert message is None or "'v'" in message
        message = fault(result.write_parquet, tmp_path / f"to{number}")
        assert message is None or "'v'" in message


@pytest.mark.parametrize("name", list(WITHOUT_ARRAYS))
@pytest.mark.parametrize("job", list(JOBS))
def test_a_column_of_which_there_are_no_arrays_is_refused_when_the_job_is_planned(name, job, tmp_path):
    for source in sources(name, tmp_path):
        with pytest.raises(
            FlinkcoreError, match=r"column 'v' is .*month_interval|column 'v' is day_time_interval"
        ) as error:
            JOBS[job](events(source)).execute().to_arrow()
        assert "whose values pyarrow cannot read. Leave it out by select(...)" in str(error.value)


@pytest.mark.parametrize(
    "name", ["dense_union", "sparse_union", "list of dense_union", "struct of sparse_union"]
)
def test_unions_are_results_as_they_are(name, tmp_path):
    for source in sources(name, tmp_path):
        found = events(source).execute().to_arrow()
        assert found["v"].to_pylist() == ARRAYS[name].to_pylist()
