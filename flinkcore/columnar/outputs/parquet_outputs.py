"""The Parquet directories of one replay: its files appear in all of them, or in none."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from flinkcore._internal.io.stores import ENVIRONMENT, Stores, folders_of
from flinkcore._internal.python.user_warnings import warn_user
from flinkcore.columnar.outputs.hive_partitions import require_hive_types
from flinkcore.columnar.outputs.parquet_directory import AppendedRun, ParquetOutput
from flinkcore.columnar.outputs.parquet_parts import NOTHING_STAYS, ParquetParts, PartFiles
from flinkcore.columnar.outputs.result_files import PartNames, require_mode
from flinkcore.columnar.outputs.staging_owner import StagingOwner
from flinkcore.columnar.outputs.table_outputs import require_partition_columns
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.common import OutputTag
from flinkcore.errors import ConfigurationError, SchemaError, SourceError

MODES: Final = ("error", "overwrite", "append")


@dataclass(frozen=True)
class ParquetTaskOutputs:
    """Files of tasks; picklable.

    Parameters
    ----------
    directories
        By name of the side output; that of the results under None.
    """

    directories: Mapping[str | None, PartFiles]

    def open_parts(self, partition: int) -> ParquetParts:
        """Files for one partition's outputs."""
        return ParquetParts(self.directories, partition)


@dataclass(frozen=True)
class ParquetOutputs:
    """A directory for the results, and one for each side output that is wanted.

    Parameters
    ----------
    directories
        By name of the side output; that of the results under None.

    Raises
    ------
    ConfigurationError
        If two are the same, or one lies within the other.
    """

    directories: Mapping[str | None, ParquetOutput]

    def __post_init__(self) -> None:
        for (outer_id, outer), (inner_id, inner) in permutations(self.directories.items(), 2):
            if outer.contains(inner):
                raise ConfigurationError(
                    f"{_output_name(inner_id)} would go to {inner.path}, which lies in the directory of "
                    f"{_output_name(outer_id)}, {outer.path}: whoever reads that would read both; give each output a "
                    "directory apart from the others"
                )

    @classmethod
    def of(
        cls,
        plan: JobPlan,
        path: str | os.PathLike[str],
        side_outputs: Mapping[OutputTag, str | os.PathLike[str]] | None,
        mode: str,
        stores: Stores = ENVIRONMENT,
        partition_by: str | Sequence[str] = (),
        run: str | None = None,
    ) -> ParquetOutputs:
        """The directories that the user names for a plan's outputs.

        Raises
        ------
        ConfigurationError
            If the plan has no such side output, a directory is that of another output or lies within it, or there is no
            such mode.
        SchemaError
            If Parquet has no type for a column.
        """
        require_mode(mode, MODES)
        schema = plan.result_schema()
        by = (partition_by,) if isinstance(partition_by, str) else tuple(partition_by)
        require_partition_columns(by, schema)
        require_hive_types(by, schema)
        _require_types(schema)
        replaces = mode == "overwrite"
        appended = AppendedRun.of(run) if mode == "append" else None
        directories: dict[str | None, ParquetOutput] = {
            None: ParquetOutput.at(
                path, plan.stages[-1].repeating_columns, replaces, stores, appended, by, schema
            )
        }
        for tag, directory in (side_outputs or {}).items():
            schema = plan.side_output_schema(tag)
            _require_types(schema)
            directories[tag.tag_id] = ParquetOutput.at(
                directory, plan.keys, replaces, stores, appended, (), schema
            )
        return cls(directories)

    @property
    def for_tasks(self) -> ParquetTaskOutputs:
        """Return what tasks need."""
        return ParquetTaskOutputs({tag_id: output.parts for tag_id, output in self.directories.items()})

    @property
    def paths(self) -> list[str]:
        """All directories."""
        return [output.path for output in self.directories.values()]

    def require_apart_from(self, files: Iterable[str]) -> None:
        """Check that no file of the job's logs would be replaced, or get results beside it.

        Parameters
        ----------
        files
            Paths or URIs.

        Raises
        ------
        ConfigurationError
            If one lies in a directory whose files are replaced or that takes more, by itself or as what a link leads
            to.
        """
        replaced = {
            folders_of(output.path): output
            for output in self.directories.values()
            if output.replaces or output.run is not None
        }
        folders = cache(folders_of)
        for file in files if replaced else ():
            folder, _, name = file.rpartition("/")
            for place in ((*folders(folder), name), folders_of(file)):
                output = next(
                    (replaced[place[:at]] for at in range(len(place)) if place[:at] in replaced), None
                )
                if output is not None and output.run is not None:
                    raise ConfigurationError(
                        f"mode='append' would add results to a log that the job reads: {file} lies in {output.path}. "
                        "Write to another directory"
                    )
                if output is not None:
                    raise ConfigurationError(
                        f"mode='overwrite' would delete a log that the job reads: {file} lies in {output.path}. Write "
                        "to another directory"
                    )

    def write(self, run: Callable[[], PartNames], commit: Callable[[], None] = lambda: None) -> None:
        """Run what writes parts, then publish them all; whatever fails, each directory is as it was.

        A process that is killed while it publishes leaves what it has moved so far. The folder `_temporary` then is
        still there: a directory with one is not a result. The next write that replaces files removes it first.

        Parameters
        ----------
        run
            Writes parts and gives the names of those that count.
        commit
            Completes what else the run leaves, once all files are there and before `_temporary` goes.

        Raises
        ------
        ConfigurationError
            If a directory has what is not to be replaced.
        """
        owner = StagingOwner.of_this_process()
        with owner.live():
            self._write(owner, run, commit)

    def _write(self, owner: StagingOwner, run: Callable[[], PartNames], commit: Callable[[], None]) -> None:
        prepared: dict[str | None, ParquetOutput] = {}
        old: dict[str | None, list[str]] = {}
        names: PartNames = {}
        try:
            for tag_id, output in self.directories.items():
                old[tag_id] = output.prepare(owner)
                prepared[tag_id] = output
            with owner.beating([output.staging for output in prepared.values()]):
                names = run()
                for tag_id, output in self.directories.items():
                    output.publish(names.get(tag_id, ()), old[tag_id])
                commit()
        except BaseException as error:
            left = [output.path for output in prepared.values()]
            for tag_id, output in prepared.items():
                with _warning(f"{output.path} has parts of a failed replay: {output.remedy_of_parts}"):
                    output.withdraw(names.get(tag_id, ()), old[tag_id])
                    left.remove(output.path)
            if left and isinstance(error, SourceError):
                stay = f"Parts of them stay in {', '.join(left)}"
                error.args = (str(error).replace(NOTHING_STAYS, stay),)
            raise
        for tag_id, output in prepared.items():
            with _warning(f"{output.path} is complete; its folder _temporary can be removed"):
                output.finish(old[tag_id])


def _require_types(schema: pa.Schema) -> None:
    for field in schema:
        try:
            pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([field])).close()
        except (pa.ArrowException, OSError) as failure:
            raise SchemaError(
                f"column {field.name!r} of the results is {field.type}, for which Parquet has no type ({failure}): "
                "convert it, or take to_arrow()"
            ) from failure


def _output_name(tag_id: str | None) -> str:
    return "the results" if tag_id is None else f"the side output {tag_id!r}"


@contextmanager
def _warning(advice: str) -> Iterator[None]:
    # An error of the clean-up would hide the one that led to it, or deny a result that is there.
    try:
        yield
    except OSError as error:
        warn_user(f"{advice} ({error})", RuntimeWarning)
