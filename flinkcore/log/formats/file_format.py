"""Interface of the file formats of an event log, and messages of their faults."""

import errno
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

import pyarrow as pa

from flinkcore._internal.arrow.expressions import Expression
from flinkcore._internal.arrow.plain_columns import is_castable, plain_type
from flinkcore._internal.arrow.stored_columns import StoredColumns
from flinkcore._internal.arrow.unified_types import fields_beyond, fits
from flinkcore._internal.io.locations import naming_file
from flinkcore._internal.io.store_errors import store_remedy
from flinkcore._internal.io.text_files import COMPRESSED, OTHER_ENCODING
from flinkcore._internal.python.memory_errors import memory_shown
from flinkcore._internal.values.memory_limits import BATCH_BYTES
from flinkcore.errors import FlinkcoreError, OutOfMemoryError, SchemaError, SourceError
from flinkcore.log.files.log_files import LogFile


@dataclass
class LocatedMemory:
    """Meaning of the schema of the last file for the columns to read: most files of a log have the same schema.

    Attributes
    ----------
    located : tuple of (pyarrow.Schema, dict of str to str), optional
        Result of `ColumnsToRead.located` for a schema.
    others : tuple of (pyarrow.Schema, list of str), optional
        Columns and fields of a schema that the log does not have.
    places : tuple of (pyarrow.Schema, list of int or None), optional
        Where the columns lie in batches of a schema, or None if it lacks some, or has other types.
    layout : object
        Meaning of the last file's schema for its format.
    """

    located: tuple[pa.Schema, dict[str, str]] | None = None
    others: tuple[pa.Schema, list[str]] | None = None
    places: tuple[pa.Schema, list[int] | None] | None = None
    layout: object = None


