"""The function over batches of elements of many keys, with timers and state as columns."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from flinkcore.datastream.functions.function import Function
from flinkcore.datastream.time_domain import TimeDomain
from flinkcore.datastream.timerservice import BatchTimerService

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

BatchResults: TypeAlias = Iterable[Any] | None
"""Results of a function over batches: batches of the main output, or ``(tag, batch)`` for a side output."""


class RowResults(NamedTuple):
    """Results of a function over batches that say which element or timer each is for; see ``elements.results(...)``.

    Attributes
    ----------
    batch
        Results, as a function may yield them.
    rows : int array (n_results,) or None
        Rows of the elements or timers, or None if each has one result.
    """

    batch: Any
    rows: Any


class _Batch(ABC):
    """Elements or timers of many keys."""

    @property
    @abstractmethod
    def key_ids(self) -> "npt.NDArray[np.int64]":
        """Dense id of each row's key (n_rows,)."""

    @property
    @abstractmethod
    def timestamps(self) -> "npt.NDArray[np.int64]":
        """Event time of each element, or the time each timer was registered for (n_rows,), in ms since the epoch."""

    @property
    @abstractmethod
    def watermarks(self) -> "npt.NDArray[np.int64]":
        """Watermark in force for each row (n_rows,), in ms since the epoch; -2**63 before the first one."""

    @property
    @abstractmethod
    def processing_times(self) -> "npt.NDArray[np.int64]":
        """Processing time of each row (n_rows,), in ms since the epoch: an element's arrival, or when a timer fires."""

    def __len__(self) -> int:
        return len(self.key_ids)

    def results(self, batch: Any, rows: Any = None) -> RowResults:
        """Return results that say which of these elements or timers each is for, to be yielded.

        They have the timestamps of these. Where another operator follows, all results must be given so, and for
        :meth:`LogStream.with_emitted_at` those of side outputs, too; elsewhere it makes no difference.

        Parameters
        ----------
        batch
            A ``pyarrow.RecordBatch`` or ``Table``, or a dict from column names to columns.
        rows : int array (n_results,), optional
            Row of the element or timer of each result; by default one result for each, in their order.
        """
        return RowResults(batch, rows)


