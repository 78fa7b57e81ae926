"""A function over batches with its keys, state and timers, and the calls of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.column_values import numbered_key_values
from flinkcore._internal.show.times import dated
from flinkcore._native.key_dictionary import KeyDictionary
from flinkcore._native.key_timers import BatchCuts, KeyTimers
from flinkcore.columnar.batch_functions.aggregate_state import NativeAggregateState
from flinkcore.columnar.batch_functions.batch_process_columns import ElementColumns, FiredTimers
from flinkcore.columnar.batch_functions.batch_process_outputs import BatchProcessOutputs
from flinkcore.columnar.batch_functions.batch_process_timers import ColumnTimerService
from flinkcore.columnar.batch_functions.column_states import ColumnStates
from flinkcore.columnar.operator_plans.frame_plans import require_columns
from flinkcore.columnar.relational.numbered_rows import NumberedRows
from flinkcore.datastream import BatchTimerService, TimeDomain
from flinkcore.datastream.aggregates import Aggregate
from flinkcore.datastream.functions import KeyedBatchProcessFunction
from flinkcore.datastream.state import ColumnAggregateState, ColumnListState, ColumnState, StateDescriptor
from flinkcore.errors import ConfigurationError, DataError, UserCodeError, in_words
from flinkcore.operators.keys.element_rows import element_keys, exact_keys
from flinkcore.operators.records.shown_values import shown
from flinkcore.operators.streaming_runtime_context import StreamingRuntimeContext, TaskInfo


class ColumnRuntimeContext(StreamingRuntimeContext):
    """The task, and columns by dense key id in place of states of a current key.

    Parameters
    ----------
    task : TaskInfo
    states : ColumnStates
    schema : pyarrow.Schema
        Columns of the elements.
    """

    def __init__(self, task: TaskInfo, states: ColumnStates, schema: pa.Schema) -> None:
        super().__init__(task)
        self._states, self._schema = states, schema

    def get_column_state(self, name: str, dtype: Any, default: Any = 0) -> ColumnState:
        return self._states.add(name, dtype, default)

    def get_column_list_state(self, name: str, schema: pa.Schema) -> ColumnListState:
        return self._states.add_list(name, schema)

    def get_column_aggregate_state(
        self, name: str, aggregates: Mapping[str, Aggregate]
    ) -> ColumnAggregateState:
        require_columns(tuple(aggregates.items()), self._schema)
        return self._states.add_made(name, lambda: NativeAggregateState(name, self._schema, aggregates))

    def state(self, descriptor: StateDescriptor, kind: type[StateDescriptor]) -> NoReturn:
        raise ConfigurationError(
            f"the state {descriptor.name!r}: a function over batches has no current key; take a column with a value "
            "per key, get_column_state(name, dtype, default), or lists of rows, get_column_list_state(name, schema)"
        )


class KnownKeys:
    """Key columns of a dictionary, which are read as its keys become more.

    Parameters
    ----------
    keys : KeyDictionary
    """

    def __init__(self, keys: KeyDictionary) -> None:
        self._keys = keys
        self._columns = NumberedRows(pa.record_batch(keys.keys()).schema)
        self._columns.add(pa.record_batch(keys.keys()))

    @property
    def nbytes(self) -> int:
        """Bytes that the columns take so far."""
        return self._columns.nbytes

    def take(self, key_ids: npt.NDArray[np.int64]) -> pa.RecordBatch:
        """Return the key columns of ids that the dictionary has, a row per id."""
        if len(key_ids) and key_ids.max() >= len(self._columns):
            self._columns.add(pa.record_batch(self._keys.keys(len(self._columns))))
        return self._columns.take(key_ids)


class BatchProcessCalls(KeyedBatchProcessFunction.Context):
    """Calls a function for elements and timers; what both methods can ask.

    Parameters
    ----------
    function : KeyedBatchProcessFunction
        This run's own.
    schema : pyarrow.Schema
        Columns of the elements.
    key_columns : list of str
    max_parallelism : int
        Number of key groups.
    outputs : BatchProcessOutputs
        Takes what the function gives.

    Attributes
    ----------
    event_time_timers, processing_time_timers : KeyTimers
    cuts : BatchCuts
        Cuts of the batch, with what each key has seen.
    states : ColumnStates
    late : int
        Number of elements that the function has dropped as late.

    Raises
    ------
    ConfigurationError
        If the function declares an invalid delay.
    """

    def __init__(
        self,
        function: KeyedBatchProcessFunction,
        schema: pa.Schema,
        key_columns: list[str],
        max_parallelism: int,
        outputs: BatchProcessOutputs,
    ) -> None:
        self._function = function
        self._name = type(function).__qualname__
        self._schema, self._key_columns = schema, key_columns
        self._outputs = outputs
        self._keys = KeyDictionary(schema, key_columns, max_parallelism)
        self._known_keys = KnownKeys(self._keys)
        self._scratch = np.empty(0, np.intp)
        self._hashes = np.empty(0, np.int64)
        self.event_time_timers = KeyTimers()
        self.processing_time_timers = KeyTimers()
        self.cuts = BatchCuts(
            self.event_time_timers,
            self.processing_time_timers,
            one_element_per_key=bool(function.one_element_per_key),
            event_time_delay_ms=_delay(function, "min_event_time_delay_ms"),
            processing_time_delay_ms=_delay(function, "min_processing_time_delay_ms"),
        )
        self._timer_service = ColumnTimerService(
            self.event_time_timers, self.processing_time_timers, self.cuts
        )
        self.states = ColumnStates()
        self.late = 0

    def open(self, task: TaskInfo) -> None:
        """Open the function; a UserCodeError if it raises."""
        try:
            self._function.open(ColumnRuntimeContext(task, self.states, self._schema))
        except Exception as failure:
            raise self._failed("open", failure) from failure
        self.states.opened()

    def close(self) -> None:
        """Close the function; a UserCodeError if it raises."""
        try:
            self._function.close()
        except Exception as failure:
            raise self._failed("close", failure) from failure

    # ---- keys ----

    def key_ids(self, batch: pa.RecordBatch) -> Int64s:
        """Return the dense ids of the keys of a batch; new keys are known from now on.

        Raises
        ------
        DataError
            If a key is null.
        """
        ids = self._keys.ids(batch.select(self._key_columns)).astype(np.int64)
        n_keys = len(self._keys)
        self.cuts.grow(n_keys)
        self.states.grow(n_keys)
        if n_keys > len(self._scratch):
            self._scratch = np.empty(max(n_keys, 2 * len(self._scratch)), np.intp)
        return ids

    def key(self, key_id: int) -> Any:
        """Return a key, for messages."""
        return exact_keys(self.keys([key_id]), self._key_columns)[0]

    def key_groups(self, key_ids: Int64s) -> npt.NDArray[np.int32]:
        """Return the key groups of keys."""
        return self._keys.key_group(key_ids.astype(np.uint32))

    def key_hashes(self, key_ids: Int64s) -> Int64s:
        """Return 64 bits of each key that depend on its value alone, and not on when it came."""
        if self.n_keys > len(self._hashes):
            more = max(self.n_keys, 2 * len(self._hashes)) - len(self._hashes)
            self._hashes = np.concatenate((self._hashes, np.zeros(more, np.int64)))
        # A hash that is 0 is computed each time.
        missing = np.unique(key_ids[self._hashes[key_ids] == 0])
        if len(missing):
            keys = element_keys(self.keys(missing), self._key_columns, numbered_key_values)
            texts = (repr(key).encode() for key in keys)
            digests = b"".join(blake2b(text, digest_size=8).digest() for text in texts)
            self._hashes[missing] = np.frombuffer(digests, "<i8")
        hashes: Int64s = self._hashes[key_ids]
        return hashes

    @property
    def n_keys(self) -> int:
        """Return how many keys there are."""
        return len(self._keys)

    def known_keys(self, start: int, stop: int) -> pa.RecordBatch:
        """Return the key columns of a range of ids, which are not remembered."""
        return pa.record_batch(self._keys.keys(start, stop))

    def memory_bytes(self) -> int:
        """Return about how many bytes the keys take with their state and timers."""
        own = self._keys.memory_bytes() + self._known_keys.nbytes + self._scratch.nbytes + self._hashes.nbytes
        timers = self.event_time_timers.memory_bytes() + self.processing_time_timers.memory_bytes()
        return own + timers + self.cuts.memory_bytes() + self.states.memory_bytes()

    def timer_service(self) -> BatchTimerService:
        """Return the timers."""
        return self._timer_service

    def keys(self, key_ids: Any) -> pa.RecordBatch:
        """Return the key columns of keys."""
        ids = np.asarray(key_ids)
        if ids.size == 0:
            ids = np.empty(0, np.int64)
        if ids.ndim != 1 or ids.dtype.kind not in "iu" or ((ids < 0) | (ids >= len(self._keys))).any():
            raise DataError(
                f"there is no key of some of these ids: {shown(key_ids)}; there are {self.n_keys:,} keys"
            )
        return self._known_keys.take(ids.astype(np.int64))

    def drop_late(self, n_elements: int) -> None:
        """Count elements that are dropped as late."""
        self.late += n_elements

    # ---- calls ----

    def elements(
        self,
        batch: pa.RecordBatch,
        key_ids: Int64s,
        timestamps: Int64s,
        watermarks: Int64s,
        processing_times: Int64s,
    ) -> ElementColumns:
        """Return elements as the function gets them."""
        return ElementColumns(batch, key_ids, timestamps, watermarks, processing_times, self._scratch)

    def process_batch(self, elements: ElementColumns) -> None:
        """Call the function for elements, which `cuts` have taken.

        Raises
        ------
        UserCodeError
            If the function raises, or gives what does not fit; names keys and timestamps.
        """
        self._call(
            "process_batch", self._function.process_batch, elements, lambda: self._shown_elements(elements)
        )

    def on_timers(
        self, domain: TimeDomain, key_ids: Int64s, timestamps: Int64s, watermarks: Int64s, clocks: Int64s
    ) -> None:
        """Call the function for timers, one of each key, which `cuts` know of.

        Raises
        ------
        UserCodeError
            As of `process_batch`.
        """
        timers = FiredTimers(domain, key_ids, timestamps, watermarks, clocks, self.keys)
        self._call("on_timers", self._function.on_timers, timers, lambda: self._shown_timers(timers))

    def _call(
        self, name: str, method: Callable[[Any, Any], Any], subject: Any, described: Callable[[], str]
    ) -> None:
        try:
            given = method(subject, self)
            if given is not None:
                self._outputs.add_all(given, len(subject))
        except Exception as failure:
            raise UserCodeError(
                f"{self._name}.{name} failed at {described()}: {in_words(failure)}"
            ) from failure
        self.cuts.end_batch()

    def _failed(self, method: str, failure: Exception) -> UserCodeError:
        return UserCodeError(f"{self._name}.{method} failed: {in_words(failure)}")

    def _shown_elements(self, elements: ElementColumns) -> str:
        n_keys = len(elements.first_of_keys())
        return f"a batch of {len(elements):,} elements of {n_keys:,} keys, {self._shown_range(elements)}"

    def _shown_timers(self, timers: FiredTimers) -> str:
        domain = "event" if timers.time_domain is TimeDomain.EVENT_TIME else "processing"
        return f"a batch of {len(timers):,} {domain}-time timers, {self._shown_range(timers)}"

    def _shown_range(self, subject: ElementColumns | FiredTimers) -> str:
        first, last = exact_keys(self.keys(subject.key_ids[[0, -1]]), self._key_columns)
        times = subject.timestamps
        return (
            f"from the key {shown(first)} at {dated(times[0], ' ms')} to the key {shown(last)} at "
            f"{dated(times[-1], ' ms')}, with timestamps from {dated(int(times.min()))} to {dated(int(times.max()))}"
        )


def _delay(function: KeyedBatchProcessFunction, setting: str) -> int | None:
    value = getattr(function, setting)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not -(2**62) <= value <= 2**62:
        raise ConfigurationError(
            f"{type(function).__qualname__}.{setting} is a number of milliseconds as an int, or None, not {value!r}"
        )
    return int(value)
