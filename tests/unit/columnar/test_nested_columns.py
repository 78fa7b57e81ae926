"""Jobs over columns that name nested fields."""

import json
import pickle
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from flinkcore.columnar.plans.job_plan import make_plan
from flinkcore.common import ExecutionConfig, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import LogStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import collect, count, last, sum_
from flinkcore.datastream.functions import KeyedBatchProcessFunction, ProcessJoinFunction
from flinkcore.datastream.graph.transformations import StreamGraph
from flinkcore.errors import DataError, SchemaError

ROWS = [
    {
        "n": n,
        "payload": {
            "op": "cu"[n % 2],
            "after": None if n == 5 else {"user": "ab"[n // 3 % 2], "amount": n},
            "source": {"ts": 100 * n},
        },
        "kafka": {"at": 100 * n + 50, "partition": n % 2},
    }
    for n in range(10)
]
LOG = pa.Table.from_pylist(ROWS)
COUNTS = [("a", 3), ("a", 3), ("b", 1), ("b", 2)]
"""Rows of each user in windows of 500 ms."""
LATE, BAD = OutputTag("late"), OutputTag("bad")


ENV = StreamExecutionEnvironment()


def stream(log: Any = LOG, **settings: Any) -> LogStream:
    given = {"timestamp": "payload.source.ts", "on_bad_row": "drop", **settings}
    events = ENV.from_event_log(log, **given)
    return events.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())


def windowed(events: LogStream, *keys: str) -> Any:
    return events.key_by(*keys).window(TumblingEventTimeWindows.of(Time.milliseconds(500)))


def rows_of(results: LogStream, *names: str) -> list[tuple[Any, ...]]:
    table = results.to_arrow()
    return sorted(zip(*(table.column(name).to_pylist() for name in names or table.column_names), strict=True))


def test_keys_and_aggregates_name_fields_and_results_have_columns_of_the_dotted_names():
    results = windowed(stream(), "payload.after.user").aggregate(total=sum_("payload.after.amount"))

    assert results.to_arrow().column_names[0] == "payload.after.user"
    assert rows_of(results, "payload.after.user", "total") == [("a", 3), ("a", 21), ("b", 7), ("b", 9)]


def test_a_result_gets_another_name_by_select():
    results = windowed(stream(), "payload.after.user").aggregate(n=count())

    assert results.select("n", user=pc.field("payload.after.user")).to_arrow().column_names == ["n", "user"]


def test_a_column_of_the_very_name_wins():
    log = LOG.append_column("payload.after.user", pa.array(["z"] * 10))

    assert rows_of(
        windowed(stream(log), "payload.after.user").aggregate(n=count()), "payload.after.user", "n"
    ) == [
        ("z", 5),
        ("z", 5),
    ]


def test_a_column_of_the_very_name_wins_over_a_log_in_parquet(tmp_path):
    pq.write_table(LOG.append_column("kafka.at", pa.array(range(10))), tmp_path / "log.parquet")

    selected = stream(str(tmp_path)).select("kafka.at", "kafka.partition")

    assert rows_of(selected, "kafka.at") == [(n,) for n in range(10)]
    assert rows_of(selected, "kafka.partition") == [(0,)] * 5 + [(1,)] * 5


def test_a_filter_on_a_field_adds_no_column():
    kept = stream().filter(pc.field("payload.op") == "c")

    assert kept.to_arrow().column_names == ["n", "payload", "kafka"]
    assert rows_of(kept.select("n")) == [(0,), (2,), (4,), (6,), (8,)]


def test_expressions_name_fields_by_dots_and_by_paths_alike():
    computed = stream().select(
        by_name=pc.add(pc.field("payload.after.amount"), 1),
        by_path=pc.add(pc.field("payload", "after", "amount"), 1),
    )

    assert computed.to_arrow().column("by_name") == computed.to_arrow().column("by_path")


def test_the_fields_of_a_struct_that_was_selected_can_be_named():
    results = windowed(stream().select("payload"), "payload.after.user").aggregate(n=count("kafka"))
    with pytest.raises(SchemaError, match="there is no column 'kafka'"):
        results.to_arrow()

    results = windowed(stream().select("payload"), "payload.after.user").aggregate(n=count())
    assert rows_of(results, "payload.after.user", "n") == COUNTS


def test_a_field_means_the_struct_that_a_step_has_computed():
    doubled = stream(arrival="kafka.at").with_columns(
        kafka=pc.make_struct(pc.multiply(pc.field("kafka.at"), 2), field_names=["at"])
    )

    assert rows_of(doubled.select("n", "kafka.at")) == [(n, 200 * n + 100) for n in range(10)]
    with pytest.raises(SchemaError, match=r"The struct 'kafka' has no field 'partition': at\."):
        doubled.select("kafka.partition").to_arrow()


def test_a_step_may_compute_a_column_of_a_dotted_name():
    named = stream().with_columns(**{"payload.op": pc.field("payload.after.user")})

    assert (
        rows_of(named.select("payload.op").filter(pc.is_valid(pc.field("payload.op"))))
        == [("a",)] * 6 + [("b",)] * 3
    )


def test_fields_of_results_are_named_by_the_next_operator_and_after_the_last():
    lasts = windowed(stream(), "payload.after.user").aggregate(row=last("payload"))

    assert rows_of(lasts.select("row.op", "row.after.amount")) == [("c", 2), ("c", 4), ("c", 8), ("u", 9)]
    by_op = windowed(lasts, "row.op").aggregate(total=sum_("row.after.amount"))
    assert rows_of(by_op, "row.op", "total") == [("c", 6), ("c", 8), ("u", 9)]


def test_late_and_rejected_rows_have_the_columns_of_the_log_and_the_named_fields():
    late_row = {**ROWS[0], "n": 10, "kafka": {"at": 5000, "partition": 0}}
    bad_row = {"n": 11, "payload": None, "kafka": {"at": 5000, "partition": 0}}
    log = pa.Table.from_pylist([*ROWS, late_row, bad_row], LOG.schema)
    events = stream(log, arrival="kafka.at", on_bad_row=BAD)
    windows = windowed(events, "payload.after.user").side_output_late_data(LATE)

    result = windows.aggregate(n=count()).execute()

    assert result.get_side_output(LATE).to_arrow().to_pylist() == [{**late_row, "payload.after.user": "a"}]
    bad = result.get_side_output(BAD).to_arrow().select(["n", "payload", "payload.after.user", "reason"])
    assert bad.to_pydict() == {
        "n": [5, 11],
        "payload": [ROWS[5]["payload"], None],
        "payload.after.user": [None, None],
        "reason": ["null key 'payload.after.user'", "null timestamp"],
    }


def test_connected_and_united_streams_are_keyed_by_fields():
    class Pair(ProcessJoinFunction):
        def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
            yield left["n"], right["n"]

    other = stream(LOG.slice(0, 3))
    united = windowed(stream().union(other), "payload.after.user").aggregate(n=count())
    assert rows_of(united, "payload.after.user", "n") == [("a", 3), ("a", 6), ("b", 1), ("b", 2)]

    joined = (
        stream()
        .key_by("payload.source.ts")
        .interval_join(other.key_by("payload.source.ts"))
        .between(Time.milliseconds(0), Time.milliseconds(0))
        .process(Pair(), pa.schema({"left": pa.int64(), "right": pa.int64()}))
    )
    assert rows_of(joined) == [(0, 0), (1, 1), (2, 2)]


def test_ways_of_one_log_name_fields_of_their_own():
    log = stream()
    both = windowed(log.filter(pc.field("payload.op") == "c").select("n"), "n").aggregate(rows=count())
    again = windowed(log.filter(pc.field("kafka.partition") == 1).select("n"), "n").aggregate(rows=count())

    assert rows_of(both.select("n").union(again.select("n"))) == [(n,) for n in range(10)]


def test_a_null_key_in_a_field_is_reported_by_its_dotted_name():
    results = windowed(stream(on_bad_row="fail"), "payload.after.user").aggregate(n=count())

    with pytest.raises(
        DataError, match=r"key column 'payload\.after\.user' is null at position 5"
    ) as failure:
        results.to_arrow()
    assert failure.value.column == "payload.after.user"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"timestamp": "ts"}, r"timestamp= names column 'ts'.*Did you mean 'payload\.source\.ts'\?"),
        ({"arrival": "kafka.att"}, r"arrival= .*The struct 'kafka' has no field 'att': at, partition\."),
        ({"split": "partition"}, r"split= names column 'partition'.*Did you mean 'kafka\.partition'\?"),
        ({"position": "n.x"}, r"position= .*'n' is int64 and not a struct, so it has no field 'x'\."),
    ],
)
def test_a_setting_that_names_no_field_is_an_error_with_the_right_name(settings, message):
    with pytest.raises(SchemaError, match=message):
        stream(**settings).to_arrow()


