"""State backends: settings that are accepted without effect, since state is held in memory."""

from __future__ import annotations

from enum import Enum
from typing import NoReturn

from flinkcore._internal.io.locations import path_in_file_system
from flinkcore._internal.python.missing_features import refuse_name
from flinkcore.errors import ArgumentTypeError

__all__ = ["EmbeddedRocksDBStateBackend", "HashMapStateBackend", "PredefinedOptions", "StateBackend"]


class PredefinedOptions(Enum):
    """Options of RocksDB for kinds of disks.

    Notes
    -----
    Follows ``pyflink.datastream.PredefinedOptions``.
    """

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


class StateBackend:
    """Backend that holds the state of a running job.

    Notes
    -----
    Follows ``pyflink.datastream.StateBackend``.
    """


class HashMapStateBackend(StateBackend):
    """Holds state in memory, as every job here does."""


class EmbeddedRocksDBStateBackend(StateBackend):
    """Holds state in files of RocksDB on a cluster; here it is held in memory.

    Parameters
    ----------
    enable_incremental_checkpointing : bool, optional
    """

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        if not isinstance(enable_incremental_checkpointing, bool | None):
            raise ArgumentTypeError(
                f"enable_incremental_checkpointing is True, False or None, not {enable_incremental_checkpointing!r}"
            )
        self._incremental = bool(enable_incremental_checkpointing)
        self._paths: list[str] | None = None
        self._options = PredefinedOptions.DEFAULT
        self._options_factory: str | None = None
        self._transfer_threads = 4

    def set_db_storage_paths(self, *paths: str) -> None:
        """Set the folders of RocksDB's files; without arguments the default ones."""
        self._paths = [path_in_file_system(path) for path in paths] or None

    def get_db_storage_paths(self) -> list[str] | None:
        """Return the folders of RocksDB's files, or None."""
        return self._paths

    def is_incremental_checkpoints_enabled(self) -> bool:
        """Return whether checkpoints are incremental."""
        return self._incremental

    def set_predefined_options(self, options: PredefinedOptions) -> None:
        """Set the options for a kind of disk."""
        self._options = options

    def get_predefined_options(self) -> PredefinedOptions:
        """Return the options for a kind of disk."""
        return self._options

    def set_options(self, options_factory_class_name: str) -> None:
        """Set the name of a class of Java that makes options."""
        self._options_factory = options_factory_class_name

    def get_options(self) -> str | None:
        """Return the name of the class of Java that makes options, or None."""
        return self._options_factory

    def get_number_of_transfer_threads(self) -> int:
        """Return the number of threads that copy files."""
        return self._transfer_threads

    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        """Set the number of threads that copy files."""
        self._transfer_threads = number_of_transfering_threads


def __getattr__(name: str) -> NoReturn:
    """Report what to use instead of names that PyFlink has here and flinkcore does not."""
    refuse_name(__name__, name)
