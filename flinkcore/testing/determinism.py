"""Races of a job: results that depend on what might have been otherwise with the same events."""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any, Final, Literal, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.column_ops import HIDDEN_PREFIX, WithColumns
from flinkcore._internal.arrow.expressions import Expression
from flinkcore._internal.arrow.sort_keys import Position, sort_keys
from flinkcore._internal.arrow.time_units import TimeUnit
from flinkcore._internal.show.html import html_lines
from flinkcore._internal.show.tables import shown_table
from flinkcore.common import OutputTag
from flinkcore.common.split_origin import SplitOrigin
from flinkcore.datastream import LogStream, StreamExecutionEnvironment
from flinkcore.datastream.graph.log_settings import LogSettings
from flinkcore.datastream.graph.transformations import (
    EventLogSource,
    OperatorTransformation,
    StreamGraph,
    Transformation,
)
from flinkcore.errors import ConfigurationError, in_words
from flinkcore.log.event_log import EventLog
from flinkcore.log.event_reader import EventReader
from flinkcore.log.order.row_order import POSITION
from flinkcore.testing.histories import KINDS, Changed, History, LogTimes, legal_histories
from flinkcore.time_plane.time_warnings import ReadTimes, check_units

Job = Callable[..., LogStream]
"""From the streams of events of the logs, one for each, to the stream of results."""

_SPLIT: Final = "order of the splits"
_ARRIVAL: Final = "arrival in this history"
_NO_TIME: Final = f"{HIDDEN_PREFIX}no time"
_WHEN_FIRED: Final = ("watermark", "emitted_at")
"""Columns of results that say when it was, which other histories change and nobody calls a race."""

_MOST_TRIALS: Final = 400
"""So often a log is replayed at most to find a smaller one."""

Rows = Counter[str]

Outcome = dict[str, Rows] | Exception
"""Outcome of a replay: the rows of results by key, or the error with which the job fails."""


@dataclass(frozen=True)
class Race:
    """A history in which a job has different results, or fails.

    Attributes
    ----------
    history : History
        History of the replay, with the change to the arrivals or settings.
    keys : list of str
        Those whose results are others, as text; of all rows, where results do not have the key; none if it fails.
    expected, found : list of str
        Rows of the first of these keys that only the smallest logs as they are, and only the other history, give.
    logs : list of pyarrow.Table
        The smallest logs that were found to show it.
    step : str or None
        The first windows or function of the job whose results differ, in words; None if the job has neither.
    failure : str or None
        Error with which the job fails in this history but not with the logs as they are, or None.
    """

    history: History
    keys: list[str]
    expected: list[str]
    found: list[str]
    logs: list[pa.Table]
    step: str | None = None
    failure: str | None = None

    def __str__(self) -> str:
        n_rows = sum(log.num_rows for log in self.logs)
        kind = "a race" if self.history.may_count else "a defect: no result may depend on this"
        lines = [
            f"{self.history.kind}: {self.history.what} ({kind})",
            *self._what_differs(),
            f"  the smallest log that shows it ({n_rows} row{'s' * (n_rows != 1)}):",
        ]
        for log in self.logs:
            lines += [f"    {line}" for line in shown_table(log, 20).splitlines()]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_lines(str(self))

    def _what_differs(self) -> list[str]:
        if self.failure is not None:
            where = [] if self.step is None else [f"  in {self.step}"]
            return [*where, f"  fails with {self.failure}"]
        more = f" and {len(self.keys) - 1:,} more keys" if len(self.keys) > 1 else ""
        where = [] if self.step is None else [f"  first in the results of {self.step}"]
        return [
            *where,
            f"  {self.keys[0]}{more}",
            *(f"    expected  {row}" for row in self.expected or ["nothing"]),
            *(f"    found     {row}" for row in self.found or ["nothing"]),
        ]


