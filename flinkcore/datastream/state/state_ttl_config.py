"""How long what a state holds stays there."""

from enum import Enum
from typing import TypeAlias

from flinkcore.common.time import Duration, Time, timeout_ms
from flinkcore.datastream.state.cleanup_strategies import THIRTY_DAYS
from flinkcore.datastream.state.cleanup_strategies import CleanupStrategies as TtlCleanupStrategies


class StateTtlConfig:
    """When values of a state expire; made by :meth:`new_builder`.

    A value written at T with a time to live of L is alive before T + L. Elements of a list and entries of a map
    live each on their own.

    **On event time** T is the operator's watermark at the write. What is written before the first watermark
    lives from the first one on. The last watermark, which says that the input has ended, lets nothing expire:
    timers that fire then see what was alive before.

    Parameters
    ----------
    update_type : "StateTtlConfig.UpdateType"
    state_visibility : "StateTtlConfig.StateVisibility"
    ttl_time_characteristic : "StateTtlConfig.TtlTimeCharacteristic"
    ttl : Time or Duration
        At least 1 ms.
    cleanup_strategies : StateTtlConfig.CleanupStrategies

    Raises
    ------
    ConfigurationError
        If the time to live is no Time or Duration, or below 1 ms.

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
        """What prolongs the life of a value."""

        Disabled = 0
        """Values do not expire."""

        OnCreateAndWrite = 1
        """Every write."""

        OnReadAndWrite = 2
        """Every write, and every read that finds it alive."""

    class StateVisibility(Enum):
        """Whether an expired value can be seen."""

        ReturnExpiredIfNotCleanedUp = 0
        """As long as it is there."""

        NeverReturnExpired = 1
        """Never."""

    class TtlTimeCharacteristic(Enum):
        """The time that lives are counted in."""

        ProcessingTime = 0
        """The clock: in a replay, that of the arrivals."""

        EventTime = 1
        """The current watermark of the operator. (Flink and PyFlink have processing time only.)"""

    CleanupStrategies: TypeAlias = TtlCleanupStrategies

    def __init__(
        self,
        update_type: UpdateType,
        state_visibility: StateVisibility,
        ttl_time_characteristic: TtlTimeCharacteristic,
        ttl: Time | Duration,
        cleanup_strategies: CleanupStrategies,
    ) -> None:
        self.ttl_ms = timeout_ms(ttl, "the time to live of a state")
        self._update_type = update_type
        self._state_visibility = state_visibility
        self._ttl_time_characteristic = ttl_time_characteristic
        self._ttl = ttl
        self._cleanup_strategies = cleanup_strategies

    @staticmethod
    def new_builder(ttl: Time | Duration) -> "StateTtlConfig.Builder":
        """Return a builder for values that live so long after they were written."""
        return StateTtlConfig.Builder(ttl)

    def get_update_type(self) -> UpdateType:
        """Return what prolongs the life of a value."""
        return self._update_type

    def get_state_visibility(self) -> StateVisibility:
        """Return whether an expired value can be seen."""
        return self._state_visibility

    def get_ttl(self) -> Time | Duration:
        """Return how long values live."""
        return self._ttl

    def get_ttl_time_characteristic(self) -> TtlTimeCharacteristic:
        """Return the time that lives are counted in."""
        return self._ttl_time_characteristic

    def is_enabled(self) -> bool:
        """Return whether values expire at all."""
        return self._update_type is not self.UpdateType.Disabled

    def get_cleanup_strategies(self) -> CleanupStrategies:
        """Return when expired values are removed that nobody reads."""
        return self._cleanup_strategies

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StateTtlConfig) and self._settings() == other._settings()

    def __hash__(self) -> int:
        return hash((self.ttl_ms, self._update_type, self._state_visibility, self._ttl_time_characteristic))

    def __repr__(self) -> str:
        return (
            f"StateTtlConfig<update_type={self._update_type}, state_visibility={self._state_visibility}, "
            f"ttl_time_characteristic={self._ttl_time_characteristic}, ttl={self._ttl}>"
        )

    def _settings(self) -> tuple[object, ...]:
        return (
            self.ttl_ms,
            self._update_type,
            self._state_visibility,
            self._ttl_time_characteristic,
            self._cleanup_strategies,
        )

    class Builder:
        """Builds a :class:`StateTtlConfig`.

        Values expire on processing time, are prolonged by writes, never seen when expired, and cleaned up in the
        background, unless told otherwise.

        Notes
        -----
        Follows ``pyflink.datastream.state.StateTtlConfig.Builder``; ``use_event_time`` is flinkcore's.
        """

        def __init__(self, ttl: Time | Duration) -> None:
            self._ttl = ttl
            self._update_type = StateTtlConfig.UpdateType.OnCreateAndWrite
            self._state_visibility = StateTtlConfig.StateVisibility.NeverReturnExpired
            self._ttl_time_characteristic = StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
            self._is_cleanup_in_background = True
            self._strategies: dict[TtlCleanupStrategies.Strategies, TtlCleanupStrategies.CleanupStrategy] = {}

        def set_update_type(self, update_type: "StateTtlConfig.UpdateType") -> "StateTtlConfig.Builder":
            """Set what prolongs the life of a value."""
            self._update_type = update_type
            return self

        def update_ttl_on_create_and_write(self) -> "StateTtlConfig.Builder":
            """Let writes prolong the life of a value; the default."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)

        def update_ttl_on_read_and_write(self) -> "StateTtlConfig.Builder":
            """Let reads and writes prolong the life of a value."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)

        def set_state_visibility(
            self, state_visibility: "StateTtlConfig.StateVisibility"
        ) -> "StateTtlConfig.Builder":
            """Set whether an expired value can be seen."""
            self._state_visibility = state_visibility
            return self

        def return_expired_if_not_cleaned_up(self) -> "StateTtlConfig.Builder":
            """Let an expired value be seen as long as it is there."""
            return self.set_state_visibility(StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp)

        def never_return_expired(self) -> "StateTtlConfig.Builder":
            """Let an expired value never be seen; the default."""
            return self.set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)

        def set_ttl_time_characteristic(
            self, ttl_time_characteristic: "StateTtlConfig.TtlTimeCharacteristic"
        ) -> "StateTtlConfig.Builder":
            """Set the time that lives are counted in."""
            self._ttl_time_characteristic = ttl_time_characteristic
            return self

        def use_processing_time(self) -> "StateTtlConfig.Builder":
            """Count lives on the clock; the default."""
            return self.set_ttl_time_characteristic(StateTtlConfig.TtlTimeCharacteristic.ProcessingTime)

        def use_event_time(self) -> "StateTtlConfig.Builder":
            """Count lives on the operator's watermark, as :class:`StateTtlConfig` says."""
            return self.set_ttl_time_characteristic(StateTtlConfig.TtlTimeCharacteristic.EventTime)

        def cleanup_full_snapshot(self) -> "StateTtlConfig.Builder":
            """Leave expired values out of snapshots."""
            self._strategies[TtlCleanupStrategies.Strategies.FULL_STATE_SCAN_SNAPSHOT] = (
                TtlCleanupStrategies.EMPTY_STRATEGY
            )
            return self

        def cleanup_incrementally(
            self, cleanup_size: int, run_cleanup_for_every_record: bool
        ) -> "StateTtlConfig.Builder":
            """Look at some keys whenever the state is used, and remove what has expired.

            Parameters
            ----------
            cleanup_size : int
                How many keys to look at each time, at least 1.
            run_cleanup_for_every_record : bool
                Do it also whenever a key is set, even if the state is not used.
            """
            self._strategies[TtlCleanupStrategies.Strategies.INCREMENTAL_CLEANUP] = (
                TtlCleanupStrategies.IncrementalCleanupStrategy(cleanup_size, run_cleanup_for_every_record)
            )
            return self

        def cleanup_in_rocksdb_compact_filter(
            self,
            query_time_after_num_entries: int,
            periodic_compaction_time: Duration = THIRTY_DAYS,
        ) -> "StateTtlConfig.Builder":
            """Accept a setting of RocksDB, which has no effect on a heap backend, in Flink as here."""
            self._strategies[TtlCleanupStrategies.Strategies.ROCKSDB_COMPACTION_FILTER] = (
                TtlCleanupStrategies.RocksdbCompactFilterCleanupStrategy(
                    query_time_after_num_entries, periodic_compaction_time
                )
            )
            return self

        def disable_cleanup_in_background(self) -> "StateTtlConfig.Builder":
            """Do without the clean-up that there is by default; one that was asked for stays."""
            self._is_cleanup_in_background = False
            return self

        def set_ttl(self, ttl: Time | Duration) -> "StateTtlConfig.Builder":
            """Set how long values live."""
            self._ttl = ttl
            return self

        def build(self) -> "StateTtlConfig":
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
