"""Plan by which chunks of a log read some columns."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from flinkcore._internal.arrow.nested_fields import NestedField
from flinkcore.log.formats.file_format import ColumnsToRead


@dataclass(frozen=True)
class ReadPlan:
    """Plan by which the chunks of a log read some columns.

    Attributes
    ----------
    names : list of str
        The columns that are asked for.
    taken : list of str
        These, and those that conditions read.
    nested : mapping of str to NestedField
        Columns of `taken` that are fields of other columns.
    fields : list of pyarrow.Field
        Columns that are made of what the format reads.
    to_read : ColumnsToRead
        Columns that the format reads; batch size and warnings are those of each reading.
    warns : bool
        Whether somebody takes the warnings.
    """

    names: list[str]
    taken: list[str]
    nested: Mapping[str, NestedField]
    fields: list[pa.Field]
    to_read: ColumnsToRead
    warns: bool = False

    def places_in(self, found: pa.Schema) -> list[int] | None:
        """Return where the columns lie in batches of a schema that has all of them as numbers of the log's types."""
        memory = self.to_read.memory
        if memory.places is None or not memory.places[0].equals(found):
            memory.places = found, self._places_in(found)
        return memory.places[1]

    def _places_in(self, found: pa.Schema) -> list[int] | None:
        names = [field.name for field in self.fields]
        places = [found.get_field_index(name) for name in names]
        if names != self.names or -1 in places:
            return None
        for place, wanted in zip(places, self.fields, strict=True):
            field = found.field(place)
            if field.type != wanted.type or not (field.nullable and pa.types.is_primitive(field.type)):
                return None
        return places
