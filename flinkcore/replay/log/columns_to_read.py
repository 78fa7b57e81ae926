"""What is read of each file of a log."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from flinkcore.errors import SchemaError
from flinkcore.replay.log.plain_columns import plain_type


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
    """

    schema: pa.Schema
    origins: Mapping[str, str]
    dictionary_columns: tuple[str, ...]
    batch_rows: int
    warnings: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        names: list[str] = self.schema.names
        return names

    @property
    def types(self) -> dict[str, pa.DataType]:
        """Plain types by name."""
        return {field.name: field.type for field in self.schema}

    def check(self, found: pa.Schema, found_in: str) -> None:
        """Check that a file has the columns that the log's first file says it has.

        Parameters
        ----------
        found : pyarrow.Schema
            Of the file, encoded or not.
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
                    "write the files anew with one type, or replay them as separate logs"
                )
