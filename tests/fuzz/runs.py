"""Ways to run one job, and what each gives: rows of every output by key and in order, and the report's counts."""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta, timezone
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch
from urllib.parse import quote

import deltalake
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from equipment.memory_disk import MEMORY
from equipment.merged_events import merging_lots_of
from equipment.small_batches import limit, read_in_batches_of, read_within
from equipment.unordered_rows import UnorderedRows
from fuzz.drawn_jobs import EMITTED_AT, Job
from fuzz.local_spark import LocalFrame, local_spark_environment, without_jvm
from fuzz.logs import SPLIT_POOLS, Log, exact
from fuzz.watermark_strategies import Strategy
from hypothesis import strategies as st

from flinkcore._internal.arrow.plain_columns import plain_schema
from flinkcore.columnar.plans.log_plan import RECORD
from flinkcore.columnar.stages import result_batches
from flinkcore.common import Configuration, OutputTag
from flinkcore.datastream import FILE, DataStream, StreamExecutionEnvironment
from flinkcore.errors import FlinkcoreError
from flinkcore.spark import SparkExecutionEnvironment

MEMORY_SETTING = "taskmanager.memory.managed.size"

BAD = OutputTag("bad 0"), OutputTag("bad 1")
"""Of each log: their columns differ."""

JSON_KINDS = {"int64", "string", "bool"}


@dataclass(frozen=True)
class Way:
    """A way to run a job.

    Attributes
    ----------
    place
        "embedded", "spark": its tasks and its exchange in this process, or "session": a real one.
    parallelism
        Of each part of the run, the last one for all that follow.
    source
        "table", "reader", which gives its rows only once, "dataframe", "delta", the directory of a table, or a format
        of files.
    read_rows
        Most rows of a batch that is read, and about as many that functions give at once.
    cuts
        Where the logs are cut, in thousandths; each part goes on from the checkpoint of the one before.
    files
        Into how many the log is divided; of a DataFrame, its partitions.
    splits
        How files tell the split: by a "column", by the "folder" that they are in, or each "file" is one.
    lots
        Of how many events Spark's map tasks merge all that can be; 0: they judge for themselves what pays.
    shuffled
        Seed of the order in which rows lie, where `position=` says in which they come; 0: they lie in that.
    times
        How event times and arrivals are written: "integers", "text" with offsets, or "instants".
    zone
        Time zone of a real session.
    memory
        Bytes for the open state in a process, beyond which it spills; None: far more than there is.
    open_chunks, held_bytes
        Chunks that one process reads at once, and bytes of events that wait in its memory, at most.
    packed_bytes, kept_bytes
        Bytes of small files that one process reads together, and of their rows that it keeps, at most.
    """

    place: str = "embedded"
    parallelism: tuple[int, ...] = (1,)
    source: str = "table"
    read_rows: int = 100
    cuts: tuple[int, ...] = ()
    files: int = 1
    splits: str = "column"
    lots: int = 0
    shuffled: int = 0
    times: str = "integers"
    zone: str = "UTC"
    memory: int | None = None
    open_chunks: int = 16
    held_bytes: int = 1 << 20
    packed_bytes: int = 1 << 20
    kept_bytes: int = 1 << 20


