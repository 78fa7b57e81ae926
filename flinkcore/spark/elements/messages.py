"""Messages that the tasks of a job of single elements send to each other, in runs that are rows of a shuffle.

A row, sorted within its partition by target and first key::

    slot           | target          first_key     | payload
    ---------------+-------------------------------+-------------------------------------------
    where the      | the task that   of the first  | classes that are not importable, the end of
    shuffle puts   | it is for, or   message       | each message, and the messages, pickled one
    it             | the driver                    | by one

A task sends messages in the order of their keys. So each run is in order, and the reader merges the runs of a target.
"""

from __future__ import annotations

import pickle
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace
from io import BytesIO
from itertools import pairwise
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark import cloudpickle

from flinkcore.elements.arrivals.order_key import emission_key
from flinkcore.errors import InternalError, UserCodeError, in_words
from flinkcore.operators.records.shown_values import shown
from flinkcore.spark.exchange.row_format import RowFormat, row_values

RUNS: Final = RowFormat("slot int, target int, first_key binary, payload binary")
RUNS_ORDER: Final = ("target", "first_key")

PROGRAM: Final = -1
"""The target of elements that the program collects, and of lines that it prints."""

REPORTS: Final = -2
"""The target of the reports of tasks that have ended."""


class RunLimits(NamedTuple):
    """Sizes of runs of messages.

    Attributes
    ----------
    run_bytes : int
        A run ends when its messages have so many bytes.
    most_run_bytes : int
        Most bytes of a run: what a column of a batch can hold, less the room for ends of messages and classes.
    held_bytes : int
        A task gives its runs away when they have so many bytes; also most bytes of a batch of several runs.
    """

    run_bytes: int = 1 << 20
    most_run_bytes: int = 2**31 - 1 - (1 << 20)
    held_bytes: int = 8 << 20


LIMITS: Final = RunLimits()

Message = tuple[bytes, int, Any, int | None]
"""Key, kind, value and timestamp."""


@dataclass(frozen=True)
class RunRow:
    """A run of messages as a row of the shuffle.

    Attributes
    ----------
    target : int
    first_key : bytes
    payload : bytes
    """

    target: int
    first_key: bytes
    payload: bytes

    def messages(self) -> Iterator[Message]:
        """Yield the messages; each is unpickled when it is asked for.

        Raises
        ------
        UserCodeError
            If a value, or its class, cannot be unpickled in this process.
        """
        file = BytesIO(self.payload)
        classes, ends = pickle.load(file)
        for class_id, pickled in classes.items():
            if class_id not in _CLASSES:
                known = _tracked.get(class_id)
                # Unpickling a class that the process already has would reset its attributes.
                _CLASSES[class_id] = _read(pickled) if known is None else known
        packed = memoryview(self.payload)[file.tell() :]
        for start, end in pairwise([0, *ends]):
            yield _read(packed[start:end])


def _read(pickled: bytes | memoryview) -> Any:
    try:
        return pickle.loads(pickled)
    except Exception as failure:
        raise UserCodeError(
            f"an element that a task has sent cannot be unpickled where it is read: {type(failure).__name__}: "
            f"{failure}. Workers and the driver need the modules of its classes (send them to workers by "
            "spark.addArtifact('my_module.py', pyfile=True)), and __reduce__ or __setstate__ must work there"
        ) from failure


_tracked = cloudpickle.cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID
_CLASSES: dict[str, type] = {}
"""Classes that cannot be imported, by their ids in runs."""


def _known_class(class_id: str) -> type:
    return _CLASSES[class_id]


