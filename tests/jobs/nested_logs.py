"""Logs with nested fields, the same logs flattened into columns of the dotted names, and jobs over either."""

import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

from flinkcore.common import Duration, OutputTag, Time, WatermarkStrategy
from flinkcore.datastream import LogStream, RuntimeContext, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count, last, max_by, min_, sum_
from flinkcore.datastream.functions import KeyedProcessFunction

LATE = OutputTag("late")
BAD = OutputTag("bad")

SCHEMA = pa.schema(
    {
        "n": pa.int64(),
        "payload": pa.struct(
            {
                "op": pa.string(),
                "after": pa.struct({"user_id": pa.string(), "amount": pa.int64(), "note": pa.string()}),
                "source": pa.struct({"ts_ms": pa.int64(), "part": pa.int32()}),
            }
        ),
        "kafka": pa.struct({"at": pa.int64(), "offset": pa.int64()}),
    }
)
FIELDS = {
    "payload.op": pa.string(),
    "payload.after.user_id": pa.string(),
    "payload.after.amount": pa.int64(),
    "payload.source.ts_ms": pa.int64(),
    "payload.source.part": pa.int32(),
    "kafka.at": pa.int64(),
    "kafka.offset": pa.int64(),
}
SETTINGS: tuple[Mapping[str, Any], ...] = (
    {"rate": 50.0},
    {"arrival": "kafka.at"},
    {"arrival": "kafka.at", "split": "payload.source.part"},
    {"arrival": "kafka.at", "split": "payload.source.part", "position": ["kafka.offset", "n"]},
    {"arrival": pc.add(pc.field("kafka.at"), 3), "position": [("kafka.offset", "descending"), "n"]},
)


def value_at(row: Mapping[str, Any], name: str) -> Any:
    """Return the value of a field of a row; None if a struct around it is None."""
    value: Any = row
    for step in name.split("."):
        value = None if value is None else value[step]
    return value


def flattened(rows: pa.Table) -> pa.Table:
    """Return the log with a column for each field in place of its structs."""
    values = rows.to_pylist()
    columns = {name: pa.array([value_at(row, name) for row in values], kind) for name, kind in FIELDS.items()}
    return pa.table({"n": rows.column("n"), **columns})


def _struct(fields: Mapping[str, st.SearchStrategy[Any]], nulls: int) -> st.SearchStrategy[Any]:
    """Draw structs of which about one in so many is None."""
    there = st.fixed_dictionaries(dict(fields))
    return st.integers(0, nulls).flatmap(lambda drawn: there if drawn else st.none())


def nested_rows() -> st.SearchStrategy[list[dict[str, Any]]]:
    """Draw the rows of logs of which any struct and any value may be null."""
    after = _struct(
        {
            "user_id": st.sampled_from(["a", "b", "c", None]),
            "amount": st.none() | st.integers(-5, 5),
            "note": st.none() | st.just("note"),
        },
        nulls=8,
    )
    payload = _struct(
        {
            "op": st.sampled_from(["c", "u", None]),
            "after": after,
            "source": _struct(
                {
                    "ts_ms": st.integers(0, 4_000),
                    "part": st.sampled_from([0, 1, 2]),
                },
                nulls=12,
            ),
        },
        nulls=12,
    )
    kafka = _struct({"at": st.integers(0, 4_000), "offset": st.integers(0, 50)}, nulls=20)
    return st.lists(st.fixed_dictionaries({"payload": payload, "kafka": kafka}), max_size=40)


def log_of(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return rows, numbered, as a log."""
    return pa.Table.from_pylist([{"n": n, **row} for n, row in enumerate(rows)], SCHEMA)


def random_log(seed: int, n: int) -> pa.Table:
    """Return a log in which about one struct of fifteen is null."""
    dealt = random.Random(seed)

    def or_null(value: Any) -> Any:
        return None if dealt.random() < 1 / 15 else value

    return log_of(
        {
            "payload": or_null(
                {
                    "op": dealt.choice(["c", "c", "u"]),
                    "after": or_null(
                        {"user_id": dealt.choice("abc"), "amount": dealt.randrange(9), "note": "note"}
                    ),
                    "source": or_null({"ts_ms": 10 * at - dealt.randrange(700), "part": dealt.randrange(3)}),
                }
            ),
            "kafka": {"at": 10 * at, "offset": at // 2},
        }
        for at in range(n)
    )


def _windows(events: LogStream) -> LogStream:
    return (
        events.filter(pc.field("payload.op") == "c")
        .with_columns(double=pc.multiply(pc.field("payload.after.amount"), 2))
        .key_by("payload.after.user_id")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(500)))
        .allowed_lateness(Time.milliseconds(200))
        .side_output_late_data(LATE)
        .aggregate(
            rows=count(),
            amounts=count("payload.after.amount"),
            total=sum_("payload.after.amount"),
            least=min_("double"),
            latest=last("payload.source.part"),
            best=max_by("n", "payload.after.amount"),
        )
    )


def _selected(events: LogStream) -> LogStream:
    return events.select("payload.after.user_id", "n", next=pc.add(pc.field("payload.after.amount"), 1))


def _by_two(events: LogStream) -> LogStream:
    return (
        events.key_by("payload.op", "payload.source.part")
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .aggregate(rows=count())
        .filter(pc.field("payload.op").is_valid())
        .key_by("payload.op")
        .window(TumblingEventTimeWindows.of(Time.seconds(2)))
        .aggregate(total=sum_("rows"), parts=count("payload.source.part"))
    )


class RunningAmount(KeyedProcessFunction):
    """Emits the sum so far of the amounts of a key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.total: dict[Any, int] = {}

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        key = ctx.get_current_key()
        self.total[key] = self.total.get(key, 0) + (value["payload.after.amount"] or 0)
        yield key, value["n"], self.total[key]


def _function(events: LogStream) -> LogStream:
    chosen = events.select("payload.after.user_id", "payload.after.amount", "n")
    output = pa.schema({"user": pa.string(), "n": pa.int64(), "total": pa.int64()})
    return chosen.key_by("payload.after.user_id").process(RunningAmount(), output)


JOBS: Mapping[str, Callable[[LogStream], LogStream]] = {
    "windows": _windows,
    "selected": _selected,
    "by two": _by_two,
    "function": _function,
}


def outputs(environment: Any, log: Any, job: str, settings: Mapping[str, Any], **how: Any) -> dict[str, Any]:
    """Return the rows of all outputs of a job, and its counts, without what differs if a log is flattened."""
    events = environment.from_event_log(
        log, timestamp="payload.source.ts_ms", on_bad_row=BAD, **settings, **how
    ).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(300))
    )
    result = JOBS[job](events).execute()
    rows = {"results": sorted(map(repr, result.to_arrow().to_pylist()))}
    tags = [BAD, LATE] if job == "windows" else [BAD]
    for tag in tags:
        side = result.get_side_output(tag).to_arrow()
        shared = [name for name in ("n", "reason") if name in side.column_names]
        rows[tag.tag_id] = sorted(map(repr, side.select(shared).to_pylist()))
    report = result.report
    return {**rows, "read": report.events_read, "rejected": report.rejected, "filtered": report.filtered}