@dataclass(frozen=True)
class Scenario:
    """A job, its logs and their strategies, in all ways that it is run.

    `says_when`: whether results say when they were emitted.
    """

    job: Job
    logs: tuple[Log, ...]
    strategies: tuple[Strategy, ...]
    interval: int
    ways: tuple[Way, ...]
    says_when: bool = False

    def parts(self, way: Way) -> list[list[list[int]]] | None:
        """Rows of each log in each part of the run; None: it cannot be cut so."""
        if not way.cuts:
            return [[list(range(len(log.events))) for log in self.logs]]
        if not self.job.goes_into_checkpoints:
            return None
        arrivals, places = (
            zip(*total_order(self.logs), strict=True) if any(log.events for log in self.logs) else ((), ())
        )
        first = rows_until_all_splits(self.logs, places)
        if first is None:
            return None
        bounds = [first + cut * (len(places) - first) // 1_000 for cut in sorted(way.cuts)]
        # Where a log is read several times, what arrives together is in order of its ways.
        at_once = way.source == "dataframe" or self.job.reads_a_log_several_times
        if any(goes_back(self.logs, places[:bound], places[bound:], at_once) for bound in bounds):
            return None  # for what was left out or comes twice, which is refused, looks so
        is_aligned = any(strategy.alignment is not None for strategy in self.strategies)
        if is_aligned and self.job.of_elements:
            return None  # what waits in paused splits has no checkpoint there, which is refused
        if places and is_aligned and any(arrivals[bound - 1] == arrivals[-1] for bound in bounds):
            return (
                None  # what waits for paused splits is read with the last arrival, in the order of the splits
            )
        if self.job.reads_a_log_several_times and any(
            bound < len(places) and arrivals[bound - 1] == arrivals[bound] for bound in bounds
        ):
            return None  # the events of one moment are in order of the logs, one of which comes again behind them
        return [
            [[row for number, row in places[start:stop] if number == log] for log in range(len(self.logs))]
            for start, stop in pairwise([0, *bounds, len(places)])
        ]


def total_order(logs: Sequence[Log]) -> Iterator[tuple[int, tuple[int, int]]]:
    """When each event is read, and its log and row, in the total order."""
    found = []
    for number, log in enumerate(logs):
        latest: dict[Any, int] = {}
        positions = Counter[Any]()
        for row, values in enumerate(log.rows()):
            split = values["split"] if log.split else None
            arrival = values["at"] if log.has_arrivals else positions[split]
            positions[split] += 1
            if values["ts"] is not None:
                arrival = latest[split] = max(latest.get(split, arrival), arrival)
            found.append((arrival, number, split_order(split), row))
    for arrival, number, _, row in sorted(found):
        yield arrival, (number, row)


def split_order(split: Any) -> Any:
    return split.encode() if isinstance(split, str) else 0 if split is None else split


def rows_until_all_splits(logs: Sequence[Log], places: list[tuple[int, int]]) -> int | None:
    """How many rows there are until each split has had an event, of which a stream must know from the start."""
    splits = [log.rows() for log in logs]
    known: dict[tuple[int, Any], int] = {}
    everyone = {
        (number, row["split"]) for number, log in enumerate(logs) if log.split for row in splits[number]
    }
    for count, (number, row) in enumerate(places, start=1):
        values = splits[number][row]
        if logs[number].split and values["ts"] is not None:
            known.setdefault((number, values["split"]), count)
    return None if everyone - known.keys() else max(known.values(), default=0)


def goes_back(
    logs: Sequence[Log], before: list[tuple[int, int]], after: list[tuple[int, int]], at_once: bool
) -> bool:
    """Whether an event behind a cut says that it arrives before one ahead of it.

    Events that arrive together are in the order of their logs and splits; those of a log that come at once are not to
    be cut.
    """
    rows = [log.rows() for log in logs]
    arrivals = {place: arrival for arrival, place in total_order(logs)}

    def order(number: int, row: int, arrival: int) -> tuple[int, int, Any]:
        return arrival, number, split_order(rows[number][row]["split"] if logs[number].split else None)

    last = max((order(*place, arrivals[place]) for place in before), default=None)
    moments = {(place[0], arrivals[place]) for place in before}
    return last is not None and any(
        order(number, row, arrival := rows[number][row]["at"]) < last
        or (at_once and (number, arrival) in moments)
        for number, row in after
        if logs[number].has_arrivals
    )


@dataclass
class Outcome:
    """What a run gave.

    Attributes
    ----------
    error
        The error that refused it.
    outputs
        Rows by output and key, in order.
    counts
        Of the report; those of several parts add up.
    facts
        What else the report says, of a run in one part.
    of_both_paths
        Rows in what the job gives on another path, too; by key and in order.
    """

    error: str | None = None
    outputs: dict[str | None, dict[str, list[str]]] = field(default_factory=dict)
    counts: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    of_both_paths: dict[str, list[str]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return sum(len(rows) for by_key in self.outputs.values() for rows in by_key.values())

    def add(self, part: "Outcome") -> None:
        """Add what the next part of a run gave."""
        for tag, by_key in part.outputs.items():
            for key, rows in by_key.items():
                self.outputs.setdefault(tag, {}).setdefault(key, []).extend(rows)
        for name, count in part.counts.items():
            of_end = name.endswith("pending_processing_time_timers")
            self.counts[name] = count if of_end else add(self.counts.get(name), count)


def add(some: Any, more: Any) -> Any:
    return more if some is None else some + more


COUNTS = [
    "events_read",
    "filtered",
    "rejected",
    "windowed",
    "late",
    "in_no_window",
    "processed",
    "passed_on",
    "on_time_firings",
    "late_firings",
    "retractions",
    "event_time_timers",
    "processing_time_timers",
    "pending_processing_time_timers",
    "results",
    "side_results",
    "dropped_side_results",
]
FACTS = [
    "splits",
    "arrival_regressions",
    "min_timestamp_ms",
    "max_timestamp_ms",
    "timeline_steps",
    "watermark_ms",
    "split_watermarks",
    "paused_ms",
]


def counts_of(report: Any, names: list[str], prefix: str = "") -> dict[str, Any]:
    found = {prefix + name: getattr(report, name) for name in names}
    if "events_read" in names:
        found[f"{prefix}events_read"] -= report.waiting  # which the next part reads again
    for number, later in enumerate(report.later_operators):
        found |= counts_of(later, names, f"{prefix}{number + 2}.")
    return found


def outcome_of(scenario: Scenario, way: Way, job: Job | None = None, session: Any = None) -> Outcome | None:
    """Run a job in a way, on a Spark session where the way is one; None: it cannot be run so."""
    parts = scenario.parts(way)
    if parts is None:
        return None
    outcome = Outcome()
    surroundings = without_jvm() if way.place == "spark" else nullcontext()
    merging = merging_lots_of(way.lots) if way.lots else nullcontext()
    with (
        TemporaryDirectory(dir=MEMORY) as folder,
        patch.object(result_batches, "BATCH_ROWS", max(2, way.read_rows)),
        surroundings,
        merging,
    ):
        for number, rows_of_logs in enumerate(parts):
            checkpoints: dict[str, Any] = {}
            if number > 0:
                checkpoints["restore_from"] = Path(folder, f"checkpoint-{number - 1}")
            if number < len(parts) - 1:
                checkpoints["stop_with_checkpoint"] = Path(folder, f"checkpoint-{number}")
            parallelism = way.parallelism[min(number, len(way.parallelism) - 1)]
            sources = [
                source_of(log, rows, way, Path(folder, f"log-{number}-{index}"), session)
                for index, (log, rows) in enumerate(zip(scenario.logs, rows_of_logs, strict=True))
            ]
            if any(source is None for source in sources):
                return None
            if session is not None:
                session.conf.set("spark.sql.session.timeZone", way.zone)
            env = environment_of(way.place, session)
            env.set_parallelism(parallelism)
            if way.memory is not None:
                env.configure(Configuration().set_string(MEMORY_SETTING, f"{way.memory} b"))
            read_in_batches_of(way.read_rows, env, 40 * way.read_rows)
            read_within(way.open_chunks, way.held_bytes, env)
            limit(env, packed_bytes=way.packed_bytes, kept_bytes=way.kept_bytes)
            try:
                part = run(scenario, job or scenario.job, env, sources, checkpoints)
            except FlinkcoreError as error:
                return Outcome(error=f"{type(error).__name__}: {error}")
            outcome.add(part)
            if len(parts) == 1:
                outcome.facts, outcome.of_both_paths = part.facts, part.of_both_paths
    for tag in BAD:
        for rows in outcome.outputs.get(tag.tag_id, {}).values():
            rows.sort()  # tasks find them side by side
    return outcome


def run(
    scenario: Scenario,
    job: Job,
    env: StreamExecutionEnvironment,
    sources: list[Any],
    checkpoints: dict[str, Any],
) -> Outcome:
    env.get_config().set_auto_watermark_interval(scenario.interval)
    streams = [
        stream_of(env, log, source, strategy, bad)
        for log, source, strategy, bad in zip(scenario.logs, sources, scenario.strategies, BAD, strict=False)
    ]
    if job.of_elements:
        return collected(job, streams, checkpoints)
    stream = job.build(streams)
    if scenario.says_when:
        stream.with_emitted_at(EMITTED_AT)
    result = stream.execute(**checkpoints)
    on_spark = isinstance(env, SparkExecutionEnvironment)
    plan = result._replay.plan if on_spark else result._plan  # type: ignore[attr-defined]
    outcome = Outcome()
    for tag in (None, *plan.side_outputs()):
        table = (result if tag is None else result.get_side_output(tag)).to_arrow()
        if tag in BAD:  # the place of a rejected row depends on how its log is written
            table = table.drop_columns([RECORD])
        outcome.outputs[None if tag is None else tag.tag_id] = by_key(table, plan.keys)
    results = result.to_arrow()
    for column in plan.tight_result_schema():
        assert column.nullable or results[column.name].null_count == 0, f"a null in {column.name}"
    outcome.of_both_paths = rows_by_key(job.alike(results))
    outcome.counts = counts_of(result.report, COUNTS)
    outcome.facts = counts_of(result.report, FACTS)
    return outcome


def environment_of(place: str, session: Any) -> StreamExecutionEnvironment:
    """Where a job runs."""
    if place == "session":
        return SparkExecutionEnvironment(session)
    return local_spark_environment(2) if place == "spark" else StreamExecutionEnvironment()


def collected(job: Job, streams: list[DataStream], checkpoints: dict[str, Any]) -> Outcome:
    """What a job gives element by element: the order of all elements is told."""
    with job.build(streams).execute_and_collect(**checkpoints) as elements:
        given = list(elements)
    return Outcome(outputs={None: {"": [*map(repr, given)]}})


def rows_by_key(rows: Iterable[Sequence[Any]]) -> dict[str, list[str]]:
    """The rest of each row, by the first column."""
    found = defaultdict(list)
    for first, *rest in rows:
        found[repr(first)].append(repr(rest))
    return dict(found)


INTEGERS = "ts", "at"
WRITTEN = "time", "arrived"
"""Columns of times as integers, of which functions compute, and as text or instants, of which they are not told."""

OFFSETS = [timezone.utc, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-8))]


