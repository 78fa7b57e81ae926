"""Functions over batches, and the same logic element by element."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from models.process_replay import PlainContext, Scripted

from flinkcore.common import OutputTag
from flinkcore.datastream import KeyedProcessFunction, RuntimeContext, TimeDomain
from flinkcore.datastream.functions import KeyedBatchProcessFunction
from flinkcore.datastream.state import ValueStateDescriptor


class RowsOfBatches(PlainContext, KeyedBatchProcessFunction):
    """Calls a function that knows nothing of batches for each of their elements and timers, in order.

    Its states live in columns of Python objects, its timers are registered and deleted one by one.
    """

    def __init__(self, function: KeyedProcessFunction, columns: list[str]) -> None:
        self.function = function
        self.columns = columns
        self.batches: list[int] = []

    def open(self, runtime_context: Any) -> None:
        self.runtime_context = runtime_context
        self.function.open(self)  # type: ignore[arg-type]

    def get_state(self, descriptor: Any) -> Any:
        return ObjectState(self, self.runtime_context.get_column_state(descriptor.name, object, None))

    get_list_state = get_state

    def process_batch(self, elements: Any, ctx: Any) -> Iterator[Any]:
        if self.one_element_per_key:
            assert len(set(elements.key_ids.tolist())) == len(elements)
        self.service = ctx.timer_service()
        rows = elements.batch.to_pylist()
        keys = ctx.keys(elements.key_ids)["user"].to_pylist()
        for row, value in enumerate(rows):
            self._at(elements, row, keys[row])
            yield from self._given(
                self.function.process_element(Value(value), self),  # type: ignore[arg-type]
                self.subject_timestamp,
            )

    def on_timers(self, timers: Any, ctx: Any) -> Iterator[Any]:
        assert len(set(timers.key_ids.tolist())) == len(timers)
        self.service, self.domain = ctx.timer_service(), timers.time_domain
        keys = timers.keys["user"].to_pylist()
        for row in range(len(timers)):
            self._at(timers, row, keys[row])
            timestamp = self.subject_timestamp
            has_time = self.domain is TimeDomain.EVENT_TIME
            given = self.function.on_timer(timestamp, self)  # type: ignore[arg-type]
            yield from self._given(given, timestamp if has_time else None)

    def _at(self, subject: Any, row: int, key: Any) -> None:
        self.key, self.key_id = key, int(subject.key_ids[row])
        self.subject_timestamp = int(subject.timestamps[row])
        self.watermark, self.now = int(subject.watermarks[row]), int(subject.processing_times[row])

    def _given(self, results: Any, timestamp: int | None) -> Iterator[Any]:
        for result in results or ():
            if isinstance(result[0], OutputTag):
                tag, values = result
                columns = dict(zip(["user", "number"], values, strict=True))
                time = self.subject_timestamp
                yield tag, {name: [value] for name, value in (columns | {"record_time": time}).items()}
            else:
                values = dict(zip(self.columns, [*result, timestamp], strict=True))
                yield {name: [value] for name, value in values.items()}

    # What the function asks of its contexts.

    def register_event_time_timer(self, timestamp: int) -> None:
        self.service.register_event_time_timers([self.key_id], [timestamp])

    def register_processing_time_timer(self, timestamp: int) -> None:
        self.service.register_processing_time_timers([self.key_id], timestamp)

    def delete_event_time_timer(self, timestamp: int) -> None:
        self.service.delete_event_time_timers([self.key_id], [timestamp])

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self.service.delete_processing_time_timers([self.key_id], timestamp)


class Value:
    """A row by attribute."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self.__dict__ = columns


class ObjectState:
    """A value or a list of the key at hand, in a column of objects."""

    def __init__(self, function: RowsOfBatches, column: Any) -> None:
        self.function = function
        self.column = column

    def value(self) -> Any:
        return self.column.array[self.function.key_id]

    get = value

    def update(self, value: Any) -> None:
        self.column.array[self.function.key_id] = value

    def add(self, value: Any) -> None:
        self.update([*(self.value() or []), value])

    def clear(self) -> None:
        self.column.clear([self.function.key_id])


def scripted_batches(columns: list[str]) -> RowsOfBatches:
    """`Scripted`, over batches."""
    return RowsOfBatches(Scripted(), columns)


class CountUntilQuiet(KeyedProcessFunction):
    """Counts the elements of a key until none has come for a while, by one timer that each element moves."""

    def __init__(self, gap_ms: int) -> None:
        self.gap_ms = gap_ms

    def open(self, runtime_context: RuntimeContext) -> None:
        self.held = runtime_context.get_state(ValueStateDescriptor("held"))

    def process_element(self, value: Any, ctx: Any) -> None:
        count, timer_ms = self.held.value() or (0, None)
        if timer_ms is not None:
            ctx.timer_service().delete_event_time_timer(timer_ms)
        timer_ms = ctx.timestamp() + self.gap_ms
        ctx.timer_service().register_event_time_timer(timer_ms)
        self.held.update((count + 1, timer_ms))

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        times = ctx.timer_service().current_watermark(), ctx.timer_service().current_processing_time()
        yield ctx.get_current_key(), timestamp, self.held.value()[0], *times
        self.held.clear()


class CountBatchesUntilQuiet(KeyedBatchProcessFunction):
    """The same, of which the elements of a key in a batch leave the last one's timer only."""

    def __init__(self, gap_ms: int) -> None:
        self.gap_ms = self.min_event_time_delay_ms = gap_ms

    def open(self, runtime_context: Any) -> None:
        self.counts = runtime_context.get_column_state("count", np.int64)

    def process_batch(self, elements: Any, ctx: Any) -> None:
        np.add.at(self.counts.array, elements.key_ids, 1)
        last = elements.last_of_keys()
        ctx.timer_service().delete_event_time_timers(elements.key_ids[last])
        ctx.timer_service().register_event_time_timers(
            elements.key_ids[last], elements.timestamps[last] + self.gap_ms
        )

    def on_timers(self, timers: Any, ctx: Any) -> Iterator[Any]:
        yield {
            "user": timers.keys["user"],
            "timer": timers.timestamps,
            "count": self.counts[timers.key_ids],
            "watermark": timers.watermarks,
            "clock": timers.processing_times,
        }
        self.counts.clear(timers.key_ids)
