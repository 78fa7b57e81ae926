"""The timers of an operator: services by name, each with two queues, and the watermark and clock that fire them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from flinkcore._internal.show.times import dated
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore._native.timers import CurrentKeyTimers, TimerColumns, TimerHeap
from flinkcore.common.timestamp_assigner import as_timestamp
from flinkcore.errors import DataError, LifecycleError
from flinkcore.operators.keys.dense_ids import FIRST_SWEEP, DenseIds
from flinkcore.operators.keys.key_context import NO_KEY, KeyContext
from flinkcore.operators.records.output import OutputFullError
from flinkcore.operators.timers.internal_timers_snapshot import InternalTimersSnapshot
from flinkcore.operators.timers.processing_time import ProcessingTimeService, ScheduledTimer
from flinkcore.operators.timers.unending_timers import UnendingTimers

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class InternalTimer(NamedTuple):
    """A timer that fires.

    Parameters
    ----------
    timestamp_ms : int
        The time that it was registered for, in ms since the epoch.
    key : object
        The key that it belongs to, which is the current key.
    namespace : object
        Such as a window; None is Flink's VoidNamespace.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.InternalTimer``.
    """

    timestamp_ms: int
    key: Any
    namespace: Any


class Triggerable(Protocol):
    """The operator that timers call when they fire, with the timer's key as the current key.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.Triggerable``.
    """

    def on_event_time(self, timer: InternalTimer) -> None:
        """Handle an event-time timer."""

    def on_processing_time(self, timer: InternalTimer) -> None:
        """Handle a processing-time timer."""


VOID_NAMESPACE_ID = 0
"""The first id, which CurrentKeyTimers takes where none is given; always that of the namespace None."""

NO_NAMESPACE = -1
"""The id of a namespace that no timer has."""


class InternalTimerService:
    """Event-time and processing-time timers by key and namespace.

    A timer fires with its key as the current key: event-time timers at :meth:`advance_watermark`, in order of
    their timestamps, equal ones in order of registration; processing-time timers likewise when the clock reaches
    them. A timer that a callback registers and that is already due fires in the same advance, even if it is earlier
    than the one that is firing, or equal to it. A timer registered at or below the watermark outside of a callback
    fires at the next advance, even to the same watermark.

    At most one timer is registered at the clock, for the earliest processing-time timer. An earlier timer replaces it;
    if its timer is deleted, it stays, fires nothing, and is registered again.

    Parameters
    ----------
    name : str
    key_context : KeyContext
        Timers are registered for its current key.
    processing_time_service : ProcessingTimeService
    set_current_key_id : callable, optional
        Makes a timer's key the current one: that of the operator's state backend, by default of the key context.
    first_namespace_sweep : int
        The number of namespaces from which on unused ones are forgotten.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.InternalTimerServiceImpl``. Timestamps are any integers of
    64 bits, including negative ones. A processing-time timer at 2**63 - 1 registers none at the clock, as in Flink:
    alone, it never fires. Flink leaves the order of equal timestamps open.
    """

    def __init__(
        self,
        name: str,
        key_context: KeyContext,
        processing_time_service: ProcessingTimeService,
        set_current_key_id: Callable[[int], None] | None = None,
        first_namespace_sweep: int = FIRST_SWEEP,
    ) -> None:
        self._name = name
        self._key_context = key_context
        self._processing_time_service = processing_time_service
        self._set_current_key_id = set_current_key_id or key_context.set_current_key_id
        self._current_watermark = MIN_TIMESTAMP
        self._event_time_timers = TimerHeap(key_context.max_parallelism, key_context.key_group_range)
        self._processing_time_timers = TimerHeap(key_context.max_parallelism, key_context.key_group_range)
        self._namespaces = DenseIds(first_namespace_sweep)
        self._namespaces.add_holder(lambda: [VOID_NAMESPACE_ID])
        self._namespaces.id_of(None)
        self._namespace_ids = self._namespaces.ids
        self._event_time = CurrentKeyTimers(self._event_time_timers, key_context, self._checked)
        self._processing_time = CurrentKeyTimers(self._processing_time_timers, key_context, self._checked)
        self._triggerable: Triggerable | None = None
        self._next_timer: ScheduledTimer | None = None
        self._fired_event_time_timers = 0
        self._fired_processing_time_timers = 0
        for timers in (self._event_time_timers, self._processing_time_timers):
            key_context.add_holder(_ids_in(timers, "keys"))
            self._namespaces.add_holder(_ids_in(timers, "namespaces"))

    @property
    def name(self) -> str:
        """The name of the service, unique in its operator."""
        return self._name

    def start(self, triggerable: Triggerable) -> None:
        """Let timers call an operator, and register the clock's timer for restored ones.

        Has no effect if the service was started before: the first operator stays.

        Notes
        -----
        Flink's ``startTimerService``.
        """
        if self._triggerable is not None:
            return
        self._triggerable = triggerable
        self._set_clock_for_head()

    def current_processing_time(self) -> int:
        """Return the processing time, in ms since the epoch."""
        return self._processing_time_service.current_processing_time()

    def current_watermark(self) -> int:
        """Return the watermark of the last advance or of the restore, in ms since the epoch; -2**63 at first."""
        return self._current_watermark

    # ---- timers of the current key ----

    @property
    def event_time_timers(self) -> CurrentKeyTimers:
        """The current key's event-time timers, by ids of namespaces; that of the void namespace is 0."""
        return self._event_time

    def register_event_time_timer(self, namespace: Hashable, timestamp_ms: int) -> None:
        """Register an event-time timer of the current key; an equal one is registered once.

        Parameters
        ----------
        namespace : object
            Hashable; None is the void namespace.
        timestamp_ms : int
            In ms since the epoch.

        Raises
        ------
        LifecycleError
            If there is no current key.
        DataError
            If the timestamp is not an integer of 64 bits.
        """
        namespace_id = self._namespace_ids.get(namespace)
        if namespace_id is None:
            namespace_id = self._namespaces.id_of(namespace)
        self._event_time.add(timestamp_ms, namespace_id)

    def register_processing_time_timer(self, namespace: Hashable, timestamp_ms: int) -> None:
        """Register a processing-time timer; parameters and errors as of :meth:`register_event_time_timer`.

        A timer at a time that has passed fires when the clock next runs its timers.
        """
        namespace_id = self._namespace_ids.get(namespace)
        if namespace_id is None:
            namespace_id = self._namespaces.id_of(namespace)
        is_head = self._processing_time.add(timestamp_ms, namespace_id)
        if is_head and timestamp_ms < MAX_TIMESTAMP:
            if self._next_timer is not None:
                self._next_timer.cancel()
            self._next_timer = self._processing_time_service.register_timer(
                index(timestamp_ms), self._on_processing_time
            )

    def delete_event_time_timer(self, namespace: Hashable, timestamp_ms: int) -> None:
        """Delete an event-time timer of the current key, if there is one; see :meth:`register_event_time_timer`."""
        self._delete(self._event_time, namespace, timestamp_ms)

    def delete_processing_time_timer(self, namespace: Hashable, timestamp_ms: int) -> None:
        """Delete a processing-time timer of the current key, if there is one; see :meth:`register_event_time_timer`."""
        self._delete(self._processing_time, namespace, timestamp_ms)

    def _delete(self, timers: CurrentKeyTimers, namespace: Hashable, timestamp_ms: int) -> None:
        namespace_id = self._namespace_ids.get(namespace)
        timers.remove(timestamp_ms, NO_NAMESPACE if namespace_id is None else namespace_id)

    def _checked(self, timestamp_ms: Any) -> int:
        if self._key_context.current_key_id == NO_KEY:
            raise LifecycleError(
                f"the timer at {timestamp_ms!r} has no key. Register and delete timers of a keyed stream only, while "
                "an element or a timer is being processed"
            )
        timestamp = as_timestamp(timestamp_ms)
        if timestamp is None:
            raise DataError(
                f"the timer at {timestamp_ms!r} of the key {self._key_context.current_key!r}: its time is an int of "
                "64 bits, in milliseconds since the epoch"
            )
        return timestamp

    # ---- firing ----

    def advance_watermark(self, watermark_ms: int) -> None:
        """Set the watermark, and fire all event-time timers at or below it.

        If the watermark goes back, nothing fires.

        Raises
        ------
        LifecycleError
            If a timer is due before the service was started.
        UserCodeError
            If the watermark is the maximum, and callbacks register timers without end.
        """
        self._current_watermark = watermark_ms
        at_end = UnendingTimers(len(self._event_time_timers)) if watermark_ms == MAX_TIMESTAMP else None
        self._fire_event_time_timers(watermark_ms, at_end)

    def end_key(self) -> None:
        """Fire all timers, which are those of one key, at the end of its elements in the execution mode BATCH.

        The watermark is the maximum meanwhile, and the minimum again for the next key. Event-time timers fire first,
        then those of processing time. Timers that callbacks register are dropped.

        Notes
        -----
        Flink's ``BatchExecutionInternalTimeService.setCurrentKey``.
        """
        if self._next_timer is not None:
            self._next_timer.cancel()
            self._next_timer = None
        if not (len(self._event_time_timers) or len(self._processing_time_timers)):
            return
        self._current_watermark = MAX_TIMESTAMP
        self._event_time.drops_new = self._processing_time.drops_new = True
        self._fire_event_time_timers(MAX_TIMESTAMP, None)
        self._fire_processing_time_timers(MAX_TIMESTAMP)
        self._event_time.drops_new = self._processing_time.drops_new = False
        self._current_watermark = MIN_TIMESTAMP

    def _fire_event_time_timers(self, watermark_ms: int, at_end: UnendingTimers | None) -> None:
        poll_due = self._event_time_timers.poll_due
        timer = poll_due(watermark_ms)
        if timer is None:
            return
        fire = self._started().on_event_time
        set_current_key_id = self._set_current_key_id
        namespaces = self._namespaces.objects
        try:
            while timer is not None:
                self._fired_event_time_timers += 1
                timestamp_ms, key_id, _, namespace_id = timer
                set_current_key_id(key_id)
                key = self._key_context.current_key
                if at_end is not None:
                    at_end.count(key_id, key, timestamp_ms)
                fire(InternalTimer(timestamp_ms, key, namespaces[namespace_id]))
                timer = poll_due(watermark_ms)
        except OutputFullError as full:
            full.then(partial(self._fire_event_time_timers, watermark_ms, at_end))
            raise

    def _on_processing_time(self, time_ms: int) -> None:
        # This timer has fired and cannot be cancelled; a callback may register the next one.
        self._next_timer = None
        self._fire_processing_time_timers(time_ms)

    def _fire_processing_time_timers(self, time_ms: int) -> None:
        fire = self._started().on_processing_time
        namespaces = self._namespaces.objects
        try:
            while (timer := self._processing_time_timers.poll_due(time_ms)) is not None:
                self._fired_processing_time_timers += 1
                timestamp_ms, key_id, _, namespace_id = timer
                self._set_current_key_id(key_id)
                fire(InternalTimer(timestamp_ms, self._key_context.current_key, namespaces[namespace_id]))
        except OutputFullError as full:
            full.then(partial(self._fire_processing_time_timers, time_ms))
            raise
        if self._next_timer is None:
            self._set_clock_for_head()

    def _started(self) -> Triggerable:
        if self._triggerable is None:
            raise LifecycleError(
                f"timers named {self._name!r} are due that no operator has asked for: they were restored from a "
                "snapshot of another operator, or the service was not started"
            )
        return self._triggerable

    def _set_clock_for_head(self) -> None:
        head = self._processing_time_timers.peek()
        if head is not None:
            self._next_timer = self._processing_time_service.register_timer(
                head.timestamp_ms, self._on_processing_time
            )

    # ---- all timers ----

    def next_event_time(self) -> int | None:
        """Return the time of the earliest event-time timer, in ms since the epoch, or None. O(1)."""
        head = self._event_time_timers.peek()
        return None if head is None else head.timestamp_ms

    @property
    def fired_event_time_timers(self) -> int:
        """The number of event-time timers that have fired."""
        return self._fired_event_time_timers

    @property
    def fired_processing_time_timers(self) -> int:
        """The number of processing-time timers that have fired."""
        return self._fired_processing_time_timers

    def num_event_time_timers(self, namespace: Hashable = ...) -> int:
        """Return the number of event-time timers; of one namespace, if it is given, in O(n)."""
        return self._count(self._event_time_timers, namespace)

    def num_processing_time_timers(self, namespace: Hashable = ...) -> int:
        """Return the number of processing-time timers; of one namespace, if it is given, in O(n)."""
        return self._count(self._processing_time_timers, namespace)

    def _count(self, timers: TimerHeap, namespace: Hashable) -> int:
        if namespace is ...:
            return len(timers)
        namespace_id = self._namespace_ids.get(namespace)
        return 0 if namespace_id is None else int((timers.timers().namespaces == namespace_id).sum())

    def num_event_time_timers_by_namespace(self) -> dict[Hashable, int]:
        """Return the number of event-time timers by namespace; O(n log n)."""
        import numpy as np

        ids, counts = np.unique(self._event_time_timers.timers().namespaces, return_counts=True)
        namespaces = self._namespaces.objects
        return {namespaces[id_]: count for id_, count in zip(ids.tolist(), counts.tolist(), strict=True)}

    def for_each_event_time_timer(self, consumer: Callable[[Any, int], None]) -> None:
        """Call a function with namespace and timestamp of every event-time timer, with its key as the current key.

        Timers come in order of registration. The function may register and delete timers, and does not see the changes.
        """
        self._for_each(self._event_time_timers, consumer)

    def for_each_processing_time_timer(self, consumer: Callable[[Any, int], None]) -> None:
        """Call a function for every processing-time timer, as :meth:`for_each_event_time_timer`."""
        self._for_each(self._processing_time_timers, consumer)

    def _for_each(self, timers: TimerHeap, consumer: Callable[[Any, int], None]) -> None:
        namespaces, keys = self._namespaces.objects, self._key_context
        found = [
            (timer.timestamp_ms, keys.key_of(timer.key), namespaces[timer.namespace]) for timer in timers
        ]
        for timestamp_ms, key, namespace in found:
            keys.set_current_key(key)
            consumer(namespace, timestamp_ms)

    # ---- snapshots ----

    def snapshot(self, key_group_range: tuple[int, int] | None = None) -> InternalTimersSnapshot:
        """Return the timers of a range of key groups; the service keeps them.

        Parameters
        ----------
        key_group_range : (int, int), optional
            First and last key group, inclusive, within the operator's; by default all.

        Raises
        ------
        ConfigurationError
            If the range is not within the operator's.

        Notes
        -----
        Flink's ``snapshotTimersForKeyGroup``.
        """
        return InternalTimersSnapshot(
            self._key_context.keys_by_id.copy(),
            self._namespaces.objects.copy(),
            self._event_time_timers.timers(key_group_range),
            self._processing_time_timers.timers(key_group_range),
        ).with_used_names()

    def restore(self, snapshot: InternalTimersSnapshot, watermark_ms: int = MIN_TIMESTAMP) -> None:
        """Restore the timers of a snapshot that belong to this operator's key groups; before `start`.

        Parameters
        ----------
        snapshot : InternalTimersSnapshot
            Snapshot of any parallelism, but of the same max_parallelism; several can be restored.
        watermark_ms : int
            The current watermark until the next advance, in ms since the epoch.

        Raises
        ------
        LifecycleError
            If the service was started.
        DataError
            If a key group is not below max_parallelism or is not that of its key, or a timer is there twice.

        Notes
        -----
        Flink's ``restoreTimersForKeyGroup``.
        """
        if self._triggerable is not None:
            raise LifecycleError(
                f"timers named {self._name!r} are restored before the service is started, not after"
            )
        import pyarrow as pa

        self._refuse_impossible_key_groups(snapshot)
        self._current_watermark = watermark_ms
        own = snapshot.of_key_groups(*self._key_context.key_group_range)
        key_groups = _key_groups(own)
        if (key_groups == NO_KEY).any():
            own = own.with_used_names()
            key_groups = _key_groups(own)
        key_ids = self._key_context.restored_key_ids(own.keys, key_groups.tolist())
        namespace_ids = self._namespaces.ids_of(own.namespaces)
        for heap, timers in (
            (self._event_time_timers, own.event_time_timers),
            (self._processing_time_timers, own.processing_time_timers),
        ):
            _refuse_several_key_groups(own.keys, key_groups, timers)
            known = pa.record_batch(
                {
                    "timestamp_ms": timers.timestamps_ms,
                    "key": key_ids[timers.keys],
                    "key_group": timers.key_groups,
                    "namespace": namespace_ids[timers.namespaces],
                }
            )
            if pa.array(heap.register(known)).false_count:
                _refuse_repeated(own.keys, timers)

    def _check(self) -> None:
        """Assert every invariant."""
        self._event_time_timers._check()
        self._processing_time_timers._check()
        self._namespaces._check()
        self._key_context._check()

    def _refuse_impossible_key_groups(self, snapshot: InternalTimersSnapshot) -> None:
        import numpy as np

        max_parallelism = self._key_context.max_parallelism
        for timers in (snapshot.event_time_timers, snapshot.processing_time_timers):
            groups = timers.key_groups
            if len(groups) and not 0 <= groups.min() <= groups.max() < max_parallelism:
                row = int(np.argmax((groups < 0) | (groups >= max_parallelism)))
                raise DataError(
                    f"a timer of the snapshot, of the key {snapshot.keys[timers.keys[row]]!r}, is in key group "
                    f"{groups[row]}, but max_parallelism is {max_parallelism}; restore with the max_parallelism that "
                    "the snapshot was taken with"
                )


