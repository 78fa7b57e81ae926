"""The columns that the files of a log have together."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

import pyarrow as pa

from flinkcore._internal.arrow.nested_fields import nested_field, unknown_name, with_field_type
from flinkcore._internal.arrow.schemas import refuse_repeated_columns
from flinkcore._internal.arrow.unified_types import unified_type
from flinkcore.errors import ConfigurationError
from flinkcore.log.formats.file_format import FileFormat
from flinkcore.log.schemas.given_schema import GivenSchema

_MOST_CHANGES = 5


@dataclass
class FoundColumns:
    """Columns of files, with types that hold the values of all of them.

    Attributes
    ----------
    format : FileFormat
        Format of the files.
    given : GivenSchema
        The columns whose types the user has given.
    types : dict of str to pyarrow.DataType
        Plain types by column, in the order in which the columns were found.
    origins : dict of str to str
        Column to the file that gave its type.
    files : int
        Number of files that have been added.
    """

    format: FileFormat
    given: GivenSchema
    types: dict[str, pa.DataType] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    files: int = 0
    _first_files: dict[str, dict[pa.DataType, str]] = field(default_factory=dict)
    """The first file with each type of a column."""
    _having: dict[str, int] = field(default_factory=dict)
    """The number of files that have a column."""
    _first_lacking: dict[str, str] = field(default_factory=dict)
    """The first file that lacks a column."""
    _first_file: str = ""
    _last: pa.Schema | None = None
    """The last schema that was added: most files of a log have the same."""

    def add(self, schema: pa.Schema, name: str) -> None:
        """Add the columns of a file.

        Raises
        ------
        SchemaError
            If a column occurs twice. Types that contradict each other are an error where the column is read.
        """
        self.files += 1
        if self._last is not None and schema.equals(self._last):
            for column_name in schema.names:
                self._having[column_name] += 1
            return
        refuse_repeated_columns(schema.names, name)
        self._last = schema
        self._first_file = self._first_file or name
        for column in schema:
            self._add(column.name, column.type, name)
        for column_name in self.types.keys() - set(schema.names):
            self._first_lacking.setdefault(column_name, name)

    def _add(self, name: str, found: pa.DataType, file: str) -> None:
        known = self.types.get(name)
        if known is None and self.files > 1:
            self._first_lacking.setdefault(name, self._first_file)
        self._having[name] = self._having.get(name, 0) + 1
        if name in self.given.types:
            self._give(name)
            return
        if not pa.types.is_null(found):
            self._first_files.setdefault(name, {}).setdefault(found, file)
        unified = found if known is None else unified_type(known, found, self.format.is_text)
        if unified != known:
            self.types[name] = unified
            self.origins[name] = file

    def give(self, elsewhere: Collection[str], looked_at_all: bool) -> None:
        """Add the columns that are given, and that no file had which was added.

        Parameters
        ----------
        elsewhere : collection of str
            Columns that do not come from within files.
        looked_at_all : bool
            Whether all files were added.

        Raises
        ------
        ConfigurationError
            If no file can have such a column.
        """
        for name in sorted(self.given.types.keys() - self.types.keys() - set(elsewhere)):
            if self._set_field(name):
                continue
            if looked_at_all and self.format.has_columns:
                similar = unknown_name(pa.schema(list(self.types.items())), name)
                raise ConfigurationError(
                    f"no file of the log has the column {name!r}, whose type is given: {', '.join(self.types)}"
                    f"{'.' if similar else ''}{similar}"
                )
            self._give(name)

    def _set_field(self, name: str) -> bool:
        """Set the type of a nested field, and return whether the name is one of a field."""
        found = nested_field(pa.schema(list(self.types.items())), name)
        if found is None:
            return False
        struct = self.types[found.column]
        self.types[found.column] = with_field_type(struct, found.path, self.given.types[name])
        return True

    def _give(self, name: str) -> None:
        self.types[name], self.origins[name] = self.given.types[name], "schema="

    @property
    def converted(self) -> frozenset[str]:
        """Columns that have several types."""
        return frozenset(name for name, stored in self._first_files.items() if len(stored) > 1)

    def changes(self) -> list[str]:
        """Return how the files differ, a sentence for each column, of at most five."""
        changes = list(islice(self._changes(), _MOST_CHANGES + 1))
        if len(changes) > _MOST_CHANGES:
            changes[_MOST_CHANGES] = "further columns differ between the files"
        return changes

    def _changes(self) -> Iterator[str]:
        for name, kind in self.types.items():
            having = self._having.get(name, 0)
            if 0 < having < self.files and self.format.has_columns:
                yield (
                    f"column {name!r} is null in {self.files - having:,} of {self.files:,} files that lack it, such as "
                    f"{self._first_lacking[name]}"
                )
            stored: Mapping[pa.DataType, str] = self._first_files.get(name, {})
            if len(stored) > 1:
                found = ", ".join(f"{each} in {file}" for each, file in islice(stored.items(), 3))
                yield f"column {name!r} is {kind}, which holds the values of all files: {found}"