def test_steps_that_name_no_field_are_errors_with_the_right_name():
    similar = r"there is no column 'user'.*Did you mean 'payload\.after\.user'\?"
    with pytest.raises(SchemaError, match=similar):
        windowed(stream(), "user").aggregate(n=count()).to_arrow()
    with pytest.raises(SchemaError, match=r"x = sum\(amount\).*Did you mean 'payload\.after\.amount'\?"):
        windowed(stream(), "n").aggregate(x=sum_("amount")).to_arrow()
    with pytest.raises(
        SchemaError, match=r"The struct 'payload' has no field 'oq'.*Did you mean 'payload\.op'\?"
    ):
        stream().filter(pc.field("payload.oq") == "c").to_arrow()


@pytest.mark.parametrize(
    "log",
    [LOG.to_pandas(), LOG.to_batches()[0], LOG.to_reader()],
    ids=["pandas", "record batch", "reader"],
)
def test_fields_of_other_tables_are_named_alike(log):
    given = pa.Table.from_pandas(log) if isinstance(log, pd.DataFrame) else log

    results = windowed(stream(given, split="kafka.partition"), "payload.after.user").aggregate(n=count())

    assert rows_of(results, "payload.after.user", "n") == COUNTS


def test_fields_of_a_polars_frame_are_named_alike():
    polars = pytest.importorskip("polars")

    results = windowed(stream(polars.from_arrow(LOG)), "payload.after.user").aggregate(n=count())

    assert rows_of(results, "payload.after.user", "n") == COUNTS


