"""Interface of the file formats of an event log, and messages of their faults."""

import errno
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from flinkcore._internal.arrow.expressions import Expression
from flinkcore._internal.arrow.plain_columns import plain_type
from flinkcore._internal.arrow.stored_columns import StoredColumns
from flinkcore._internal.io.text_files import COMPRESSED, OTHER_ENCODING
from flinkcore.errors import FlinkcoreError, SchemaError, SourceError
from flinkcore.log.files.log_files import LogFile


@dataclass(frozen=True)
class ColumnsToRead:
    """Columns that are wanted, and how.

    Attributes
    ----------
    schema : pyarrow.Schema
        Names and plain types, as the log's first file has them.
    origins : mapping of str to str
        Column name to the file that gave its type.
    dictionary_columns : tuple of str
        Those that had better stay dictionary-encoded.
    batch_rows : int
        Rows that a batch had better have, about.
    warnings : list of str
        Takes what a format finds suspicious of the file; each names it.
    known : pyarrow.Schema or None
        All columns of the log, so that `warnings` reports others of the file, or None for no such report.
    stored : StoredColumns or None
        Columns of a table as the files store them, or None if by these names and types.
    where : tuple of pyarrow.compute.Expression
        Conditions over the columns: pieces of whose rows none can meet all of them may be left out.
    """

    schema: pa.Schema
    origins: Mapping[str, str]
    dictionary_columns: tuple[str, ...]
    batch_rows: int
    warnings: list[str] = field(default_factory=list)
    known: pa.Schema | None = None
    stored: StoredColumns | None = None
    where: tuple[Expression, ...] = ()

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        names: list[str] = self.schema.names
        return names

    @property
    def types(self) -> dict[str, pa.DataType]:
        """Plain types by name."""
        return {field.name: field.type for field in self.schema}

    def located(self, found: pa.Schema, found_in: str) -> dict[str, str | None]:
        """Return the columns' names in a file, each None if it lacks the column, which is null then.

        Raises
        ------
        SchemaError
            As `check`, and of the files of a table as `StoredColumns.located`.
        """
        if self.stored is not None:
            return self.stored.located(self.schema, found, found_in)
        self.check(found, found_in)
        return {name: name for name in self.names}

    def check(self, found: pa.Schema, found_in: str) -> None:
        """Check that a file has the columns that the log's first file says it has; warn of those that only it has.

        Parameters
        ----------
        found : pyarrow.Schema
            Schema of the file, encoded or not.
        found_in : str
            The file's name, for the message.

        Raises
        ------
        SchemaError
            If a column is missing in the file, or has another plain type; a column of type null fits any type.
        """
        for name, wanted in self.types.items():
            indices = found.get_all_field_indices(name)
            if len(indices) > 1:
                raise SchemaError(
                    f"column {name!r} occurs {len(indices)} times in {found_in}: rename one of them"
                )
            if not indices:
                raise SchemaError(
                    f"column {name!r} ({wanted}) of {self.origins[name]} is missing in {found_in}, which has "
                    f"{', '.join(found.names) or 'no columns'}; all files of a log have the same columns"
                )
            actual = plain_type(found.field(indices[0]).type)
            if actual != wanted and not pa.types.is_null(actual):
                raise SchemaError(
                    f"column {name!r} is {wanted} in {self.origins[name]} but {actual} in {found_in}; "
                    "write the files again with one type, or replay them as separate logs"
                )
        self.warn_of_others(found.names, found_in)

    def warn_of_others(self, names: Sequence[str], found_in: str) -> None:
        """Warn of columns of a file that the log does not have."""
        others = [] if self.known is None else [name for name in names if name not in self.known.names]
        if others:
            shown = ", ".join(map(repr, others[:_MOST_OTHERS]))
            more = f" and {len(others) - _MOST_OTHERS:,} more" if len(others) > _MOST_OTHERS else ""
            self.warnings.append(
                f"{found_in} has columns that the log's first file does not have, so they are left out: {shown}{more}. "
                "If they are needed, write the first file with them, too"
            )


_MOST_OTHERS = 10

_MAY_NOT_READ = "Give this process, and on Spark the executors, the right to read it"
_REMEDIES = {
    errno.EACCES: _MAY_NOT_READ,
    errno.EPERM: _MAY_NOT_READ,
    errno.ENOENT: "It was there when the files of the log were listed: let nothing remove them while the log is read",
    errno.ENOTDIR: "It was there when the files of the log were listed: let nothing remove them while the log is read",
    errno.EIO: "The disk or the network file system has failed: look after it, or copy the file",
    errno.ESTALE: "The disk or the network file system has failed: look after it, or copy the file",
    errno.EMFILE: "Let the process have more files open at once (ulimit -n)",
}
"""Refusals of the file system, which do not depend on the file's content."""


class FileFormat(Protocol):
    """File format of an event log; implementations are small and picklable.

    ``is_columnar``: whether some columns are read without decoding the others.
    ``of_further_files``: the format as which further files are looked at for columns that the log's first file lacks;
    None if all files must have the columns of the first.
    """

    name: str
    is_columnar: bool

    @property
    def of_further_files(self) -> "FileFormat | None": ...

    def schema(self, file: LogFile) -> pa.Schema | None:
        """Return the plain schema from the footer or the first block; None if the file is empty and has
        none."""

    def pieces(self, file: LogFile) -> list[int | None]:
        """Return the rows of each piece (row group, record batch) that can be read alone, None where not
        known.

        A format that cannot be cut gives one piece.
        """

    def batches(
        self, file: LogFile, pieces: range | None, columns: ColumnsToRead
    ) -> Iterator[pa.RecordBatch]:
        """Stream the given pieces, or all if None, in order, with bounded memory.

        The batches hold at least the given columns, in any order and encoding; the file's own are checked
        first. Their values are checked, too: what takes a batch may follow its lengths, offsets and indices.
        """


ENCRYPTED = re.compile(r"encrypt|decrypt", re.IGNORECASE)
"""In the reason why an encrypted file cannot be read."""
_UNSUPPORTED = re.compile(
    r"not (yet )?(implemented|supported)|NotImplemented|unsupported|not built", re.IGNORECASE
)


def remedy(error: BaseException) -> str | None:
    """Return what to do about a file that is sound, but not one that is read here; None if it may be damaged."""
    if str(error) in (OTHER_ENCODING, COMPRESSED):
        return "Take it out of the log if it is not a part of it"
    if ENCRYPTED.search(str(error)):
        return (
            "The file is encrypted, or a column that the job reads is, and there are no keys here: write it without "
            "encryption. Columns that are encrypted may also be left out by select(...)"
        )
    if isinstance(error, pa.ArrowNotImplementedError) or _UNSUPPORTED.search(str(error)):
        return (
            "Arrow does not read this: write the file with another compression, encoding or type, or take it out of "
            "the log"
        )
    return None


@contextmanager
def source_faults(name: str, advice: str) -> Iterator[None]:
    """Turn what pyarrow and the filesystem raise into a SourceError that names the file and what to do."""
    try:
        yield
    except MemoryError as error:
        # A size in the file, which may be a lie, or a block too large for this machine.
        raise SourceError(
            f"{name} cannot be read: a part of it asks for more memory than there is ({error}). {advice}"
        ) from error
    except FlinkcoreError:
        raise
    except (pa.ArrowException, OSError, EOFError, ValueError) as error:
        reason = " ".join(str(error).split()).rstrip(". ")
        advice = _REMEDIES.get(getattr(error, "errno", None) or 0) or remedy(error) or advice
        raise SourceError(f"{name} cannot be read: {reason}. {advice}") from error