def _refuse_repeated(keys: Sequence[Hashable], timers: TimerColumns) -> None:
    import numpy as np

    rows = np.stack((timers.keys, timers.namespaces, timers.timestamps_ms), axis=1)
    found, counts = np.unique(rows, axis=0, return_counts=True)
    if len(found) < len(rows):
        key, _, timestamp_ms = found[int(np.argmax(counts > 1))].tolist()
        raise DataError(
            f"the snapshot has a timer twice: of the key {keys[key]!r}, at {dated(timestamp_ms, ' ms')}"
        )


def _refuse_several_key_groups(
    keys: Sequence[Hashable], key_groups: npt.NDArray[np.int32], timers: TimerColumns
) -> None:
    others = timers.key_groups != key_groups[timers.keys]
    if others.any():
        row = int(others.argmax())
        key = timers.keys[row]
        raise DataError(
            f"timers of the key {keys[key]!r} of the snapshot are in the key groups {key_groups[key]} and "
            f"{timers.key_groups[row]}"
        )


def _key_groups(snapshot: InternalTimersSnapshot) -> npt.NDArray[np.int32]:
    """Return the key group of every key, `(n_keys,)`; NO_KEY if the key has no timer."""
    import numpy as np

    key_groups = np.full(len(snapshot.keys), NO_KEY, np.int32)
    for timers in (snapshot.event_time_timers, snapshot.processing_time_timers):
        key_groups[timers.keys] = timers.key_groups
    return key_groups