def with_written_times(table: pa.Table, times: str) -> pa.Table:
    """Return the table with the columns `WRITTEN`, unless times are integers."""
    for integers, name in zip(INTEGERS, WRITTEN, strict=True) if times != "integers" else ():
        # In microseconds, as DataFrames and lakes have them, too.
        instants = table[integers].cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))
        texts = [
            # By the number of the row: its text is the same in each part of the log.
            None
            if moment is None
            else moment.astimezone(OFFSETS[number % 3]).isoformat(timespec="milliseconds")
            for number, moment in zip(table["number"].to_pylist(), instants.to_pylist(), strict=True)
        ]
        table = table.append_column(name, instants if times == "instants" else pa.array(texts, pa.string()))
    return table


@dataclass(frozen=True)
class Source:
    """Where a log is.

    Attributes
    ----------
    data
        A table, a DataFrame or paths.
    split
        What an environment is told of splits.
    options
        What else it is told.
    times
        Columns of event times and of arrivals.
    """

    data: Any
    split: Any
    options: dict[str, Any] = field(default_factory=dict)
    times: tuple[str, str] = INTEGERS


def stream_of(
    env: StreamExecutionEnvironment, log: Log, source: Source, strategy: Strategy, bad: OutputTag
) -> DataStream:
    stream = env.from_event_log(
        source.data,
        timestamp=source.times[0],
        integer_times=True,
        arrival=source.times[1] if log.has_arrivals else None,
        split=source.split,
        on_bad_row=bad if log.on_bad_row == "bad" else log.on_bad_row,
        **source.options,
    ).assign_timestamps_and_watermarks(strategy.build())
    return stream if source.times == INTEGERS else stream.select(*log.schema.names)


