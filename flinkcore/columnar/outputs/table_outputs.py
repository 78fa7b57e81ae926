"""A table of a lake as what a replay writes: its files are part of the table by one commit, or not at all."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import pyarrow as pa

from flinkcore._internal.python.user_warnings import warn_user
from flinkcore.columnar.outputs.result_files import PartNames
from flinkcore.columnar.outputs.table_files import PartitionField, TableFiles, WrittenFile
from flinkcore.errors import ConfigurationError, SourceError

MODES: Final = ("error", "append", "overwrite", "overwrite_partitions")

RUN: Final = "flinkcore.run"
"""By which the history of a table names the run that has appended rows."""


class TableOutputs(ABC):
    """A table to which the results of a replay go; side outputs go nowhere.

    Parameters
    ----------
    files
        Files that tasks write.
    appended_run
        Name of the run, if it appends rows that its repetition is not to add again; else None.
    """

    def __init__(self, files: TableFiles, appended_run: str | None) -> None:
        self.files = files
        self._appended_run = appended_run

    @property
    def paths(self) -> list[str]:
        """Return what a checkpoint says that the run has written."""
        return [self.files.table]

    @property
    def for_tasks(self) -> TableFiles:
        """Return what tasks need of it, which can be pickled."""
        return self.files

    def write(self, run: Callable[[], PartNames], commit: Callable[[], None] = lambda: None) -> None:
        """Run what writes files, then make them part of the table; if the commit fails, no file stays.

        Parameters
        ----------
        run
            Writes files and gives those that count, as text.
        commit
            Completes what else the run leaves, once the table has the files.

        Raises
        ------
        SourceError
            If the table cannot be committed to; or if the table has the files, and completing the rest failed.
        """
        self.files.prepare()
        try:
            written = [WrittenFile.of_text(text) for text in run()[None]]
            self.files.remove_all_but(written)
        except BaseException:
            self._withdraw()
            raise
        try:
            if self._appended_run is None or not self._has_run(self._appended_run):
                self._commit(written)
            else:
                self._withdraw()
                warn_user(
                    f"{self.files.table} has the rows of this run already, which are not added again. To replace them, "
                    "restore the table to the version before, and run the job again"
                )
        except Exception as error:
            if not self._is_committed(error):
                self._withdraw()
                raise SourceError(
                    f"{self.files.table} could not take the results, and has none of them: {_first_line(error)}. Run "
                    "the job again"
                ) from error
        try:
            commit()
        except Exception as error:
            raise SourceError(
                f"{self.files.table} has the results, but the checkpoint could not be completed: {error}. Restore the "
                "table to the version before this one, before the job runs again"
            ) from error

    def _is_committed(self, failure: Exception) -> bool:
        """Return whether the table has the files although the commit is said to have failed."""
        try:
            return any(f"/{self.files.folder}/" in file for file in self._files_now())
        except Exception:
            raise SourceError(
                f"it is not known whether {self.files.table} has the results: {_first_line(failure)}. Look at its "
                f"latest version; if that does not have them, remove {self.files.folder} from its directory, and run "
                "the job again"
            ) from failure

    @abstractmethod
    def _commit(self, written: Sequence[WrittenFile]) -> None:
        """Make the files part of the table."""

    @abstractmethod
    def _has_run(self, name: str) -> bool:
        """Return whether the table now has what the run of this name appended."""

    @abstractmethod
    def _files_now(self) -> Iterable[str]:
        """Locations of the files that the table has now."""

    def _withdraw(self) -> None:
        try:
            self.files.withdraw()
        except OSError as error:  # it would hide the error that led to it
            warn_user(
                f"{self.files.folder} in the directory of {self.files.table} has files of a failed replay: remove it "
                f"({error})",
                RuntimeWarning,
            )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")


def new_folder() -> str:
    """Return a name that no other write has."""
    return f"results-{uuid.uuid4().hex}"


def require_partition_columns(names: Sequence[str], schema: pa.Schema) -> None:
    """Raise a ConfigurationError unless a table with these columns can be partitioned by some of them."""
    for name in names:
        if name not in schema.names or names.count(name) > 1:
            raise ConfigurationError(
                f"partition_by names {name!r}; it takes different ones of the columns of the results: "
                f"{', '.join(schema.names)}"
            )
    if names and len(names) == len(schema):
        raise ConfigurationError("partition_by names all columns of the results. Leave one to the files")


def require_partition_types(fields: Iterable[PartitionField], schema: pa.Schema, table: str) -> None:
    """Raise a ConfigurationError unless values of the columns by which a table is partitioned are found as they were.

    Floats are not: NaN equals nothing. Bytes are not: they have no text.
    """
    types = pa.types
    for field in fields:
        kind = schema.field(field.column).type
        if not any(
            is_kind(kind)
            for is_kind in (
                *(types.is_integer, types.is_string, types.is_date, types.is_time, types.is_timestamp),
                *(types.is_decimal, types.is_boolean),
            )
        ):
            raise ConfigurationError(
                f"column {field.column!r}, by which {table} is partitioned, is {kind}: partitions are integers, text, "
                "dates, times, decimals or booleans. Take a table that is partitioned otherwise, or write_parquet(path)"
            )