def _ids_in(timers: TimerHeap, column: str) -> Callable[[], npt.ArrayLike]:
    def held_ids() -> npt.ArrayLike:
        columns: TimerColumns = timers.timers()
        held: npt.ArrayLike = getattr(columns, column)
        return held

    return held_ids


class InternalTimeServiceManager:
    """The timer services of an operator by name, with one watermark and one clock.

    Parameters
    ----------
    key_context : KeyContext
    processing_time_service : ProcessingTimeService
    set_current_key_id : callable, optional
        As of :class:`InternalTimerService`.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.InternalTimeServiceManagerImpl``.
    """

    def __init__(
        self,
        key_context: KeyContext,
        processing_time_service: ProcessingTimeService,
        set_current_key_id: Callable[[int], None] | None = None,
    ) -> None:
        self._key_context = key_context
        self._processing_time_service = processing_time_service
        self._set_current_key_id = set_current_key_id
        self._services: dict[str, InternalTimerService] = {}

    def get_internal_timer_service(self, name: str, triggerable: Triggerable) -> InternalTimerService:
        """Return the started service of a name; the first call creates it.

        Parameters
        ----------
        name : str
        triggerable : Triggerable
            The operator that its timers call; that of the first call stays.

        Returns
        -------
        InternalTimerService
            The same object for the same name, with the timers restored under it.
        """
        service = self._service(name)
        service.start(triggerable)
        return service

    def advance_watermark(self, watermark_ms: int) -> None:
        """Advance all services in the order of their creation, each until none of its timers is due."""
        self._advance_each(iter(self._services.values()), watermark_ms)

    def _advance_each(self, services: Iterator[InternalTimerService], watermark_ms: int) -> None:
        try:
            for service in services:
                service.advance_watermark(watermark_ms)
        except OutputFullError as full:
            full.then(partial(self._advance_each, services, watermark_ms))
            raise

    def end_key(self) -> None:
        """Fire the timers of a key at the end of its elements in the execution mode BATCH."""
        for service in self._services.values():
            service.end_key()

    def num_event_time_timers(self) -> int:
        """Return the number of event-time timers of all services."""
        return sum(service.num_event_time_timers() for service in self._services.values())

    def num_processing_time_timers(self) -> int:
        """Return the number of processing-time timers of all services."""
        return sum(service.num_processing_time_timers() for service in self._services.values())

    def next_event_time(self) -> int | None:
        """Return the time of the earliest event-time timer in ms since the epoch, or None."""
        times = [
            time for service in self._services.values() if (time := service.next_event_time()) is not None
        ]
        return min(times, default=None)

    def fired_event_time_timers(self) -> int:
        """Return the number of event-time timers of all services that have fired."""
        return sum(service.fired_event_time_timers for service in self._services.values())

    def fired_processing_time_timers(self) -> int:
        """Return the number of processing-time timers of all services that have fired."""
        return sum(service.fired_processing_time_timers for service in self._services.values())

    def snapshot(self, key_group_range: tuple[int, int] | None = None) -> dict[str, InternalTimersSnapshot]:
        """Return the timers of a range of key groups, by name of the service.

        Parameters
        ----------
        key_group_range : (int, int), optional
            First and last key group, inclusive, within the operator's; by default all.
        """
        return {name: service.snapshot(key_group_range) for name, service in self._services.items()}

    def restore(
        self, snapshot: Mapping[str, InternalTimersSnapshot], watermark_ms: int = MIN_TIMESTAMP
    ) -> None:
        """Restore the timers of a snapshot that belong to this operator's key groups.

        Called before the services are asked for, once for each snapshot: after a change of parallelism there may be
        several.

        Parameters
        ----------
        snapshot : mapping of str to InternalTimersSnapshot
        watermark_ms : int
            The current watermark of the services until the next advance, in ms since the epoch; nothing fires. Flink
            restores none.

        Raises
        ------
        LifecycleError
            If a service of the snapshot has been asked for already.
        DataError
            If a key group is not below max_parallelism.
        """
        for name, timers in snapshot.items():
            self._service(name).restore(timers, watermark_ms)

    def _service(self, name: str) -> InternalTimerService:
        service = self._services.get(name)
        if service is None:
            service = InternalTimerService(
                name, self._key_context, self._processing_time_service, self._set_current_key_id
            )
            self._services[name] = service
        return service