def by_key(table: pa.Table, keys: Sequence[str]) -> dict[str, list[str]]:
    """Rows as texts, in order, by their key; a type may differ, as where a file has no such, but no value."""
    table = table.drop_columns([name for name in WRITTEN if name in table.column_names])
    names = [name for name in keys if name in table.column_names] or table.column_names[:1]
    columns = [exact(column) for column in table.columns]
    at = [table.column_names.index(name) for name in names]
    found = defaultdict(list)
    for row in zip(*columns, strict=True):
        # Columns that folders tell are the last ones, wherever a table has them.
        named = sorted(zip(table.column_names, row, strict=True), key=itemgetter(0))
        found[repr([row[index] for index in at])].append(repr(dict(named)))
    return dict(found)


def source_of(log: Log, rows: list[int], way: Way, folder: Path, session: Any) -> Source | None:
    """Rows of the log as the way wants them; None: they cannot be had so."""
    source = _source_of(log, shuffled(rows, way), way, folder, session)
    if source is not None and way.times != "integers":
        source = replace(source, times=WRITTEN)
    if source is not None and way.shuffled:
        # Where no arrival goes back, as in such ways, it orders rows as their numbers do, but for ties.
        source.options["position"] = ["number", ["at", "number"]][way.shuffled % 2]
    return source


