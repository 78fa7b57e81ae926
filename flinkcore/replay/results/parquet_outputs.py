"""The Parquet directories of one replay: its files appear in all of them, or in none."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import permutations
from types import TracebackType

import pyarrow as pa

from flinkcore.common import OutputTag
from flinkcore.errors import ConfigurationError
from flinkcore.replay.plans.job_plan import JobPlan
from flinkcore.replay.results.parquet_output import ParquetOutput, ParquetPart

PartNames = Mapping[str | None, Iterable[str]]
"""Files that count, by side output; those of the results under None."""


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
    ) -> ParquetOutputs:
        """The directories that the user names for a plan's outputs.

        Raises
        ------
        ConfigurationError
            If the plan has no such side output, or a directory is that of another output or lies within it.
        """
        directories: dict[str | None, ParquetOutput] = {
            None: ParquetOutput.at(path, (*plan.keys, *plan.operator.repeating_columns))
        }
        for tag, directory in (side_outputs or {}).items():
            plan.side_output_schema(tag)
            directories[tag.tag_id] = ParquetOutput.at(directory, plan.keys)
        return cls(directories)

    @property
    def paths(self) -> list[str]:
        """All directories."""
        return [output.path for output in self.directories.values()]

    def write(self, run: Callable[[], PartNames], commit: Callable[[], None] = lambda: None) -> None:
        """Run what writes parts, then publish them all; whatever fails, nothing is left in any directory.

        A process that is killed while it publishes leaves what it has moved so far. The folder `_temporary` then is
        still there: a directory with one is no result.

        Parameters
        ----------
        run
            Writes parts and gives the names of those that count.
        commit
            Completes what else the run leaves, once all files are there and before `_temporary` goes.

        Raises
        ------
        ConfigurationError
            If a directory is not empty.
        """
        prepared: dict[str | None, ParquetOutput] = {}
        names: PartNames = {}
        try:
            for tag_id, output in self.directories.items():
                output.prepare()
                prepared[tag_id] = output
            names = run()
            for tag_id, output in self.directories.items():
                output.publish(names[tag_id])
            commit()
        except BaseException:
            for tag_id, output in prepared.items():
                with _warning(f"{output.path} has parts of a failed replay: empty it"):
                    output.withdraw(names.get(tag_id, ()))
            raise
        for output in prepared.values():
            with _warning(f"{output.path} is complete; its folder _temporary can be removed"):
                output.finish()

    def open_parts(self, partition: int) -> ParquetParts:
        """Files for one partition's outputs."""
        return ParquetParts(self.directories, partition)


def _output_name(tag_id: str | None) -> str:
    return "the results" if tag_id is None else f"the side output {tag_id!r}"


@contextmanager
def _warning(advice: str) -> Iterator[None]:
    # An error of the clean-up would hide the one that led to it, or deny a result that is there.
    try:
        yield
    except OSError as error:
        warnings.warn(f"{advice} ({error})", RuntimeWarning, stacklevel=5)


class ParquetParts:
    """One partition's files, each made when it has its first batch; what nobody wants is left out.

    Parameters
    ----------
    directories
        By name of the side output; that of the results under None.
    partition
        Number of the partition.
    """

    def __init__(self, directories: Mapping[str | None, ParquetOutput], partition: int) -> None:
        self._directories = directories
        self._partition = partition
        self._parts: dict[str | None, ParquetPart] = {}
        self._open = ExitStack()

    @property
    def names(self) -> dict[str | None, str]:
        """Names of the files made so far."""
        return {tag_id: part.name for tag_id, part in self._parts.items()}

    def open_all(self, schemas: Mapping[str | None, pa.Schema]) -> None:
        """Make all files: a directory without rows still tells its columns."""
        for tag_id, schema in schemas.items():
            self._part(tag_id, schema)

    def write(self, tag_id: str | None, batches: Iterable[pa.RecordBatch]) -> None:
        """Append batches of an output."""
        for batch in batches:
            part = self._part(tag_id, batch.schema)
            if part is not None:
                part.write(batch)

    def _part(self, tag_id: str | None, schema: pa.Schema) -> ParquetPart | None:
        if tag_id not in self._parts:
            if tag_id not in self._directories:
                return None
            part = self._directories[tag_id].open_part(schema, self._partition)
            self._parts[tag_id] = self._open.enter_context(part)
        return self._parts[tag_id]

    def __enter__(self) -> ParquetParts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)
