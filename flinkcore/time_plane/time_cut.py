"""The state of a log's time plane at its end, from which the time plane of another log is resumed.

The cut lies after the last event of the log, in the total order of the replay::

    arrival ──▶        L = last arrival
    events     e  e  e  e │ e  e        right of the cut: the next log, from L on
    ticks      │  │       │ │  │        that at L comes after all events that arrive at L: the next log's

Notes
-----
Flink restarts watermark generators empty after a restore, and has no watermark before they emit again. Here both
are restored, so that two logs give the rows of both at once. A split that only the later log has is discovered at the
cut, as Flink's sources discover splits: from then on it holds the watermark back where it is, until it has caught up or
is idle. With both logs at once it would have held it back from the start.

A replay of several logs is cut after the last event of them all, so that all of their cuts have one last arrival. A log
without splits so far has a split None, as long as it has no other: it holds its replay back as one split does.

Waiting events of a paused split lie on both sides: rows and arrivals are counted here, the events are those of
`flinkcore.log.waiting_rows`, and what the generator has seen ends at the pause.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.show.times import dated
from flinkcore._internal.values.timestamps import MIN_TIMESTAMP
from flinkcore.checkpoint.checkpoint_table import CheckpointTable, TableColumns
from flinkcore.errors import DataError, SchemaError

_NEW_SPLIT: Final = {
    "rows": 0,
    "last_arrival_ms": MIN_TIMESTAMP,
    "recorded_arrival_ms": MIN_TIMESTAMP,
    "generator_ms": MIN_TIMESTAMP,
    "unseen": 0,
    "inactive_since_ms": 0,
    "generator_idle": 0,
    "watermark_ms": MIN_TIMESTAMP,
    "operator_idle": 0,
    "idle_since_ms": 0,
    "channel_ms": MIN_TIMESTAMP,
    "channel_idle": 0,
}
_NEW_ALIGNED_SPLIT: Final = {
    "paused": 0,
    "paused_since_ms": 0,
    "paused_ms": 0,
    "sample_ms": MIN_TIMESTAMP,
    "earlier_sample_ms": MIN_TIMESTAMP,
}
"""Further columns of a table, unless no split differs from these values."""
_NEW_CUT_SPLIT: Final = {"taken_ms": MIN_TIMESTAMP}
"""Further columns of a table, if its log was cut at a time of arrival."""

_NEW: Final = _NEW_SPLIT | _NEW_ALIGNED_SPLIT | _NEW_CUT_SPLIT


@dataclass(frozen=True, eq=False)
class TimeCut:
    """The state of all splits of a log, and of the valve, at its end.

    Parameters
    ----------
    last_arrival_ms : int or None
        The last arrival of this log and those before it; None if there was no event.
    opened_ms : int or None
        When the operators of the splits were opened; None if there was no event.
    watermark_ms : int
        Last watermark that the valve has emitted; -2**63 before the first.
    split_values : list
        The values of the split column, in split order.
    columns : dict of str to numpy.ndarray of int64, shape (n_splits,)
        `rows`, those of the split so far; `last_arrival_ms`, their running maximum, -2**63 without events;
        `recorded_arrival_ms`, that of the last event; `taken_ms`, the greatest arrival of its rows, also filtered ones,
        if the log is cut at a time of arrival; and the columns of `flinkcore._native.timeline`.
    generators : list or None
        States of the splits' generators, by `WatermarkGenerator.snapshot_state`, or None for those of the columns.
    input_watermark_ms, operator_watermark_ms : int
        If the log is one of several: last watermarks of the valve of all logs of the same input, and of the operator
        after it.
    later_operators_ms : tuple of tuple of int
        Where later operators do not take all of what one operator gives, and nothing else: the watermark of each of
        them, and those of its inputs.
    until_ms : int or None
        Time of arrival before which all events were taken, and no later ones, or None if the log was taken to its end.
    beside_last : int
        Whether the last event is in this log (0), or in one that comes later (-1) or earlier (1) in the job.
    """

    last_arrival_ms: int | None
    opened_ms: int | None
    watermark_ms: int
    split_values: list[Any]
    columns: dict[str, Int64s]
    generators: list[Any] | None = None
    input_watermark_ms: int = MIN_TIMESTAMP
    operator_watermark_ms: int = MIN_TIMESTAMP
    later_operators_ms: tuple[tuple[int, ...], ...] = ()
    until_ms: int | None = None
    beside_last: int = 0

    @classmethod
    def before_all(cls) -> TimeCut:
        """Before the first log."""
        return cls(None, None, MIN_TIMESTAMP, [], {name: np.empty(0, np.int64) for name in _NEW})

    @classmethod
    def of_no_split(cls) -> dict[str, Int64s]:
        """Return the columns of a log without splits, but for what its operator holds."""
        return cls.before_all().columns_of([None])

    @property
    def has_splits(self) -> bool:
        """Return whether there was a row of a split, also one that was filtered out."""
        return self.split_values != [None] or bool(self.columns["rows"].any())

    @property
    def step(self) -> tuple[int, int] | None:
        """The step of a timeline that stands for all before the cut: clock and watermark, or None without one."""
        if self.last_arrival_ms is None or self.watermark_ms == MIN_TIMESTAMP:
            return None
        return self.last_arrival_ms - 1, self.watermark_ms

    def is_idle(self, split_values: Sequence[Any]) -> bool:
        """Return whether all of these splits are idle; new ones are active."""
        return bool(self.column("channel_idle", split_values or [None]).all())

    def column(self, name: str, split_values: Sequence[Any]) -> Int64s:
        """Return a column for these splits, of which some may be new."""
        numbers = {value: number for number, value in enumerate(self.split_values)}
        # A new channel stands where the valve stands, and so holds it back.
        new = self.watermark_ms if name == "channel_ms" else _NEW[name]
        values = self.columns[name].tolist()
        return np.array(
            [values[numbers[value]] if value in numbers else new for value in split_values], np.int64
        )

    def columns_of(self, split_values: Sequence[Any]) -> dict[str, Int64s]:
        """Return all columns, for these splits."""
        return {name: self.column(name, split_values) for name in _NEW}

    def operators(self, split_values: Sequence[Any]) -> dict[str, Any]:
        """Return what `restore_split_merge` takes, for these splits; there was an event."""
        return self.columns_of(split_values) | {"opened_ms": self.opened_ms, "output_ms": self.watermark_ms}

    def check_goes_on(self, split_values: Sequence[Any], least_arrival_ms: Int64s, events: Int64s) -> None:
        """Check that no event of the next log lies before the cut.

        Parameters
        ----------
        split_values : sequence of object
            In split order.
        least_arrival_ms, events : numpy.ndarray of int64, shape (n_splits,)
            Least recorded arrival of each split in the next log, and its number of events.

        Raises
        ------
        DataError
            If one does; names split and arrivals.
        """
        if self.last_arrival_ms is None:
            return
        last_split = self._last_split(split_values)
        for split in np.flatnonzero(events > 0).tolist():
            arrival = int(least_arrival_ms[split])
            if (arrival, split) >= (self.last_arrival_ms, last_split):
                continue
            value = split_values[split]
            of_split = "the log" if value is None else f"split {value!r}"
            of_last = " of another log of the job"
            if not self.beside_last:
                of_last = "" if value is None else f" of split {split_values[last_split]!r}"
            raise DataError(
                f"{of_split} has an event with the arrival {dated(arrival, ' ms')}, but the checkpoint was taken after "
                f"the arrival {dated(self.last_arrival_ms, ' ms')}{of_last}: what comes before that is done, and is "
                "not done again. Where files end at different times, give the run before until=, a time of arrival "
                "that all of them reach, and this run continues from there; by rate, cut all splits at one position. "
                "Events that arrive together are in order of their splits",
                split=value,
            )

    def _last_split(self, split_values: Sequence[Any]) -> int:
        """Return the first split that may have an event at the last arrival."""
        if self.beside_last:
            return 0 if self.beside_last > 0 else len(split_values)
        ends = self.column("last_arrival_ms", split_values)
        return int(np.flatnonzero(ends == self.last_arrival_ms)[-1])

    def to_table(self) -> CheckpointTable:
        """Return the cut as a table of a checkpoint.

        Raises
        ------
        SchemaError
            If the values of the split column, or what a generator holds, are of a type that has no column.
        """
        table = TableColumns("the splits")
        table.add_values("split", self.split_values)
        if self.generators is not None:
            table.add_values("generator", self.generators)
        is_aligned = any((self.columns[name] != new).any() for name, new in _NEW_ALIGNED_SPLIT.items())
        for name in _names(is_aligned, self.until_ms is not None):
            table.add_numbers(name, self.columns[name], pa.int64())
        return table.table(
            {
                "last_arrival_ms": self.last_arrival_ms,
                "opened_ms": self.opened_ms,
                "watermark_ms": self.watermark_ms,
                "input_watermark_ms": self.input_watermark_ms,
                "operator_watermark_ms": self.operator_watermark_ms,
                **({"later_operators_ms": self.later_operators_ms} if self.later_operators_ms else {}),
                **({} if self.until_ms is None else {"until_ms": self.until_ms}),
            }
        )

    @classmethod
    def of_table(cls, table: CheckpointTable) -> TimeCut:
        """Return the cut of a table.

        Raises
        ------
        SchemaError
            If the table is of another kind, or one of its values contradicts another.
        """
        has_generators = "generator" in table.shapes
        until_ms = table.attributes.get("until_ms")
        names = _names("paused" in table.batch.schema.names, until_ms is not None)
        table.check_columns("split", *(["generator"] if has_generators else []), *names)
        columns = {name: np.full(table.batch.num_rows, new) for name, new in _NEW.items()}
        cut = cls(
            table.attributes["last_arrival_ms"],
            table.attributes["opened_ms"],
            table.attributes["watermark_ms"],
            table.values("split"),
            columns | {name: table.numbers(name, pa.int64()) for name in names},
            table.values("generator") if has_generators else None,
            table.attributes["input_watermark_ms"],
            table.attributes["operator_watermark_ms"],
            tuple(map(tuple, table.attributes.get("later_operators_ms", ()))),
            until_ms,
        )
        cut._check()
        return cut

    def _check(self) -> None:
        columns = self.columns
        if len(set(self.split_values)) < len(self.split_values):
            raise SchemaError("the time plane of a checkpoint has a split twice")
        for name in ("unseen", "generator_idle", "operator_idle", "channel_idle", "paused"):
            self._refuse(name, (columns[name] != 0) & (columns[name] != 1), "neither 0 nor 1")
        self._refuse("rows", columns["rows"] < 0, "less than 0")
        had_events = columns["last_arrival_ms"] != MIN_TIMESTAMP
        recorded = columns["recorded_arrival_ms"]
        self._refuse(
            "recorded_arrival_ms",
            had_events & (recorded > columns["last_arrival_ms"]),
            "after the last arrival of its split",
        )
        self._refuse("rows", had_events & (columns["rows"] == 0), "none, though it had events")
        if self.until_ms is not None:
            taken = columns["taken_ms"]
            self._refuse("taken_ms", taken >= self.until_ms, "not before the cut")
            self._refuse("taken_ms", had_events & (taken < recorded), "before the last arrival of its split")
        self._refuse("sample_ms", columns["sample_ms"] > columns["watermark_ms"], "above its watermark")
        earlier = columns["earlier_sample_ms"]
        self._refuse("earlier_sample_ms", earlier > columns["sample_ms"], "above the sample after it")
        if self.last_arrival_ms is None or self.opened_ms is None:
            self._refuse("last_arrival_ms", had_events, "an arrival, though there was no event")
            self._refuse("paused", columns["paused"] != 0, "though there was no event")
            if self.watermark_ms != MIN_TIMESTAMP:
                raise SchemaError(
                    f"the time plane of a checkpoint has the watermark {dated(self.watermark_ms)} without an event"
                )
            return
        if not self.split_values:
            raise SchemaError("the time plane of a checkpoint has an arrival and no split")
        if self.opened_ms > self.last_arrival_ms:
            raise SchemaError(
                f"the time plane of a checkpoint was opened at {dated(self.opened_ms, ' ms')}, after its last "
                f"arrival {dated(self.last_arrival_ms, ' ms')}"
            )
        self._refuse(
            "last_arrival_ms", columns["last_arrival_ms"] > self.last_arrival_ms, "after the last of the log"
        )
        self._refuse_other_pauses(self.opened_ms, self.last_arrival_ms)
        if self.watermark_ms > int(columns["channel_ms"].max()):
            raise SchemaError(
                f"the time plane of a checkpoint has the watermark {dated(self.watermark_ms)}, and no split has "
                "reached it"
            )

    def _refuse_other_pauses(self, opened_ms: int, last_arrival_ms: int) -> None:
        since, before, paused = (self.columns[name] for name in ("paused_since_ms", "paused_ms", "paused"))
        is_paused = paused != 0
        outside = (since < opened_ms) | (since > last_arrival_ms)
        self._refuse("paused_since_ms", is_paused & outside, "not within the log")
        until = np.where(is_paused, since, last_arrival_ms)
        self._refuse("paused_ms", (before < 0) | (before > until - opened_ms), "not within the log")

    def _refuse(self, name: str, is_wrong: npt.NDArray[np.bool_], what: str) -> None:
        if is_wrong.any():
            row = int(np.argmax(is_wrong))
            raise SchemaError(
                f"{name} of the split {self.split_values[row]!r} in a checkpoint, row {row}, is "
                f"{self.columns[name][row]}: {what}"
            )


def _names(is_aligned: bool, has_until: bool) -> list[str]:
    """Return the names of the columns of a table."""
    aligned = _NEW_ALIGNED_SPLIT if is_aligned else {}
    return [*_NEW_SPLIT, *aligned, *(_NEW_CUT_SPLIT if has_until else {})]


def cuts_of_one_replay(cuts: Sequence[TimeCut]) -> tuple[TimeCut, ...]:
    """Return the cuts of all logs of a replay, in their order, each of which knows where the last event is.

    Raises
    ------
    SchemaError
        If they are not those of one replay.
    """
    ends = {
        (cut.last_arrival_ms, cut.opened_ms, cut.operator_watermark_ms, cut.later_operators_ms)
        for cut in cuts
    }
    if len(ends) != 1:
        raise SchemaError("the logs of a checkpoint end at different arrivals or watermarks")
    if cuts[0].last_arrival_ms is not None and not any(map(_has_last_event, cuts)):
        raise SchemaError(
            f"no split of a checkpoint has the last arrival, {dated(cuts[0].last_arrival_ms, ' ms')}"
        )
    last = max((number for number, cut in enumerate(cuts) if _has_last_event(cut)), default=0)
    return tuple(
        replace(cut, beside_last=(number > last) - (number < last)) for number, cut in enumerate(cuts)
    )


def _has_last_event(cut: TimeCut) -> bool:
    return cut.last_arrival_ms in cut.columns["last_arrival_ms"].tolist()
