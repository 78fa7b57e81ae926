"""When expired values are removed that nobody reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from flinkcore.common.time import Duration
from flinkcore.errors import ConfigurationError

THIRTY_DAYS = Duration.of_days(30)


class CleanupStrategies:
    """The clean-up of expired values, beside that on reading them.

    Parameters
    ----------
    strategies : mapping of Strategies to CleanupStrategy
    is_cleanup_in_background : bool
        Whether values are also cleaned up in the way that the backend has for it: here and on Flink's heap, five
        keys at each use of the state.

    Notes
    -----
    Follows ``pyflink.datastream.state.StateTtlConfig.CleanupStrategies``, which is its name here, too.
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
        """Some keys at each use of the state.

        Parameters
        ----------
        cleanup_size : int
            How many keys, at least 1 (ConfigurationError).
        for_every_record : bool
            Also whenever a key is set.
        """

        cleanup_size: int
        for_every_record: bool

        def __post_init__(self) -> None:
            if self.cleanup_size < 1:
                raise ConfigurationError(
                    f"incremental clean-up takes at least 1 key at a time, not {self.cleanup_size}"
                )

        def get_cleanup_size(self) -> int:
            """Return how many keys are looked at at a time."""
            return self.cleanup_size

        def run_cleanup_for_every_record(self) -> bool:
            """Return whether it is done also whenever a key is set."""
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
        """Return whether there is the clean-up that is done by default."""
        return self._is_cleanup_in_background

    def in_full_snapshot(self) -> bool:
        """Return whether expired values are left out of snapshots."""
        return self.Strategies.FULL_STATE_SCAN_SNAPSHOT in self._strategies

    def get_incremental_cleanup_strategy(self) -> IncrementalCleanupStrategy | None:
        """Return the incremental clean-up, also where it is the default; None where there is none."""
        strategy = self._strategies.get(self.Strategies.INCREMENTAL_CLEANUP)
        if strategy is None:
            return self.IncrementalCleanupStrategy(5, False) if self._is_cleanup_in_background else None
        assert isinstance(strategy, self.IncrementalCleanupStrategy)
        return strategy

    def get_rocksdb_compact_filter_cleanup_strategy(self) -> RocksdbCompactFilterCleanupStrategy | None:
        """Return the setting of RocksDB, also where it is the default; None where there is none."""
        strategy = self._strategies.get(self.Strategies.ROCKSDB_COMPACTION_FILTER)
        if strategy is None:
            return self.RocksdbCompactFilterCleanupStrategy(1000) if self._is_cleanup_in_background else None
        assert isinstance(strategy, self.RocksdbCompactFilterCleanupStrategy)
        return strategy

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, CleanupStrategies)
            and self._strategies == other._strategies
            and self._is_cleanup_in_background == other._is_cleanup_in_background
        )

    def __hash__(self) -> int:
        return hash((frozenset(self._strategies), self._is_cleanup_in_background))