def shuffled(rows: list[int], way: Way) -> list[int]:
    """Rows as the way wants them to lie."""
    return random.Random(way.shuffled).sample(rows, len(rows)) if way.shuffled else rows


def _source_of(log: Log, rows: list[int], way: Way, folder: Path, session: Any) -> Source | None:
    column = "split" if log.split else None

    def table_of(rows: list[int]) -> pa.Table:
        return with_written_times(log.table(rows), way.times)

    if way.source == "table":
        return Source(table_of(rows), column)
    if way.source == "reader":
        return Source(table_of(rows).to_reader(), column)
    if way.source == "dataframe":
        if way.place == "embedded":
            return Source(UnorderedRows(table_of(rows)), column)
        frame = LocalFrame.of(table_of(rows), way.files)
        if frame is not None and way.place == "session":
            rows_of_frame = frame.toArrow()
            if rows_of_frame.num_rows:
                # PySpark cannot take apart slices of nested values with nulls.
                copied = [batch.take(pa.array(range(len(batch)))) for batch in rows_of_frame.to_batches()]
                rows_of_frame = pa.Table.from_batches(copied, rows_of_frame.schema)
            return Source(session.createDataFrame(rows_of_frame, frame.schema), column)
        return None if frame is None else Source(frame, column)
    if way.source == "delta":
        # Nothing says in which order its writer leaves rows.
        is_ordered = log.has_arrivals or way.shuffled > 0
        is_written = is_ordered and write_delta(table_of(rows), folder, way.files)
        return Source(str(folder), column) if is_written else None
    parts = rows_of_files(log, rows, way)
    if parts is None:
        return None
    tables = {folder / f"{name}.{way.source}": table_of(some) for name, some in parts.items()}
    if way.splits == "folder":
        tables = {path: table.drop_columns(["split"]) for path, table in tables.items()}
    for path in tables:
        path.parent.mkdir(parents=True, exist_ok=True)
    options = write(tables, way)
    if options is None:
        return None
    if way.splits == "folder":
        return Source(str(folder), column, options)
    return Source([*map(str, tables)], FILE if way.splits == "file" else column, options)


