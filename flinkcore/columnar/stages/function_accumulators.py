"""The accumulators of keys of an aggregate that is a function in Python, over frames or over all rows of a key."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.python.object_sizes import size_of_all
from flinkcore.columnar.relational.frame_aggregates import GROWTH_SHARE, KeyIds
from flinkcore.datastream.graph.function_aggregates import FunctionAggregate

TABLE: Final = "values_"
"""Beginning of the name of the table of an aggregate that is not native; its number follows."""


class _OfKey:
    """The accumulator of a key, the number of its rows that are not taken back, and those of a bounded frame."""

    __slots__ = ("accumulator", "frame", "n_rows")

    def __init__(self, accumulator: Any, frame: deque[tuple[int, Any]] | None, n_rows: int = 0) -> None:
        self.accumulator, self.frame, self.n_rows = accumulator, frame, n_rows


class FunctionAccumulators:
    """The results of a `FunctionAggregate`.

    Parameters
    ----------
    aggregate : FunctionAggregate
    rows, range_ms, peers
        As of `Frames`.

    Notes
    -----
    Calls are those of Flink's GroupAggFunction and of its functions of OVER: what leaves a frame is retracted before
    the row is accumulated.
    """

    def __init__(
        self,
        aggregate: FunctionAggregate,
        *,
        rows: int | None = None,
        range_ms: int | None = None,
        peers: bool = False,
    ) -> None:
        assert aggregate.column is not None
        self._column, self._calls = aggregate.column, aggregate.calls
        self._size, self._range_ms, self._peers = rows, range_ms, peers
        self._keys: dict[int, _OfKey] = {}
        self._results: list[Any] = []
        self._bytes = self._rows_since_bytes = 0

    def fitting(
        self,
        key_ids: KeyIds,
        retracts: npt.NDArray[np.uint8] | None = None,
        rows: pa.RecordBatch | None = None,
    ) -> int:
        """Return how many events may have results at once: all."""
        return len(key_ids)

    def process(
        self,
        rows: pa.RecordBatch,
        key_ids: KeyIds,
        retracts: npt.NDArray[np.uint8] | None = None,
        emits: bool = True,
        *,
        times: Int64s | None = None,
        cleared: tuple[Int64s, KeyIds] | None = None,
    ) -> None:
        """Take in rows; a result waits for each, or for the last one of peers, if it emits.

        `times`, in ms since the epoch, order the rows of frames. Over all rows of a key they are processing times, or
        None if state does not expire.
        """
        keys, given = key_ids.tolist(), self._arguments(rows)
        moments = [0] * len(keys) if times is None else times.tolist()
        withdrawn = None if retracts is None else retracts.tolist()
        forgotten = [] if cleared is None else list(zip(*(each.tolist() for each in cleared), strict=True))
        forgotten.reverse()
        last = len(keys) - 1
        for row, key in enumerate(keys):
            while forgotten and forgotten[-1][0] <= row:
                self._keys.pop(forgotten.pop()[1], None)
            self._take_in(key, given[row], moments[row], withdrawn is not None and bool(withdrawn[row]))
            if self._peers and row < last and keys[row + 1] == key and moments[row + 1] == moments[row]:
                continue
            if emits:
                self._emit(key)
        for _, key in reversed(forgotten):
            self._keys.pop(key, None)
        self._rows_since_bytes += len(keys)

    def _arguments(self, rows: pa.RecordBatch) -> list[tuple[Any, ...] | None]:
        """Return the arguments of rows, or None of one that is left out."""
        column = rows.column(self._column)
        _, *fields = column.flatten()
        given = self._calls.arguments(fields) if fields else [()] * len(column)
        if not column.null_count:
            return list(given)
        taken = column.is_valid().to_pylist()
        return [each if is_taken else None for each, is_taken in zip(given, taken, strict=True)]

    def _take_in(self, key: int, arguments: tuple[Any, ...] | None, time: int, is_withdrawn: bool) -> None:
        state, calls = self._keys.get(key), self._calls
        if state is None:
            if is_withdrawn:  # there is nothing to withdraw: GroupAggFunction ignores it
                return
            is_bounded = self._size is not None or self._range_ms is not None
            state = self._keys[key] = _OfKey(calls.create(), deque() if is_bounded else None)
        if is_withdrawn:
            if arguments is not None:
                calls.retract(state.accumulator, arguments, time)
            state.n_rows -= 1
            if not state.n_rows:
                del self._keys[key]
            return
        if state.frame is not None:
            self._leave(state, state.frame, time)
            state.frame.append((time, arguments))
        if arguments is not None:
            calls.accumulate(state.accumulator, arguments, time)
        state.n_rows += 1

    def _leave(self, state: _OfKey, frame: deque[tuple[int, Any]], time: int) -> None:
        """Retract the rows that are not in the frame of a row of this time."""
        while frame and (
            len(frame) == self._size if self._range_ms is None else time - frame[0][0] > self._range_ms
        ):
            _, arguments = frame.popleft()
            if arguments is not None:
                self._calls.retract(state.accumulator, arguments, time)

    def _emit(self, key: int) -> None:
        state = self._keys.get(key)
        self._results.append(None if state is None else self._calls.value(state.accumulator))

    def emit(self, key_ids: KeyIds) -> None:
        """Append the present results of keys; a key without rows has null."""
        for key in key_ids.tolist():
            self._emit(key)

    def take(self) -> pa.Array:
        """Return the results that wait."""
        found, self._results = self._results, []
        return self._calls.column(found)

    def clear(self, key_ids: KeyIds) -> None:
        """Forget keys."""
        for key in key_ids.tolist():
            self._keys.pop(key, None)

    def memory_bytes(self) -> int:
        """Bytes of the accumulators and frames, by a sample of them, counted now and then."""
        if self._bytes == 0 or self._rows_since_bytes * GROWTH_SHARE >= len(self._keys):
            held = [(state.accumulator, list(state.frame or ())) for state in self._keys.values()]
            self._bytes, self._rows_since_bytes = size_of_all(held), 0
        return self._bytes

    def snapshot(self) -> Mapping[str, Any]:
        """Return the state of all keys, by id: `key`, `n_rows`, and as values of Python `accumulator` and `frame`."""
        states = self._keys.values()
        return {
            "key": np.fromiter(self._keys, np.int64, len(self._keys)),
            "n_rows": np.fromiter((state.n_rows for state in states), np.int64, len(states)),
            "accumulator": [state.accumulator for state in states],
            "frame": [None if state.frame is None else list(state.frame) for state in states],
        }

    def restore(self, keys: Int64s, columns: pa.RecordBatch, values: Mapping[str, Any]) -> None:
        """Take rows of a table of `snapshot`, before the first event.

        Parameters
        ----------
        keys : int64 array (n,)
        columns : pyarrow.RecordBatch
        values : mapping of str to list
            The values of Python.
        """
        counts = columns.column("n_rows").to_pylist()
        for key, n_rows, accumulator, frame in zip(
            keys.tolist(), counts, values["accumulator"], values["frame"], strict=True
        ):
            self._keys[key] = _OfKey(accumulator, None if frame is None else deque(frame), n_rows)
