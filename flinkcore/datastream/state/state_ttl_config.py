"""Time to live: when values of a state expire, and how they are removed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

from flinkcore.common.time import Duration, Interval, timeout_ms
from flinkcore.errors import ConfigurationError

THIRTY_DAYS = Duration.of_days(30)


@dataclass(frozen=True, repr=False)
class StateTtlConfig:
    """Time to live of the values of a state; made by :meth:`new_builder`.

    A value written at T with a time to live of L is alive before T + L. Elements of a list and entries of a map
    expire one by one.

    **In event time** T is the operator's watermark at the write. For what is written before the first watermark, T is
    that first one. The last watermark, at the end of the input, lets nothing expire: timers that fire then see what was
    alive before.

    Parameters
    ----------
    update_type : StateTtlConfig.UpdateType
    state_visibility : StateTtlConfig.StateVisibility
    ttl_time_characteristic : StateTtlConfig.TtlTimeCharacteristic
    ttl : Time, Duration, datetime.timedelta or int (ms)
        At least 1 ms.
    cleanup_strategies : StateTtlConfig.CleanupStrategies

    Raises
    ------
    ConfigurationError
        If the time to live is not a Time or Duration, or below 1 ms; or another setting is of another type.

    Notes
    -----
    Follows ``pyflink.datastream.state.StateTtlConfig``; event time is flinkcore's.

    Examples
    --------
    >>> config = StateTtlConfig.new_builder(Time.hours(1)).update_ttl_on_read_and_write().build()
    >>> config.get_update_type()
    <UpdateType.OnReadAndWrite: 2>
    """

    class UpdateType(Enum):
        """Accesses that renew the time to live of a value."""

        Disabled = 0
        """Values do not expire."""

        OnCreateAndWrite = 1
        """Every write."""

        OnReadAndWrite = 2
        """Every write, and every read that finds it alive."""

    class StateVisibility(Enum):
        """Visibility of expired values."""

        ReturnExpiredIfNotCleanedUp = 0
        """Yes, until it is cleaned up."""

        NeverReturnExpired = 1
        """Never."""

    class TtlTimeCharacteristic(Enum):
        """The time that the time to live is counted in."""

        ProcessingTime = 0
        """Processing time: in a replay, the arrivals."""

        EventTime = 1
        """The current watermark of the operator. (Flink and PyFlink have processing time only.)"""

    class CleanupStrategies:
        """Strategies for removing expired values that nobody reads.

        Parameters
        ----------
        strategies : mapping of Strategies to CleanupStrategy
        is_cleanup_in_background : bool
            Whether values are also cleaned up by the backend's default strategy: here and on Flink's heap, five keys at
            each access to the state.

        Notes
        -----
        Follows ``pyflink.datastream.state.StateTtlConfig.CleanupStrategies``.
        """

        class Strategies(Enum):
            """The kinds of clean-up."""

            FULL_STATE_SCAN_SNAPSHOT = 0
            INCREMENTAL_CLEANUP = 1
            ROCKSDB_COMPACTION_FILTER = 2

        class CleanupStrategy:
            """Base of the settings of a clean-up."""

        @dataclass(frozen=True)
        class EmptyCleanupStrategy(CleanupStrategy):
            """A clean-up without settings."""

        @dataclass(frozen=True)
        class IncrementalCleanupStrategy(CleanupStrategy):
            """Checks some keys at each access to the state.

            Parameters
            ----------
            cleanup_size : int
                Number of keys, at least 1 (ConfigurationError).
            for_every_record : bool
                Whether to check also whenever a current key is set.
            """

            cleanup_size: int
            for_every_record: bool

            def __post_init__(self) -> None:
                size = self.cleanup_size
                if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                    raise ConfigurationError(
                        f"incremental clean-up takes at least 1 key at a time, not {size!r}"
                    )

            def get_cleanup_size(self) -> int:
                """Return how many keys are checked at a time."""
                return self.cleanup_size

            def run_cleanup_for_every_record(self) -> bool:
                """Return whether keys are checked also whenever a current key is set."""
                return self.for_every_record

        @dataclass(frozen=True)
        class RocksdbCompactFilterCleanupStrategy(CleanupStrategy):
            """A setting of RocksDB, without effect on a heap backend."""

            query_time_after_num_entries: int
            periodic_compaction_time: Duration = THIRTY_DAYS

            def get_query_time_after_num_entries(self) -> int:
                """Return the setting."""
                return self.query_time_after_num_entries

            def get_periodic_compaction_time(self) -> Duration:
                """Return the setting."""
                return self.periodic_compaction_time

        EMPTY_STRATEGY: ClassVar[CleanupStrategy] = EmptyCleanupStrategy()

        def __init__(
            self, strategies: Mapping[Strategies, CleanupStrategy], is_cleanup_in_background: bool
        ) -> None:
            self._strategies = strategies
            self._is_cleanup_in_background = is_cleanup_in_background

        def is_cleanup_in_background(self) -> bool:
            """Return whether the backend's default clean-up is done."""
            return self._is_cleanup_in_background

        def in_full_snapshot(self) -> bool:
            """Return whether expired values are left out of snapshots."""
            return self.Strategies.FULL_STATE_SCAN_SNAPSHOT in self._strategies

        def get_incremental_cleanup_strategy(self) -> IncrementalCleanupStrategy | None:
            """Return the incremental clean-up, set or by default, or None."""
            strategy = self._strategies.get(self.Strategies.INCREMENTAL_CLEANUP)
            if strategy is None:
                return self.IncrementalCleanupStrategy(5, False) if self._is_cleanup_in_background else None
            assert isinstance(strategy, self.IncrementalCleanupStrategy)
            return strategy

        def get_rocksdb_compact_filter_cleanup_strategy(self) -> RocksdbCompactFilterCleanupStrategy | None:
            """Return the setting of RocksDB, set or by default, or None."""
            strategy = self._strategies.get(self.Strategies.ROCKSDB_COMPACTION_FILTER)
            if strategy is None:
                return (
                    self.RocksdbCompactFilterCleanupStrategy(1000) if self._is_cleanup_in_background else None
                )
            assert isinstance(strategy, self.RocksdbCompactFilterCleanupStrategy)
            return strategy

        def __eq__(self, other: object) -> bool:
            return (
                isinstance(other, StateTtlConfig.CleanupStrategies)
                and self._strategies == other._strategies
                and self._is_cleanup_in_background == other._is_cleanup_in_background
            )

        def __hash__(self) -> int:
            return hash((frozenset(self._strategies), self._is_cleanup_in_background))

    update_type: UpdateType
    state_visibility: StateVisibility
    ttl_time_characteristic: TtlTimeCharacteristic
    ttl: Interval = field(compare=False)
    cleanup_strategies: CleanupStrategies
    ttl_ms: int = field(init=False)

    def __post_init__(self) -> None:
        for given, kind in (
            (self.update_type, self.UpdateType),
            (self.state_visibility, self.StateVisibility),
            (self.ttl_time_characteristic, self.TtlTimeCharacteristic),
        ):
            if not isinstance(given, kind):
                raise ConfigurationError(
                    f"a time to live takes one of StateTtlConfig.{kind.__name__}, not {given!r}"
                )
        object.__setattr__(self, "ttl_ms", timeout_ms(self.ttl, "the time to live of a state"))

    @staticmethod
    def new_builder(ttl: Interval) -> StateTtlConfig.Builder:
        """Return a builder for values that expire so long after they were written."""
        return StateTtlConfig.Builder(ttl)

    def get_update_type(self) -> UpdateType:
        """Return what renews the time to live of a value."""
        return self.update_type

    def get_state_visibility(self) -> StateVisibility:
        """Return whether an expired value can be seen."""
        return self.state_visibility

    def get_ttl(self) -> Interval:
        """Return how long values live."""
        return self.ttl

    def get_ttl_time_characteristic(self) -> TtlTimeCharacteristic:
        """Return the time that the time to live is counted in."""
        return self.ttl_time_characteristic

    def is_enabled(self) -> bool:
        """Return whether values expire at all."""
        return self.update_type is not self.UpdateType.Disabled

    def get_cleanup_strategies(self) -> CleanupStrategies:
        """Return how expired values that are never read are removed."""
        return self.cleanup_strategies

    def __repr__(self) -> str:
        return (
            f"StateTtlConfig<update_type={self.update_type}, state_visibility={self.state_visibility}, "
            f"ttl_time_characteristic={self.ttl_time_characteristic}, ttl={self.ttl}>"
        )

    class Builder:
        """Builds a :class:`StateTtlConfig`.

        By default, values expire in processing time, writes renew their time to live, expired values are never seen,
        and they are cleaned up in the background.

        Notes
        -----
        Follows ``pyflink.datastream.state.StateTtlConfig.Builder``; ``use_event_time`` is flinkcore's.
        """

        def __init__(self, ttl: Interval) -> None:
            self._ttl = ttl
            self._update_type = StateTtlConfig.UpdateType.OnCreateAndWrite
            self._state_visibility = StateTtlConfig.StateVisibility.NeverReturnExpired
            self._ttl_time_characteristic = StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
            self._is_cleanup_in_background = True
            self._strategies: dict[
                StateTtlConfig.CleanupStrategies.Strategies, StateTtlConfig.CleanupStrategies.CleanupStrategy
            ] = {}

        def set_update_type(self, update_type: StateTtlConfig.UpdateType) -> StateTtlConfig.Builder:
            """Set what renews the time to live of a value."""
            self._update_type = update_type
            return self

        def update_ttl_on_create_and_write(self) -> StateTtlConfig.Builder:
            """Let writes renew the time to live of a value; the default."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)

        def update_ttl_on_read_and_write(self) -> StateTtlConfig.Builder:
            """Let reads and writes renew the time to live of a value."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)

        def set_state_visibility(
            self, state_visibility: StateTtlConfig.StateVisibility
        ) -> StateTtlConfig.Builder:
            """Set whether an expired value can be seen."""
            self._state_visibility = state_visibility
            return self

        def return_expired_if_not_cleaned_up(self) -> StateTtlConfig.Builder:
            """Let an expired value be seen until it is cleaned up."""
            return self.set_state_visibility(StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp)

        def never_return_expired(self) -> StateTtlConfig.Builder:
            """Let an expired value never be seen; the default."""
            return self.set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)

        def set_ttl_time_characteristic(
            self, ttl_time_characteristic: StateTtlConfig.TtlTimeCharacteristic
        ) -> StateTtlConfig.Builder:
            """Set the time that the time to live is counted in."""
            self._ttl_time_characteristic = ttl_time_characteristic
            return self

        def use_processing_time(self) -> StateTtlConfig.Builder:
            """Count the time to live in processing time; the default."""
            return self.set_ttl_time_characteristic(StateTtlConfig.TtlTimeCharacteristic.ProcessingTime)

        def use_event_time(self) -> StateTtlConfig.Builder:
            """Count the time to live in event time: see :class:`StateTtlConfig`."""
            return self.set_ttl_time_characteristic(StateTtlConfig.TtlTimeCharacteristic.EventTime)

        def cleanup_full_snapshot(self) -> StateTtlConfig.Builder:
            """Leave expired values out of snapshots."""
            self._strategies[StateTtlConfig.CleanupStrategies.Strategies.FULL_STATE_SCAN_SNAPSHOT] = (
                StateTtlConfig.CleanupStrategies.EMPTY_STRATEGY
            )
            return self

        def cleanup_incrementally(
            self, cleanup_size: int, run_cleanup_for_every_record: bool
        ) -> StateTtlConfig.Builder:
            """Check some keys at each access to the state, and remove what has expired.

            Parameters
            ----------
            cleanup_size : int
                Number of keys to check each time, at least 1.
            run_cleanup_for_every_record : bool
                Whether to check also whenever a current key is set, even if the state is not accessed.
            """
            self._strategies[StateTtlConfig.CleanupStrategies.Strategies.INCREMENTAL_CLEANUP] = (
                StateTtlConfig.CleanupStrategies.IncrementalCleanupStrategy(
                    cleanup_size, run_cleanup_for_every_record
                )
            )
            return self

        def cleanup_in_rocksdb_compact_filter(
            self,
            query_time_after_num_entries: int,
            periodic_compaction_time: Duration = THIRTY_DAYS,
        ) -> StateTtlConfig.Builder:
            """Accept a setting of RocksDB, which has no effect on a heap backend, in Flink as here."""
            self._strategies[StateTtlConfig.CleanupStrategies.Strategies.ROCKSDB_COMPACTION_FILTER] = (
                StateTtlConfig.CleanupStrategies.RocksdbCompactFilterCleanupStrategy(
                    query_time_after_num_entries, periodic_compaction_time
                )
            )
            return self

        def disable_cleanup_in_background(self) -> StateTtlConfig.Builder:
            """Disable the default clean-up; strategies that were set stay."""
            self._is_cleanup_in_background = False
            return self

        def set_ttl(self, ttl: Interval) -> StateTtlConfig.Builder:
            """Set how long values live."""
            self._ttl = ttl
            return self

        def build(self) -> StateTtlConfig:
            """Return the configuration.

            Raises
            ------
            ConfigurationError
                As of :class:`StateTtlConfig`.
            """
            return StateTtlConfig(
                self._update_type,
                self._state_visibility,
                self._ttl_time_characteristic,
                self._ttl,
                StateTtlConfig.CleanupStrategies(dict(self._strategies), self._is_cleanup_in_background),
            )