def test_a_file_that_lacks_a_field_has_nulls_there(tmp_path):
    pq.write_table(pa.table({"payload": [{"source": {"ts": 1}}], "n": [0]}), tmp_path / "1.parquet")
    pq.write_table(
        pa.table({"payload": [{"source": {"ts": 2}, "after": {"user": "a"}}], "n": [1]}),
        tmp_path / "2.parquet",
    )

    assert stream(str(tmp_path)).select("payload.after.user").to_arrow().to_pydict() == {
        "payload.after.user": [None, "a"]
    }


def test_a_null_split_of_a_file_that_lacks_the_field_says_so(tmp_path):
    pq.write_table(pa.table({"payload": [{"source": {"ts": 1}}], "k": [{"p": 1}]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"payload": [{"source": {"ts": 2}}]}), tmp_path / "2.parquet")

    with pytest.raises(DataError, match=r"null split: the file lacks column 'k\.p', which other files"):
        stream(str(tmp_path), split="k.p", on_bad_row="fail").to_arrow()


def test_bad_records_of_json_are_collected_and_the_fields_of_the_others_read(tmp_path):
    lines = [json.dumps(row) for row in ROWS]
    lines[4] = lines[4][:40]
    lines[7] = json.dumps({**ROWS[7], "payload": {"source": {"ts": "soon"}}})
    (tmp_path / "log.json").write_text("\n".join(lines) + "\n")

    result = (
        windowed(stream(str(tmp_path), on_bad_row=BAD), "payload.after.user")
        .aggregate(n=collect("n"))
        .execute()
    )

    assert sorted(n for row in result.to_arrow().column("n").to_pylist() for n in row) == [
        0,
        1,
        2,
        3,
        6,
        8,
        9,
    ]
    reasons = result.get_side_output(BAD).to_arrow()
    assert sorted(each["line"] or 0 for each in reasons.column("record").to_pylist()) == [0, 5, 8]


def test_a_plan_reads_the_fields_and_not_their_structs():
    events = stream(arrival="kafka.at", split="kafka.partition").filter(pc.field("payload.op") == "c")
    results = windowed(events, "payload.after.user").aggregate(n=count(), total=sum_("payload.after.amount"))

    (plan,) = make_plan(StreamGraph(results._transformation), ExecutionConfig()).logs

    assert sorted(pickle.loads(pickle.dumps(plan)).data_reader().columns_read) == [
        "kafka.at",
        "kafka.partition",
        "payload.after.amount",
        "payload.after.user",
        "payload.op",
        "payload.source.ts",
    ]
    assert sorted(plan.reader(None).columns_read) == ["kafka.at", "kafka.partition", "payload.source.ts"]


def test_a_function_over_single_elements_gets_rows_without_further_columns():
    log = ENV.from_event_log(LOG, timestamp="payload.source.ts").filter(pc.field("payload.op") == "u")
    found = log.elements().map(lambda row: (len(row), row["n"]))

    assert list(found.execute_and_collect()) == [(3, n) for n in (1, 3, 5, 7, 9)]


def test_an_alias_before_the_key_reads_the_field_alone():
    events = stream().with_columns(user=pc.field("payload.after.user"))
    results = windowed(events, "user").aggregate(n=count())

    (plan,) = make_plan(StreamGraph(results._transformation), ExecutionConfig()).logs

    assert sorted(plan.data_reader().columns_read) == ["payload.after.user", "payload.source.ts"]
    assert rows_of(results, "user", "n") == COUNTS


def test_a_step_behind_the_watermarks_of_single_elements_names_fields():
    kept = stream().filter(pc.field("payload.op") == "u").elements().map(lambda row: (len(row), row["n"]))

    assert list(kept.execute_and_collect()) == [(3, n) for n in (1, 3, 5, 7, 9)]


def test_a_function_over_batches_takes_fields_of_its_elements():
    class Amounts(KeyedBatchProcessFunction):
        def process_batch(self, elements: Any, ctx: Any) -> Any:
            amounts, users = elements["payload.after.amount"], elements.column("payload.after.user")
            yield pa.record_batch({"user": users, "amount": amounts})

    output = pa.schema({"user": pa.string(), "amount": pa.int64()})
    results = stream().key_by("payload.after.user").process(Amounts(), output)

    assert rows_of(results) == [("a", n) for n in (0, 1, 2, 6, 7, 8)] + [("b", n) for n in (3, 4, 9)]