@dataclass(frozen=True, eq=False)
class Races(Sequence[Race]):
    """The races of a job, and the histories in which it was replayed to find them.

    Attributes
    ----------
    found : list of Race
        First race of each kind of histories.
    tried : list of History
        Histories in which the job was replayed.
    untried : dict of str to str
        Reasons why requested kinds were not tried, or only partly, by kind.
    tables : list of str
        Names of the tables of lakes that are logs, with the versions or snapshots that were read.
    """

    found: list[Race]
    tried: list[History]
    untried: dict[str, str]
    tables: list[str]

    @overload
    def __getitem__(self, index: int) -> Race: ...

    @overload
    def __getitem__(self, index: slice) -> list[Race]: ...

    def __getitem__(self, index: int | slice) -> Race | list[Race]:
        return self.found[index]

    def __len__(self) -> int:
        return len(self.found)

    def __str__(self) -> str:
        n_tried = len(self.tried)
        counts = Counter(history.kind for history in self.tried)
        kinds = ", ".join(f"{kind} ({count})" if count > 1 else kind for kind, count in counts.items())
        same = f"no race: the results are the same in {n_tried} other {'histories' if n_tried > 1 else 'history'}"
        lines = [*(f"read as {table}" for table in self.tables), f"tried: {kinds}"]
        lines += [f"not tried: {kind}: {why}" for kind, why in self.untried.items()]
        return "\n\n".join([*(map(str, self.found) if self.found else [same]), "\n".join(lines)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_lines(str(self))


def find_races(
    job: Job,
    log: Any,
    *,
    timestamp: str | Expression | None = None,
    arrival: str | Expression | None = None,
    split: str | SplitOrigin | None = None,
    rate: float = 1000.0,
    arrival_start_ms: int = 0,
    format: str | None = None,
    format_options: Mapping[str, Any] | None = None,
    schema: Any = None,
    filesystem: Any = None,
    on_bad_row: Literal["fail", "drop"] = "fail",
    position: Position | None = None,
    timestamp_unit: TimeUnit | None = None,
    arrival_unit: TimeUnit | None = None,
    integer_times: bool = False,
    decode: Mapping[str, Any] | Literal["debezium"] | None = None,
    side_outputs: Sequence[OutputTag] = (),
    histories: Collection[str] | None = None,
    interval_ms: int = 200,
) -> Races:
    """Replay a job under other legal histories of its log, and return those that change its results.

    Parameters
    ----------
    job : callable
        From the stream of events to the stream of results; of several logs, from the stream of each.
    log : Arrow table, path, or a tuple of these
        Argument of `from_event_log`: a small log, which is held in memory and replayed some dozens of times.
    timestamp, arrival, split, rate, arrival_start_ms, format, format_options, schema, filesystem, position
        As of `from_event_log`, of all logs. Without an arrival "restart", "ties" and "delay" are not possible.
    timestamp_unit, arrival_unit, integer_times, decode
        As of `from_event_log`, of all logs.
    on_bad_row : "fail" or "drop"
        As of `from_event_log`; rows without an arrival or a split are found before the job filters any.
    side_outputs : sequence of OutputTag
        Side outputs of the job that are compared, too.
    histories : collection of str, optional
        Kinds of histories to try, each of which this log must allow; by default all that it allows. Results must never
        depend on "again" (the same replay once more), "clock" (the machine's), "parallelism" and "restart" (a
        checkpoint, and what is restored from it). They may on "ties" (events that arrive together come in another
        order), "delay" (of a split) and "ticks" (of periodic watermarks): that is a race.
    interval_ms : int
        Auto-watermark interval.

    Returns
    -------
    Races
        The first race of each kind, and the kinds that were tried and not tried. It is empty if no history that was
        tried has changed a result.

    Raises
    ------
    ConfigurationError
        If the job or a setting is invalid, a history that is named is not possible with this log, or none is.
    SchemaError, DataError, SourceError
        If a column is missing, a row has a fault, or a file cannot be read.
    """
    wanted = _wanted(histories)
    if not isinstance(on_bad_row, str) or on_bad_row not in ("fail", "drop"):
        raise ConfigurationError(f'on_bad_row= is "fail" or "drop" here, not {on_bad_row!r}')
    described = [
        EventLog.of(
            each,
            LogSettings(
                timestamp=_NO_TIME,
                arrival=arrival,
                split=split,
                on_bad_row=on_bad_row,
                ordered_by=() if position is None else sort_keys(position),
                arrival_unit=arrival_unit,
            ),
            format=format,
            format_options=format_options,
            schema=schema,
            filesystem=filesystem,
            decode=decode,
        )
        for each in (log if isinstance(log, tuple) else (log,))
    ]
    logs = [_Log.read(each, timestamp) for each in described]
    settings = {
        "timestamp": timestamp,
        "timestamp_unit": timestamp_unit,
        "integer_times": integer_times,
        "rate": rate,
        "arrival_start_ms": arrival_start_ms,
        "on_bad_row": on_bad_row,
    }
    trials = _Trials(job, settings, tuple(side_outputs), interval_ms)
    possible, missing = legal_histories([each.times for each in logs], interval_ms)
    possible = [history for history in possible if history.kind in wanted]
    untried = {kind: missing[kind] for kind in wanted if kind in missing}
    kinds = {history.kind for history in possible}
    refused = [f"{kind} ({untried[kind]})" for kind in wanted if kind not in kinds]
    if refused and (histories is not None or not possible):
        raise ConfigurationError(f"these histories are not possible: {'; '.join(refused)}")
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", f".*({_SPLIT}|{_ARRIVAL})", UserWarning
        )  # columns that are not the log's
        expected = replace(trials, checks_unit=True).results(logs, None)
    races: list[Race] = []
    tried: list[History] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what is suspicious of a log is so in all histories
        for history in possible:
            if any(race.history.kind == history.kind for race in races):
                continue
            tried.append(history)
            outcome = trials.outcome(logs, history)
            if outcome != expected:
                races.append(trials.race(logs, history, expected, outcome))
    tables = dict.fromkeys(each.table_name for each in described if each.table_name is not None)
    return Races(races, tried, untried, list(tables))


def _with_shown_times(rows: pa.Table) -> pa.Table:
    """Return rows whose timestamps are texts, in UTC."""
    for number, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            column = rows.column(number).cast(pa.timestamp(field.type.unit)).cast(pa.string())
            rows = rows.set_column(number, field.name, column)
    return rows


def _wanted(histories: Collection[str] | None) -> list[str]:
    """Return the kinds of histories that are wanted."""
    if histories is None:
        return list(KINDS)
    if isinstance(histories, str):
        raise ConfigurationError(f"histories= is a collection, such as [{histories!r}], not {histories!r}")
    unknown = sorted(set(histories) - set(KINDS))
    if unknown:
        raise ConfigurationError(
            f"there are no histories {', '.join(unknown)}; there are: {', '.join(KINDS)}"
        )
    if not histories:
        raise ConfigurationError(f"histories= names none of {', '.join(KINDS)}; leave it out for all")
    return [kind for kind in KINDS if kind in histories]


def assert_deterministic(job: Job, log: Any, **settings: Any) -> None:
    """Assert that no other legal history of its log changes the results of a job.

    Parameters
    ----------
    job, log, **settings
        As of `find_races`. With ``histories=("again", "clock", "parallelism", "restart")`` races are left to the job.

    Raises
    ------
    AssertionError
        If one does: names the history, the keys, both results, and the smallest log that was found to show it.
    ConfigurationError
        As of `find_races`; so nothing passes that was not replayed at all.
    """
    races = find_races(job, log, **settings)
    if races:
        count = f"{len(races)} kind{'s' * (len(races) != 1)} of histories change"
        raise AssertionError(f"{count}{'s' * (len(races) == 1)} the results:\n\n{races}")


@dataclass(frozen=True, eq=False)
class _Log:
    """A log in memory.

    Attributes
    ----------
    rows : pyarrow.Table
        As they were read, without those that have no arrival or split.
    times : LogTimes
        Times of the rows; the splits have the order of the time plane.
    """

    rows: pa.Table
    times: LogTimes

    @classmethod
    def read(cls, log: EventLog, timestamp: str | Expression) -> _Log:
        """Read a log; its timestamps are left to the job, which may filter rows or compute them."""
        if isinstance(timestamp, str):
            log.require(timestamp, "timestamp=")
        no_time = WithColumns(((_NO_TIME, pc.scalar(0)),))
        reader = EventReader(log, [no_time], "all")
        batches = [batch for chunk in log.chunks(1) for batch in reader.read(chunk)]
        rows = pa.Table.from_batches([timed.batch for timed in batches], reader.schema)
        values = [timed.split_values[code] for timed in batches for code in timed.split_codes.tolist()]
        known = sorted(set(values), key=lambda value: (value is not None, value))
        numbers = {value: number for number, value in enumerate(known)}
        arrivals = None
        if log.arrival is not None:
            found = [timed.arrival_ms for timed in batches if timed.arrival_ms is not None]
            arrivals = np.concatenate([np.empty(0, np.int64), *found])
        if arrivals is not None and len(arrivals):
            check_units([ReadTimes.of_arrivals(log, int(arrivals.min()), int(arrivals.max()))])
        times = LogTimes(
            arrivals,
            np.array([numbers[value] for value in values], np.int64),
            ["the log" if value is None else f"split {value!r}" for value in known],
        )
        shown = [name for name in log.columns.names if not name.startswith(HIDDEN_PREFIX)]
        read = cls(rows.select(shown), times)
        if not log.by_arrival:
            return read
        columns = [times.split, *([rows.column(POSITION).to_numpy()] if log.ordered_by else [])]
        if times.arrival_ms is not None:
            columns.append(times.arrival_ms)
        return read.take(np.lexsort(columns).tolist())

    def take(self, rows: Sequence[int]) -> _Log:
        """Some of its rows."""
        taken = np.array(rows, np.int64)
        arrivals = None if self.times.arrival_ms is None else self.times.arrival_ms[taken]
        times = LogTimes(arrivals, self.times.split[taken], self.times.names)
        return _Log(self.rows.take(pa.array(taken)), times)


@dataclass(frozen=True)
class _Trials:
    """Replays of a job; parameters as of `find_races`, settings those of `from_event_log`.

    Attributes
    ----------
    checks_unit : bool
        Whether event times that cannot be milliseconds are an error; parts of a log may look like other units.
    """

    job: Job
    settings: Mapping[str, Any]
    side_outputs: tuple[OutputTag, ...]
    interval_ms: int
    checks_unit: bool = False

    def results(self, logs: Sequence[_Log], history: History | None) -> dict[str, Rows]:
        """Return the rows of results by key in a history, or with the logs as they are if it is None."""
        times = [log.times for log in logs]
        changed = list(map(Changed.not_at_all, times)) if history is None else history.change(times)
        given = [self._changed(log.rows, change) for log, change in zip(logs, changed, strict=True)]
        if history is None:
            return self._run(given)
        with history.around(self.job):
            if history.restart_after_ms is None:
                return self._run(given, history.parallelism, history.interval_ms)
            return self._restarted(given, changed, history.restart_after_ms)

    def outcome(self, logs: Sequence[_Log], history: History) -> Outcome:
        """Return the rows of results by key, or the error with which the job fails."""
        try:
            return self.results(logs, history)
        except Exception as error:
            return error

    def _changed(self, log: pa.Table, change: Changed) -> pa.Table:
        log = log.take(pa.array(change.rows)).append_column(_SPLIT, pa.array(change.times.split))
        if change.times.arrival_ms is None:
            return log
        return log.append_column(_ARRIVAL, pa.array(change.times.arrival_ms))

    def _stream(self, logs: Sequence[pa.Table], parallelism: int, interval_ms: int | None) -> LogStream:
        environment = StreamExecutionEnvironment()
        environment.set_parallelism(parallelism)
        environment.get_config().set_late_share_warning(1)  # histories of other orders lose other events
        environment.get_config().set_auto_watermark_interval(
            self.interval_ms if interval_ms is None else interval_ms
        )
        own = (_SPLIT, _ARRIVAL)
        streams = []
        for log in logs:
            arrival = _ARRIVAL if _ARRIVAL in log.column_names else None
            stream = environment.from_event_log(log, arrival=arrival, split=_SPLIT, **self.settings)
            source = stream._transformation
            assert isinstance(source, EventLogSource)
            source.log = replace(source.log, checked_units=("timestamp",) if self.checks_unit else ())
            streams.append(stream.select(*(name for name in log.column_names if name not in own)))
        results = self.job(*streams)
        if not isinstance(results, LogStream):
            raise ConfigurationError(f"a job gives the stream of its results, not {results!r}")
        return results

    def _run(
        self,
        logs: Sequence[pa.Table],
        parallelism: int = 1,
        interval_ms: int | None = None,
        **checkpoints: Path,
    ) -> dict[str, Rows]:
        stream = self._stream(logs, parallelism, interval_ms)
        for tag in self.side_outputs:
            stream = stream._with_side_outputs((tag,))
        result = stream.execute(progress=False, **checkpoints)
        by_key = self._by_key(stream, "", result.to_arrow())
        for tag in self.side_outputs:
            found = result.get_side_output(tag).to_arrow()
            by_key |= self._by_key(stream, f"side output {tag.tag_id!r}, ", found)
        return by_key

    def _restarted(
        self, logs: Sequence[pa.Table], changed: Sequence[Changed], after_ms: int
    ) -> dict[str, Rows]:
        before = [pa.array(change.times.in_force() <= after_ms) for change in changed]
        after = [pa.array(change.times.in_force() > after_ms) for change in changed]
        with tempfile.TemporaryDirectory(prefix="flinkcore-") as directory:
            path = Path(directory) / "checkpoint"
            first = [log.filter(rows) for log, rows in zip(logs, before, strict=True)]
            second = [log.filter(rows) for log, rows in zip(logs, after, strict=True)]
            results = self._run(first, stop_with_checkpoint=path)
            for key, rows in self._run(second, restore_from=path).items():
                results[key] = results.get(key, Counter()) + rows
        return results

    def _by_key(self, stream: LogStream, output: str, rows: pa.Table) -> dict[str, Rows]:
        executor, configuration = stream._environment.executor, stream._environment.get_config()
        keys = executor.planned(StreamGraph(stream._transformation), configuration).plan.keys
        shown = [name for name in rows.column_names if name not in _WHEN_FIRED]
        has_keys = set(keys) <= set(shown)
        by_key: dict[str, Rows] = {}
        for row in _with_shown_times(rows.select(shown)).to_pylist():
            key = ", ".join(f"{name} = {row[name]!r}" for name in keys) if has_keys else "all keys"
            by_key.setdefault(output + key, Counter())[repr(row)] += 1
        return by_key

    # ---- the smallest log ----

    def race(self, logs: list[_Log], history: History, expected: dict[str, Rows], outcome: Outcome) -> Race:
        """Return what a history changes, shown by as few rows as possible."""
        smallest = self._smallest(logs, history, outcome)
        step = self._sensitive_step(smallest, history, outcome)
        again = self.outcome(smallest, history)
        if isinstance(outcome, Exception):
            failure = in_words(again if isinstance(again, Exception) else outcome)
            return Race(history, [], [], [], [log.rows for log in smallest], step, failure)
        whole = _differences(expected, outcome)
        shown = {} if isinstance(again, Exception) else _differences(self.results(smallest, None), again)
        if not shown:  # a function that goes by chance
            shown, smallest = whole, logs
        key = next(iter(shown))
        only_expected, only_found = shown[key]
        return Race(
            history,
            [key, *(each for each in whole if each != key)],
            _lines(only_expected - only_found),
            _lines(only_found - only_expected),
            [log.rows for log in smallest],
            step,
        )

    def _smallest(self, logs: list[_Log], history: History, outcome: Outcome) -> list[_Log]:
        """Leave out rows, more and more finely, as long as the history still has an outcome like this one."""
        rows = [(log, row) for log, each in enumerate(logs) for row in range(each.rows.num_rows)]
        trials, parts = 0, 2
        while len(rows) > 1 and trials < _MOST_TRIALS:
            size = max(1, len(rows) // parts)
            for start in range(0, len(rows), size):
                left = rows[:start] + rows[start + size :]
                trials += 1
                if left and self._shows(_taken(logs, left), history, outcome):
                    rows, parts = left, max(2, parts - 1)
                    break
            else:
                if size == 1:
                    break
                parts = min(len(rows), 2 * parts)
        return _taken(logs, rows)

    def _sensitive_step(self, logs: list[_Log], history: History, outcome: Outcome) -> str | None:
        """Return the first operator after which the history already has an outcome like this one."""
        given = [self._changed(log.rows, Changed.not_at_all(log.times)) for log in logs]
        operators = _operators(self._stream(given, 1, None))
        for number in range(len(operators) - 1):
            tags = {tag for step in operators[: number + 1] for tag in step.side_outputs()}
            side_outputs = tuple(tag for tag in self.side_outputs if tag in tags)
            until = replace(self, job=_until(self.job, number), side_outputs=side_outputs)
            if until._shows(logs, history, outcome):
                return str(operators[number])
        return str(operators[-1]) if operators else None

    def _shows(self, logs: list[_Log], history: History, outcome: Outcome) -> bool:
        """Return whether the history changes the results, or makes the job fail, as in `outcome`."""
        try:
            expected, found = self.results(logs, None), self.outcome(logs, history)
        except Exception:  # the job fails without the rows
            return False
        if isinstance(found, Exception) or isinstance(outcome, Exception):
            return _kind(found) == _kind(outcome)
        return found != expected


def _operators(stream: LogStream) -> list[Transformation]:
    """The windows and functions of a job, those before others first."""
    steps = stream._transformation.in_order()
    return [step for step in steps if isinstance(step, OperatorTransformation)]


def _until(job: Job, operator: int) -> Job:
    """Return a job up to one of its operators, by its number."""

    @wraps(job)
    def until(*streams: LogStream) -> LogStream:
        stream = job(*streams)
        return LogStream(stream._environment, _operators(stream)[operator])

    return until


def _kind(outcome: Outcome) -> tuple[type, type]:
    """Return the classes of an outcome and of its cause, if it is an error."""
    return type(outcome), type(getattr(outcome, "__cause__", None))


def _differences(expected: dict[str, Rows], found: dict[str, Rows]) -> dict[str, tuple[Rows, Rows]]:
    """Return the keys whose rows differ, with the rows of both."""
    keys = dict.fromkeys([*expected, *found])
    both = {key: (expected.get(key, Counter()), found.get(key, Counter())) for key in keys}
    return {key: rows for key, rows in both.items() if rows[0] != rows[1]}


def _taken(logs: Sequence[_Log], rows: Sequence[tuple[int, int]]) -> list[_Log]:
    return [each.take([row for of, row in rows if of == log]) for log, each in enumerate(logs)]


def _lines(rows: Rows) -> list[str]:
    return sorted(rows.elements())[:10]