@dataclass(frozen=True)
class ColumnsToRead:
    """Columns that are wanted, and how.

    Attributes
    ----------
    schema : pyarrow.Schema
        Names and plain types, as the log has them.
    origins : mapping of str to str
        Column name to the file that gave its type.
    dictionary_columns : tuple of str
        Those that had better stay dictionary-encoded.
    batch_rows : int
        Rows that a batch had better have, about.
    batch_bytes : int
        Bytes that it had better not exceed.
    warnings : list of str
        Takes what a format finds suspicious of the file; each names it.
    known : pyarrow.Schema or None
        All columns of the log: further ones in the file are reported in `warnings`. None if they are not reported.
    given : frozenset of str
        Columns whose type the user has given.
    stored : StoredColumns or None
        Names and types of a table's columns in its files; None if these are the log's.
    where : tuple of pyarrow.compute.Expression
        Conditions over the columns: pieces of whose rows none can meet all of them may be left out.
    in_part : mapping of str to pyarrow.StructType
        Columns of which only the fields of these types are wanted: others may be left out.
    memory : LocatedMemory
        Meaning of the last file's schema, for other files that are read with the same columns.
    """

    schema: pa.Schema
    origins: Mapping[str, str]
    dictionary_columns: tuple[str, ...]
    batch_rows: int
    batch_bytes: int = BATCH_BYTES
    warnings: list[str] = field(default_factory=list)
    known: pa.Schema | None = None
    given: frozenset[str] = frozenset()
    stored: StoredColumns | None = None
    where: tuple[Expression, ...] = ()
    in_part: Mapping[str, pa.StructType] = field(default_factory=dict)
    memory: LocatedMemory = field(default_factory=LocatedMemory)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        names: list[str] = self.schema.names
        return names

    @property
    def wanted(self) -> pa.Schema:
        """Names, and types with the fields that are wanted alone."""
        return pa.schema([each.with_type(self.in_part.get(each.name, each.type)) for each in self.schema])

    @property
    def types(self) -> dict[str, pa.DataType]:
        """Plain types by name."""
        return {field.name: field.type for field in self.schema}

    def located(self, found: pa.Schema, found_in: str) -> dict[str, str]:
        """Return the names that columns have in a file, without those that the file lacks.

        Parameters
        ----------
        found : pyarrow.Schema
            The file's schema, encoded or not.
        found_in : str
            The file's name, for messages.

        Raises
        ------
        SchemaError
            If the file has a column twice, or with values that the log's type does not hold.
        """
        if self.stored is not None:
            return self.stored.located(self.schema, found, found_in)
        last = self.memory.located
        if last is not None and last[0].equals(found):
            self.warn_of_others(found, found_in)
            return last[1]
        there = self.there(found.names, found_in)
        for name in there:
            wanted, actual = self.schema.field(name).type, plain_type(found.field(name).type)
            if not (is_castable(actual, wanted) if name in self.given else fits(actual, wanted)):
                raise self._contradiction(name, wanted, actual, found_in)
        self.warn_of_others(found, found_in)
        located = {name: name for name in there}
        self.memory.located = found, located
        return located

    def there(self, names: Sequence[str], found_in: str) -> list[str]:
        """Return those of the columns that a file has, by its names; raise SchemaError if it has one twice."""
        for name in self.names:
            if names.count(name) > 1:
                raise SchemaError(
                    f"column {name!r} occurs {names.count(name)} times in {found_in}: rename one of them"
                )
        return [name for name in self.names if name in names]

    def warn_of_others(self, found: pa.Schema, found_in: str) -> None:
        """Warn of columns and fields of a file that the log does not have."""
        if self.known is None:
            return
        last = self.memory.others
        if last is None or not last[0].equals(found):
            last = self.memory.others = found, fields_beyond(found, self.known)
        others = last[1]
        if others:
            shown = ", ".join(map(repr, others[:_MOST_OTHERS]))
            more = f" and {len(others) - _MOST_OTHERS:,} more" if len(others) > _MOST_OTHERS else ""
            self.warnings.append(
                f"{found_in} has columns that the log does not have, so they are left out: {shown}{more}. "
                "To read them, name them with their types in schema="
            )

    def _contradiction(
        self, name: str, wanted: pa.DataType, actual: pa.DataType, found_in: str
    ) -> SchemaError:
        if name in self.given:
            return SchemaError(
                f"column {name!r} is {actual} in {found_in}, which is never the {wanted} of schema=. Give another type"
            )
        return SchemaError(
            f"column {name!r} is {wanted} in {self.origins[name]} but {actual} in {found_in}. Give the type to read it "
            f"with, such as schema={{{name!r}: 'string'}}, or replay the files as separate logs"
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
    ``has_columns``: whether the rows of a file have the same columns; else each may lack some, which are null.
    ``counts_rows``: whether the number of rows before a piece is known without reading them.
    ``has_schema``: whether each file says which columns it has; else types are inferred from values.
    ``is_text``: whether every value is text in the file, so that a string holds those of any type.
    ``pieces_name``: what its pieces are called.
    """

    name: str
    is_columnar: bool
    has_columns: bool
    counts_rows: bool
    has_schema: bool
    is_text: bool
    pieces_name: str

    def schema(self, file: LogFile, at_a_glance: bool = False) -> pa.Schema | None:
        """Return the plain schema from the footer or the first block; None if the file is empty and has none.

        Types that are inferred `at_a_glance` are those of less of the file.
        """

    def pieces(self, file: LogFile) -> list[int | None]:
        """Return the rows of each piece (row group, record batch) that can be read alone, None where not
        known.

        A format that cannot be cut gives one piece.
        """

    def batches(
        self, file: LogFile, pieces: range | None, columns: ColumnsToRead
    ) -> Iterator[pa.RecordBatch]:
        """Stream the given pieces, or all if None, in order, with bounded memory.

        The batches hold at least those of the columns that the file has, or any other one if it has none of them, in
        any order and encoding, of types that become the log's by `plain_column`. Their values are checked: what takes
        a batch may follow its lengths, offsets and indices.
        """


ENCRYPTED = re.compile(r"encrypt|decrypt", re.IGNORECASE)
"""In the reason why an encrypted file cannot be read."""
_NANOSECONDS = re.compile(r"ORC timestamp .* out of range for nanosecond")
_ASKED_BYTES = re.compile(r"size (\d+) failed")
_CREDIBLE_BYTES: Final = 1 << 30
"""A damaged file asks for more memory at once."""

# The last is Arrow's before 26, of a null among lists of fixed size.
_UNSUPPORTED = re.compile(
    r"not (yet )?(implemented|supported)|NotImplemented|unsupported|not built|Expected all lists to be of size=",
    re.IGNORECASE,
)


def remedy(error: BaseException) -> str | None:
    """Return what to do about a file that is sound, but not one that is read here; None if it may be damaged."""
    if str(error).startswith((OTHER_ENCODING, COMPRESSED)):
        return "Take it out of the log if it is not a part of it"
    if ENCRYPTED.search(str(error)):
        return (
            "The file is encrypted, or a column that the job reads is, and there are no keys here: write it without "
            "encryption. Columns that are encrypted may also be left out by select(...)"
        )
    if _NANOSECONDS.search(str(error)):
        return (
            "Arrow reads the timestamps of ORC as nanoseconds, which the years 1677 to 2262 have: leave the column out "
            "by select(...), or write the file with times within these years or as Parquet"
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
        with naming_file(name):
            yield
    except FlinkcoreError:
        raise
    except MemoryError as error:
        # A size in the file, which may be a lie, or a block too large for this machine.
        text = f"{name} cannot be read: a part of it asks for more memory than there is ({error})"
        size = _ASKED_BYTES.search(str(error))
        if size is not None and int(size[1]) > _CREDIBLE_BYTES:
            raise SourceError(f"{text}. {advice}", file=name) from error
        raise OutOfMemoryError(
            f"{text}. {memory_shown()}. If the file is sound, read fewer columns by select(), or give the process more "
            "memory: a worker of Spark by spark.executor.pyspark.memory, where that is set"
        ) from error
    except (pa.ArrowException, OSError, EOFError, ValueError) as error:
        reason = " ".join(str(error).split()).rstrip(". ")
        of_system = _REMEDIES.get(getattr(error, "errno", None) or 0)
        advice = store_remedy(error) or of_system or remedy(error) or advice
        raise SourceError(f"{name} cannot be read: {reason}. {advice}", file=name) from error