FOLDERS = ("int64", "string")
"""What names of folders can tell: integers, and text that is not empty."""


def possible(way: Way, logs: Sequence[Log], job: Job) -> Way:
    """The way, or a similar one that there is for logs with other splits, and for the job."""
    if job.of_elements and way.cuts:
        # What these give depends on the parallelism, which may change from part to part.
        way = replace(way, parallelism=(1,))
    if any(log.base in ("first", "last") for log in logs):
        way = replace(way, times="integers")  # text has years of four digits
    goes_back = any(event.back for log in logs for event in log.events)
    if goes_back or (way.source == "dataframe" and way.place != "session"):
        # Arrival orders events ahead of position=; and nothing sorts DataFrames without a session.
        way = replace(way, shuffled=0)
    wanted = {"folder": FOLDERS, "file": tuple(SPLIT_POOLS)}.get(way.splits)
    if wanted is not None and not all(log.split in wanted for log in logs):
        return replace(way, splits="column")
    return way


def rows_of_files(log: Log, rows: list[int], way: Way) -> dict[str, list[int]] | None:
    """Which rows are in which file, by its name without an extension; None: no files can tell the splits so."""
    if way.splits == "column":
        bounds = [len(rows) * part // way.files for part in range(way.files + 1)]
        return {str(number): rows[slice(*part)] for number, part in enumerate(pairwise(bounds))}
    of_split = defaultdict(list)
    values = log.rows()
    for row in rows:
        of_split[values[row]["split"]].append(row)
    if log.split is None or not rows:
        return None
    in_order = sorted(of_split, key=split_order)
    if way.splits == "file":
        return {str(number): of_split[split] for number, split in enumerate(in_order)}
    if log.split not in FOLDERS or "" in of_split:
        return None
    return {f"split={quote(str(split), safe='')}/log": of_split[split] for split in in_order}


def write(tables: dict[Path, pa.Table], way: Way) -> dict[str, Any] | None:
    """Write files; what their reader must be told, or None if the format cannot hold the tables."""
    try:
        for path, table in tables.items():
            if way.source == "parquet":
                pq.write_table(table, path, row_group_size=max(1, min(way.read_rows, 7)))
            elif way.source == "arrow":
                unified = table.unify_dictionaries()
                with pa.ipc.new_file(path, table.schema) as file:
                    file.write_table(unified.combine_chunks() if way.read_rows > 50 else unified)
            elif way.source == "csv":
                pacsv.write_csv(table, path)
            elif not write_json_lines(table, path):
                return None
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return None
    return types_to_tell(tables) if way.source == "csv" else {}


def write_delta(table: pa.Table, path: Path, files: int) -> bool:
    """Write a Delta table in whose directory there are also files of rows that were removed; False: it has no such."""
    bounds = [table.num_rows * part // files for part in range(files + 1)]
    try:
        deltalake.write_deltalake(path, table)
        for start, stop in pairwise(bounds):
            mode = "append" if start else "overwrite"
            deltalake.write_deltalake(path, table.slice(start, stop - start), mode=mode)
    except Exception:  # of a type that it does not know, deltalake says no more
        return False
    written = pa.schema(deltalake.DeltaTable(path).schema().to_arrow())
    return bool(plain_schema(written) == plain_schema(table.schema))


def types_to_tell(tables: dict[Path, pa.Table]) -> dict[str, Any] | None:
    """Which types a reader of CSV must be told, if it finds others by itself; None if it cannot read them at all."""
    schema = next(iter(tables.values())).schema
    for types in ({}, dict(zip(schema.names, schema.types, strict=True))):
        told = pacsv.ConvertOptions(column_types=types)
        try:
            read = [(pacsv.read_csv(path, convert_options=told), table) for path, table in tables.items()]
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            continue
        if all(
            found.schema == schema and repr(found.to_pylist()) == repr(table.to_pylist())
            for found, table in read
        ):
            return {"schema": types} if types else {}
    return None


def write_json_lines(table: pa.Table, path: Path) -> bool:
    kinds = {str(field.type) for field in table.schema} - {"int16"}
    if kinds - JSON_KINDS or table.num_rows == 0 or any(c.null_count == len(c) for c in table.columns):
        return False
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    return True


def perhaps_otherwise(ways: st.SearchStrategy[Way]) -> st.SearchStrategy[Way]:
    """Ways of which some have rows in no order, times that are no integers, or small limits of memory."""
    return st.builds(
        lambda way, memory, seed, times, chunks, size, packed, kept: replace(
            way,
            memory=memory,
            shuffled=seed,
            times=times,
            open_chunks=chunks,
            held_bytes=size,
            packed_bytes=packed,
            kept_bytes=kept,
        ),
        ways,
        st.sampled_from([None, None, 0, 3_000, 60_000, 200_000]),
        st.sampled_from([0, 0, 0, 0, 1, 2, 3, 4]),
        st.sampled_from(["integers"] * 4 + ["text", "instants"]),
        st.sampled_from([16, 1, 2]),
        st.sampled_from([1 << 20, 0, 300, 2_000]),
        st.sampled_from([1 << 20, 0, 3_000]),
        st.sampled_from([1 << 20, 0, 1_000]),
    )


parallelisms = st.sampled_from([1, 2, 3, 7])
batches = st.sampled_from([1, 2, 5, 100])
in_parts = st.builds(
    Way,
    st.sampled_from(["embedded", "embedded", "spark"]),
    st.tuples(*[st.sampled_from([1, 2, 7])] * 3),
    st.sampled_from(["table", "table", "arrow"]),
    st.sampled_from([2, 100]),
    st.lists(st.integers(0, 1_000), min_size=1, max_size=2).map(tuple),
)
ways = perhaps_otherwise(
    st.one_of(
        st.builds(
            Way,
            st.sampled_from(["embedded", "spark"]),
            st.tuples(parallelisms),
            st.sampled_from(["table", "table", "reader"]),
            batches,
        ),
        st.builds(
            Way,
            st.sampled_from(["embedded", "spark"]),
            st.tuples(parallelisms),
            st.sampled_from(["parquet", "arrow", "json", "csv"]),
            batches,
            files=st.sampled_from([1, 1, 2, 3]),
            splits=st.sampled_from(["column", "column", "file", "folder"]),
        ),
        st.builds(
            Way,
            st.sampled_from(["embedded", "spark"]),
            st.tuples(parallelisms),
            st.just("delta"),
            batches,
            files=st.sampled_from([1, 2, 3]),
        ),
        st.builds(
            Way,
            st.just("spark"),
            st.tuples(parallelisms),
            st.just("dataframe"),
            batches,
            files=st.sampled_from([1, 2, 5]),
        ),
        in_parts,
        in_parts.map(lambda way: replace(way, source="parquet", splits="folder")),
        in_parts.map(lambda way: replace(way, place="spark", source="dataframe", files=2)),
    )
)
ways_that_merge = st.builds(
    lambda way, lots: replace(way, place="spark", lots=lots),
    st.one_of(ways, perhaps_otherwise(in_parts)),
    st.sampled_from([1, 3, 10, 100]),
)
ways_of_sessions = st.builds(
    lambda way, zone: replace(way, zone=zone),
    perhaps_otherwise(
        st.one_of(
            st.builds(
                Way,
                st.just("session"),
                st.tuples(st.sampled_from([1, 3])),
                st.sampled_from(["table", "parquet", "dataframe", "dataframe"]),
            ),
            in_parts.map(lambda way: replace(way, place="session")),
        )
    ),
    st.sampled_from(["UTC", "America/New_York", "Asia/Kolkata"]),
)
