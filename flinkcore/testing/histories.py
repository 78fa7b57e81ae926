"""Other legal histories of a log: what else might have happened with the same events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final

import numpy as np
import numpy.typing as npt

from flinkcore._internal.show.times import dated
from flinkcore.testing.machine_clock import UNSEEN, on_another_day

Int64s = npt.NDArray[np.int64]

KINDS: Final = ("again", "clock", "parallelism", "restart", "ties", "delay", "ticks")
"""The kinds of histories. Results must never depend on the first four; they may on the others, and that is a race."""

NEVER: Final = frozenset(KINDS[:4])

_MOST_SPLITS: Final = 8
"""So many splits of a log are delayed, one after the other."""


@dataclass(frozen=True, eq=False)
class LogTimes:
    """Arrival times and splits of the rows of a log.

    Attributes
    ----------
    arrival_ms : numpy.ndarray of int64, shape (n_rows,), or None
        Recorded arrivals, or None if positions give them.
    split : numpy.ndarray of int64, shape (n_rows,)
        Number of the split of each row: among those that arrive together, that of the lower one comes first.
    names : list of str
        Names of the splits, for people.
    """

    arrival_ms: Int64s | None
    split: Int64s
    names: list[str]

    def in_force(self) -> Int64s:
        """Return the arrivals of a replay: the running maximum in each split."""
        assert self.arrival_ms is not None
        arrivals = self.arrival_ms.copy()
        for split in np.unique(self.split):
            rows = self.split == split
            arrivals[rows] = np.maximum.accumulate(arrivals[rows])
        return arrivals


@dataclass(frozen=True, eq=False)
class Changed:
    """A log in another history: its times, the order of its rows, and how it is replayed.

    Attributes
    ----------
    times : LogTimes
        Times of the rows in their new order.
    rows : numpy.ndarray of int64, shape (n_rows,)
        Numbers of the rows in the order in which they lie now.
    """

    times: LogTimes
    rows: Int64s

    @classmethod
    def not_at_all(cls, times: LogTimes) -> Changed:
        """As it was recorded."""
        return cls(times, np.arange(len(times.split)))


@dataclass(frozen=True)
class History:
    """Something else that might have happened.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    what : str
        In words.
    change : callable
        From the times of all logs to the logs as they are then.
    parallelism : int
    interval_ms : int or None
        Interval of periodic watermarks, or None if unchanged.
    restart_after_ms : int or None
        The last arrival before the job stops with a checkpoint, and resumes from it, or None if it does not stop.
    around : callable
        Function from the job to the context manager within which it is replayed.
    """

    kind: str
    what: str
    change: Callable[[Sequence[LogTimes]], list[Changed]] = field(
        default=lambda logs: list(map(Changed.not_at_all, logs))
    )
    parallelism: int = 1
    interval_ms: int | None = None
    restart_after_ms: int | None = None
    around: Callable[[object], AbstractContextManager[object]] = nullcontext

    @property
    def may_count(self) -> bool:
        """Return whether results may depend on it; if not, a difference is a defect of the job."""
        return self.kind not in NEVER


def legal_histories(logs: Sequence[LogTimes], interval_ms: int) -> tuple[list[History], dict[str, str]]:
    """Return the histories that logs may be replayed in, the same ones each time, and why there are not more.

    Parameters
    ----------
    logs
        As they were recorded.
    interval_ms
        Interval of periodic watermarks, in ms.

    Returns
    -------
    histories : list of History
        Those that change something, by kind.
    missing : dict of str to str
        Reasons why a kind has no histories, or not all, by kind.
    """
    if not any(len(times.split) for times in logs):
        return [], dict.fromkeys(KINDS, "the log has no rows")
    histories = [
        History("again", "the same replay once more"),
        History("clock", "the machine's clock shows another day", around=on_another_day),
        *(
            History("parallelism", f"parallelism {parallelism} instead of 1", parallelism=parallelism)
            for parallelism in (2, 5)
        ),
    ]
    missing = {"clock": UNSEEN}
    if all(times.arrival_ms is not None for times in logs):
        of_arrivals = {"restart": _restarts(logs), "ties": _ties(logs), "delay": _delays(logs, interval_ms)}
        for kind, (found, reason) in of_arrivals.items():
            histories += found
            if reason:
                missing[kind] = reason
    else:
        without = "the log has no arrivals; name their column"
        missing |= dict.fromkeys(("restart", "ties", "delay"), without)
    if interval_ms:
        histories += [
            History(
                "ticks",
                f"each periodic watermark comes {late_ms:,} ms later after the one before",
                interval_ms=interval_ms + late_ms,
            )
            for late_ms in sorted({1, max(1, interval_ms // 2)})
        ]
    else:
        missing["ticks"] = "with an interval of 0 there are no periodic watermarks"
    return histories, missing


Found = tuple[list[History], str]
"""The histories of a kind, and why one or all are missing; an empty text: none is."""


def _restarts(logs: Sequence[LogTimes]) -> Found:
    histories = [
        History(
            "restart",
            f"stopped with a checkpoint after arrival {dated(after_ms)}, and restored from it",
            restart_after_ms=after_ms,
        )
        for after_ms in _cuts(logs)
    ]
    return histories, "" if histories else "nothing arrives after all splits have begun"


def _ties(logs: Sequence[LogTimes]) -> Found:
    arrivals = [times.in_force() for times in logs]
    histories = []
    if any(np.any(np.diff(_rows_turned(times).rows) < 0) for times in logs):
        histories.append(
            History(
                "ties", "events of a split that arrive together come the other way round", _with_rows_turned
            )
        )
    if any(map(_splits_are_tied, arrivals, logs)):
        histories.append(
            History(
                "ties",
                "of events that arrive together, those of other splits come first",
                _with_splits_turned,
            )
        )
    for number, own in enumerate(arrivals):
        if any(np.intersect1d(own, other).size for other in (*arrivals[:number], *arrivals[number + 1 :])):
            histories.append(
                History(
                    "ties",
                    f"of events that arrive together, those of log {number} of the union come last",
                    _delayed(1, number, None),
                )
            )
    return histories, "" if histories else "no two events arrive together"


def _splits_are_tied(arrivals: Int64s, times: LogTimes) -> bool:
    of_splits = [np.unique(arrivals[times.split == split]) for split in np.unique(times.split)]
    return sum(map(len, of_splits)) > len(np.unique(arrivals))


def _delays(logs: Sequence[LogTimes], interval_ms: int) -> Found:
    n_splits = sum(len(times.names) for times in logs)
    if n_splits < 2:
        return [], "the log has one split, and a delay of all events is none"
    span_ms = max(int(np.ptp(times.in_force())) for times in logs if len(times.split))
    histories = [
        History(
            "delay",
            f"{name}{f' of log {number}' if len(logs) > 1 else ''} is delayed by {delay_ms:,} ms",
            _delayed(delay_ms, number, name),
        )
        for number, times in enumerate(logs)
        for name in times.names[:_MOST_SPLITS]
        for delay_ms in sorted({max(1, interval_ms), max(1, span_ms // 4)})
    ]
    left_out = sum(max(0, len(times.names) - _MOST_SPLITS) for times in logs)
    of_each = "of each log " if len(logs) > 1 else ""
    return histories, (
        f"{left_out:,} of {n_splits:,} splits, after the first {_MOST_SPLITS} {of_each}by name"
        if left_out
        else ""
    )


def _cuts(logs: Sequence[LogTimes]) -> list[int]:
    """Arrivals after which a job may stop: all splits have begun by then, and something is left."""
    arrivals = [times.in_force() for times in logs]
    begun = max(
        int(in_force[times.split == split].min())
        for times, in_force in zip(logs, arrivals, strict=True)
        for split in np.unique(times.split)
    )
    every = np.unique(np.concatenate(arrivals))
    possible = every[(every >= begun) & (every < every[-1])]
    if len(possible) == 0:
        return []
    return sorted({int(possible[len(possible) * part // 4]) for part in (0, 1, 2, 3)})


def _with_rows_turned(logs: Sequence[LogTimes]) -> list[Changed]:
    return list(map(_rows_turned, logs))


def _rows_turned(times: LogTimes) -> Changed:
    in_force = times.in_force()
    rows = np.arange(len(in_force))
    for split in np.unique(times.split).tolist():
        own = np.flatnonzero(times.split == split)
        order = [list(tied) for _, tied in groupby(own.tolist(), key=lambda row: int(in_force[row]))]
        rows[own] = [row for tied in order for row in reversed(tied)]
    return Changed(replace(times, arrival_ms=in_force[rows], split=times.split[rows]), rows)


def _with_splits_turned(logs: Sequence[LogTimes]) -> list[Changed]:
    return [Changed(replace(times, split=-times.split), np.arange(len(times.split))) for times in logs]


def _delayed(delay_ms: int, number: int, split: str | None) -> Callable[[Sequence[LogTimes]], list[Changed]]:
    """Let the split `split` of a log arrive later, or all of its splits if it is None."""

    def change(logs: Sequence[LogTimes]) -> list[Changed]:
        changed = []
        for log, times in enumerate(logs):
            assert times.arrival_ms is not None
            is_later = np.array([split is None or name == split for name in times.names], np.bool_)
            later = is_later[times.split] & (log == number)
            moved = replace(times, arrival_ms=times.arrival_ms + np.where(later, delay_ms, 0))
            changed.append(Changed.not_at_all(moved))
        return changed

    return change