class _RunPickler(pickle.Pickler):
    """Writes messages; a class that the reader cannot import is sent with the run, once.

    Parameters
    ----------
    file : BytesIO
    class_ids : dict of type to str or None
        Ids of the classes that the writer has seen, shared by its runs; None for classes that can be imported.
    """

    def __init__(self, file: BytesIO, class_ids: dict[type, str | None]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._class_ids = class_ids
        self.classes: dict[str, type] = {}

    def reducer_override(self, value: Any) -> Any:
        """Return how a class is unpickled."""
        if not isinstance(value, type):
            return NotImplemented
        try:
            class_id = self._class_ids[value]
        except KeyError:
            class_id = self._class_ids[value] = None if _is_importable(value) else _class_id(value)
        if class_id is None:
            return NotImplemented
        self.classes[class_id] = value
        return _known_class, (class_id,)


def _class_id(found: type) -> str:
    """Return the id by which cloudpickle knows a class, in this process and where it is unpickled."""
    class_id: str = cloudpickle.cloudpickle._get_or_create_tracker_id(found)
    return class_id


def _is_importable(found: type) -> bool:
    try:
        return found.__module__ != "__main__" and pickle.loads(pickle.dumps(found)) is found
    except Exception:
        return False


class _ByValue:
    """A value that only cloudpickle can pickle, such as a function."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __reduce__(self) -> tuple[Any, ...]:
        return pickle.loads, (cloudpickle.dumps(self._value),)


class _Run:
    def __init__(self, first_key: bytes, class_ids: dict[type, str | None]) -> None:
        self.first_key = first_key
        self._file = BytesIO()
        self._pickler = _RunPickler(self._file, class_ids)
        self._ends = array("Q")
        self.nbytes = 0

    def add(self, message: Message) -> None:
        pickler = self._pickler
        try:
            pickler.dump(message)
        except Exception:
            self._add_by_value(message)
        pickler.clear_memo()  # objects may change after they were sent
        self.nbytes = end = self._file.tell()
        self._ends.append(end)

    def _add_by_value(self, message: Message) -> None:
        key, kind, value, timestamp = message
        self._file.seek(self.nbytes)
        self._file.truncate()
        self._pickler.clear_memo()
        try:
            self._pickler.dump((key, kind, _ByValue(value), timestamp))
        except Exception as failure:
            self._file.seek(self.nbytes)
            self._file.truncate()
            raise UserCodeError(
                f"the element {shown(value)} cannot be sent to another task: {in_words(failure)}. Let "
                "elements be values that pickle can write"
            ) from failure

    def payload(self) -> bytes:
        classes = {class_id: cloudpickle.dumps(found) for class_id, found in self._pickler.classes.items()}
        header = pickle.dumps((classes, self._ends), pickle.HIGHEST_PROTOCOL)
        return header + self._file.getbuffer()


class MessageWriter:
    """Packs the messages that a task sends into rows of the shuffle.

    Parameters
    ----------
    give : callable
        Takes the rows whenever there are `held_bytes` of them.
    limits : RunLimits

    Attributes
    ----------
    position : bytes
        Key of the message or timer that the task is processing.
    """

    def __init__(self, give: Callable[[list[RunRow]], None], limits: RunLimits = LIMITS) -> None:
        self.position = b""
        self._give = give
        self._limits = limits
        self._sent = 0
        self._runs: dict[int, _Run] = {}
        self._complete: list[RunRow] = []
        self._held_bytes = 0
        self._class_ids: dict[type, str | None] = {}

    def move_to(self, position: bytes) -> None:
        """Set the key of what the task is processing."""
        self.position = position

    def send(self, target: int, kind: int, value: Any, timestamp: int | None = None) -> None:
        """Send a message.

        Raises
        ------
        UserCodeError
            If the value cannot be pickled, or is larger than a row of Spark's shuffle.
        """
        self._sent = sent = self._sent + 1
        key = emission_key(self.position, sent)
        run = self._runs.get(target)
        if run is None:
            run = self._runs[target] = _Run(key, self._class_ids)
        before = run.nbytes
        run.add((key, kind, value, timestamp))
        limits = self._limits
        if run.nbytes > limits.most_run_bytes:
            raise UserCodeError(
                f"the element {shown(value)} cannot be sent to another task: pickled it has more than "
                f"{limits.most_run_bytes - limits.run_bytes:,} bytes. Send it in pieces"
            )
        self._held_bytes += run.nbytes - before
        if run.nbytes >= limits.run_bytes:
            self._end_run(target)
        if self._held_bytes >= limits.held_bytes:
            self._give(self.take())

    def _end_run(self, target: int) -> None:
        run = self._runs.pop(target)
        self._complete.append(RunRow(target, run.first_key, run.payload()))

    def take(self) -> list[RunRow]:
        """Return the rows with all messages since the last time."""
        for target in list(self._runs):
            self._end_run(target)
        rows, self._complete, self._held_bytes = self._complete, [], 0
        return rows


def pieces(rows: Sequence[RunRow], most_bytes: int = LIMITS.held_bytes) -> Iterator[Sequence[RunRow]]:
    """Divide rows into pieces of at most so many bytes; a larger row is a piece by itself."""
    start = n_bytes = 0
    for at, row in enumerate(rows):
        if at > start and n_bytes + len(row.payload) > most_bytes:
            yield rows[start:at]
            start, n_bytes = at, 0
        n_bytes += len(row.payload)
    if start < len(rows):
        yield rows[start:]


def run_batch(rows: Sequence[RunRow], slots: list[int]) -> pa.RecordBatch:
    """Return rows of the shuffle as a batch, each with its slot."""
    return RUNS.batch(
        slots, [row.target for row in rows], [row.first_key for row in rows], [row.payload for row in rows]
    )


def read_runs(batches: Iterator[pa.RecordBatch]) -> Iterator[RunRow]:
    """Return the rows of the shuffle, one by one."""
    return (RunRow(*values) for values in row_values(batches, "target", "first_key", "payload"))


def merged(rows: Iterator[RunRow]) -> Iterator[Message]:
    """Yield the messages of runs, merged by key.

    Parameters
    ----------
    rows : iterator of RunRow
        In the order of their first keys; runs that overlap are held in memory.

    Raises
    ------
    InternalError
        If the rows are not in order.
    """
    rows = _in_order(rows)
    heap: list[tuple[bytes, Message, Iterator[Message]]] = []
    following = next(rows, None)
    while True:
        while following is not None and (not heap or following.first_key < heap[0][0]):
            messages = following.messages()
            first = next(messages)
            heappush(heap, (first[0], first, messages))
            following = next(rows, None)
        if not heap:
            return
        if len(heap) == 1:
            _, message, messages = heap.pop()
            bound = None if following is None else following.first_key
            yield message
            for message in messages:
                if bound is not None and message[0] > bound:
                    heap.append((message[0], message, messages))
                    break
                yield message
            continue
        _, message, messages = heap[0]
        yield message
        after = next(messages, None)
        if after is None:
            heappop(heap)
        else:
            heapreplace(heap, (after[0], after, messages))


def _in_order(rows: Iterator[RunRow]) -> Iterator[RunRow]:
    before = b""
    for row in rows:
        if row.first_key < before:
            raise InternalError(f"runs of messages to task {row.target} are not in order")
        before = row.first_key
        yield row