class KeyedBatchProcessFunction(Function):
    """Processes the elements of a keyed stream as batches, and the timers that it registers for keys likewise.

    It stands between :class:`KeyedProcessFunction`, called for each element, and a function of your own in Cython. A
    batch has elements of many keys. Keys are numbered by **dense ids**, from 0 in order of first appearance in the
    subtask, and timers and state are indexed by them::

        class CountUntilQuiet(KeyedBatchProcessFunction):
            min_event_time_delay_ms = 3_000

            def open(self, runtime_context):
                self.counts = runtime_context.get_column_state("count", np.int64)

            def process_batch(self, elements, ctx):
                np.add.at(self.counts.array, elements.key_ids, 1)
                last = elements.last_of_keys()
                key_ids = elements.key_ids[last]
                ctx.timer_service().delete_event_time_timers(key_ids)
                ctx.timer_service().register_event_time_timers(key_ids, elements.timestamps[last] + 3_000)

            def on_timers(self, timers, ctx):
                yield {"user": timers.keys["user"], "count": self.counts[timers.key_ids]}
                self.counts.clear(timers.key_ids)

    **What is promised.** For each key, elements and timers come in the order in which a `KeyedProcessFunction` would
    get them, each with the same watermark and processing time, and *no timer of a key is due between two of its
    elements in one batch*. A function whose results for a key's elements in a batch are those it would have for them
    one by one therefore has the same results per key, whatever the batches are. In particular:

    * Event-time timers fire at the step of the watermark that reaches them, processing-time timers when the replay
      clock does, before the key's next element.
    * `on_timers` gets at most one timer per key at once: the first that is due. A timer that it registers for a time
      already reached fires next, in the same advance, and one that it deletes does not fire. A key with thousands of
      timers that are due together therefore takes as many calls, which other keys share.
    * Within a batch, elements are in the total order of the replay, and timers in the order in which they are due. From
      one batch to the next this holds for each key, not across keys: a key that must wait for a timer in the middle of
      a batch gets its later elements in one of the next batches, and other keys do not wait. So carry nothing over from
      one key to another.
    * How many elements a batch has, and which, is not promised. A batch may span many steps of the watermark.

    **Another operator after it** takes results in order: yield ``elements.results(batch, rows)`` or
    ``timers.results(batch, rows)``, with the row of the element or timer that each result is for, whose timestamp it
    then has. The function itself takes rows of logs.

    **What you must declare.** Which timers the elements of a batch will register is not known before the function is
    called. The class declares bounds as attributes, set in the class or in `__init__`:

    * `one_element_per_key`: no key comes twice in a batch, and every batch is ``state[key_ids] = f(state[key_ids])``.
      Always exact, nothing else to declare; slow where few keys have most of the events.
    * `min_event_time_delay_ms`, otherwise: an element with timestamp t, taken by itself, registers event-time timers
      only for t + `min_event_time_delay_ms` or later; it may be negative. As long as the watermark is below that, the
      key's elements share a batch. **It is a bound for the logic element by element**: a timer that one element of a
      key registers and the next one deletes counts, even if the batch never registers it. None, the default: timers of
      any time; elements of one key then share a batch as long as the watermark stays the same. If elements register no
      event-time timers, set it as high as you like.
    * `min_processing_time_delay_ms`: the same for processing-time timers, from the element's processing time. None:
      elements register none. `on_timers` may register any, whatever is declared.

    Timers are registered and deleted only for keys of the current batch. A timer earlier than declared is an error, as
    is one of another key; a bound that is violated only by timers that the batch left out goes unnoticed. Every key
    takes about 150 bytes, and its row of each state, until the end. Columns of elements and timers are read-only.

    Notes
    -----
    PyFlink has no counterpart; semantics are those of Flink's ``KeyedProcessFunction``, key by key.
    """

    one_element_per_key: bool = False
    min_event_time_delay_ms: int | None = None
    min_processing_time_delay_ms: int | None = None

    class ElementBatch(_Batch):
        """Elements of many keys, in the total order of the replay; valid during the call only."""

        @property
        @abstractmethod
        def batch(self) -> "pa.RecordBatch":
            """The columns of the stream."""

        @abstractmethod
        def first_of_keys(self) -> "npt.NDArray[np.intp]":
            """Return the row of each key's first element in the batch, ascending. O(n)."""

        @abstractmethod
        def last_of_keys(self) -> "npt.NDArray[np.intp]":
            """Return the row of each key's last element in the batch, ascending. O(n)."""

        @abstractmethod
        def grouped_by_key(self) -> "tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]":
            """Return the rows grouped by key, each group in order, and the offset of each group. O(n log n)."""

        def column(self, name: str) -> "pa.Array":
            """Return a column of the batch, or a nested field by its dotted name."""
            if "." not in name:
                return self.batch.column(name)
            from flinkcore._internal.arrow.nested_fields import field_values, nested_field

            found = nested_field(self.batch.schema, name)
            column = self.batch.column(name if found is None else found.column)
            return column if found is None else field_values(column, found.path)

        def __getitem__(self, name: str) -> "pa.Array":
            return self.column(name)

    class TimerBatch(_Batch):
        """Timers of one domain that fire, at most one per key, in the order in which they are due."""

        @property
        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Return whether they are event-time or processing-time timers."""

        @property
        @abstractmethod
        def keys(self) -> "pa.RecordBatch":
            """The key columns, a row per timer."""

    class Context(ABC):
        """The context of both methods; valid during the call only."""

        @abstractmethod
        def timer_service(self) -> BatchTimerService:
            """Return the service that registers and deletes timers."""

        @abstractmethod
        def keys(self, key_ids: Any) -> "pa.RecordBatch":
            """Return the key columns of dense ids, a row per id; DataError for an id that no key has."""

        @abstractmethod
        def drop_late(self, n_elements: int) -> None:
            """Count elements of the current batch that the function drops as late; the report has them."""

    @abstractmethod
    def process_batch(
        self, elements: "KeyedBatchProcessFunction.ElementBatch", ctx: "KeyedBatchProcessFunction.Context"
    ) -> BatchResults:
        """Process a batch of elements.

        Parameters
        ----------
        elements : ElementBatch
            Not empty.
        ctx : Context

        Returns
        -------
        iterable or None
            Yield batches, or return an iterable of them: a ``pyarrow.RecordBatch`` or ``Table``, or a dict from column
            names to equally long Arrow or numpy columns or lists; or ``elements.results(batch, rows)``. A pair of an
            `OutputTag` and a batch, or such results, goes to that side output.
        """

    def on_timers(
        self, timers: "KeyedBatchProcessFunction.TimerBatch", ctx: "KeyedBatchProcessFunction.Context"
    ) -> BatchResults:
        """Handle timers of many keys, at least one; results as of `process_batch`."""
        return None
