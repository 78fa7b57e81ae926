"""All timer services of an operator."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from flinkcore.common.constants import MIN_TIMESTAMP
from flinkcore.runtime.key_context import KeyContext
from flinkcore.runtime.output import OutputFullError
from flinkcore.runtime.processing_time import ProcessingTimeService
from flinkcore.runtime.timers.internal_timer import Triggerable
from flinkcore.runtime.timers.internal_timer_service import InternalTimerService
from flinkcore.runtime.timers.internal_timers_snapshot import InternalTimersSnapshot


class InternalTimeServiceManager:
    """The timer services of an operator by name, for one watermark and one clock.

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
        """Return the service of a name, which is made at the first call, and start it.

        Parameters
        ----------
        name : str
        triggerable : Triggerable
            What the service's timers call; that of the first call stays.

        Returns
        -------
        InternalTimerService
            The same one for the same name, with the timers that were restored under it.
        """
        service = self._service(name)
        service.start(triggerable)
        return service

    def advance_watermark(self, watermark_ms: int) -> None:
        """Advance every service, in order of their making, each until nothing is due in it."""
        self._advance_each(iter(self._services.values()), watermark_ms)

    def _advance_each(self, services: Iterator[InternalTimerService], watermark_ms: int) -> None:
        try:
            for service in services:
                service.advance_watermark(watermark_ms)
        except OutputFullError as full:
            full.then(partial(self._advance_each, services, watermark_ms))
            raise

    def num_event_time_timers(self) -> int:
        """Return how many event-time timers all services have."""
        return sum(service.num_event_time_timers() for service in self._services.values())

    def num_processing_time_timers(self) -> int:
        """Return how many processing-time timers all services have."""
        return sum(service.num_processing_time_timers() for service in self._services.values())

    def next_event_time(self) -> int | None:
        """Return the time of the earliest event-time timer of all services, None if there is none."""
        times = [
            time for service in self._services.values() if (time := service.next_event_time()) is not None
        ]
        return min(times, default=None)

    def fired_event_time_timers(self) -> int:
        """Return how many event-time timers of all services have fired."""
        return sum(service.fired_event_time_timers for service in self._services.values())

    def fired_processing_time_timers(self) -> int:
        """Return how many processing-time timers of all services have fired."""
        return sum(service.fired_processing_time_timers for service in self._services.values())

    def snapshot(self, key_group_range: tuple[int, int] | None = None) -> dict[str, InternalTimersSnapshot]:
        """Return the timers of a range of key groups by the name of their service.

        Parameters
        ----------
        key_group_range : (int, int), optional
            First and last key group, inclusive, within the operator's; by default all.
        """
        return {name: service.snapshot(key_group_range) for name, service in self._services.items()}

    def restore(
        self, snapshot: Mapping[str, InternalTimersSnapshot], watermark_ms: int = MIN_TIMESTAMP
    ) -> None:
        """Register the timers of a snapshot that belong to this operator's key groups.

        To be called before the services are asked for, once for every snapshot: after a change of parallelism
        there may be several.

        Parameters
        ----------
        snapshot : mapping of str to InternalTimersSnapshot
        watermark_ms : int
            What the services then tell as the current watermark; nothing fires before the next advance. Flink
            tells none then.

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
