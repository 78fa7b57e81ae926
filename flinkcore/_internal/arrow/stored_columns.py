"""Columns of a table as its files store them: its schema may have changed since a file was written."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from flinkcore._internal.arrow.plain_columns import plain_type
from flinkcore._internal.arrow.unified_types import fits
from flinkcore.errors import SchemaError

_FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True)
class StoredColumns:
    """Finds the columns of a table in one of its files. A column that the file lacks is null in all its rows.

    Parameters
    ----------
    names : mapping of str to str or int
        Column of the table to its name in the files, or to its Parquet field id; the others are found by their own
        names.
    ignores_case : bool
        Whether names are found in whatever case.
    without_ids : mapping of str to tuple of str, or None
        Column of the table to its names in files without field ids, where it is found by its id, or None if such files
        are rejected.
    """

    names: Mapping[str, str | int] = field(default_factory=dict)
    ignores_case: bool = False
    without_ids: Mapping[str, tuple[str, ...]] | None = None

    def located(self, wanted: pa.Schema, found: pa.Schema, found_in: str) -> dict[str, str]:
        """Return the names that columns have in a file, without those that the file lacks.

        Parameters
        ----------
        wanted : pyarrow.Schema
            Columns of the table, with plain types.
        found : pyarrow.Schema
            Schema of the file, encoded or not.
        found_in : str
            The file's name, for messages.

        Raises
        ------
        SchemaError
            If several columns of the file have the name, the values of one may not fit into the table's type, or the
            file has no field ids.
        """
        lacks_ids = not any(_FIELD_ID in (each.metadata or {}) for each in found)
        if lacks_ids and self.without_ids is None:
            by_id = [each.name for each in wanted if isinstance(self.names.get(each.name), int)]
            if by_id:
                raise SchemaError(
                    f"{found_in} has no field ids, by which columns such as {by_id[0]!r} of the table are found: give "
                    "the table a name mapping (schema.name-mapping.default), or rewrite its files"
                )
        located = {column.name: self._located(column, found, found_in, lacks_ids) for column in wanted}
        return {name: stored for name, stored in located.items() if stored is not None}

    def _located(self, column: pa.Field, found: pa.Schema, found_in: str, lacks_ids: bool) -> str | None:
        wanted: str | int | tuple[str, ...] = self.names.get(column.name, column.name)
        if lacks_ids and isinstance(wanted, int):
            wanted = (self.without_ids or {}).get(column.name, ())
        named = [each for each in found if self._is(each, wanted)]
        if len(named) > 1:
            raise SchemaError(
                f"several columns of {found_in} are column {column.name!r} of the table: "
                f"{', '.join(each.name for each in named)}; rename all but one"
            )
        if not named:
            return None
        stored = plain_type(named[0].type)
        if not fits(stored, column.type, is_exact=True):
            raise SchemaError(
                f"column {column.name!r} is {column.type} in the table but {stored} in {found_in}, whose values may "
                "not fit: write the file again with the table's type"
            )
        name: str = named[0].name
        return name

    def _is(self, stored: pa.Field, wanted: str | int | tuple[str, ...]) -> bool:
        if isinstance(wanted, tuple):
            return stored.name in wanted
        if isinstance(wanted, int):
            return bool((stored.metadata or {}).get(_FIELD_ID) == b"%d" % wanted)
        if self.ignores_case:
            return bool(stored.name.lower() == wanted.lower())
        return bool(stored.name == wanted)
