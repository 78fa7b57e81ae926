"""The type of a column of which several files of a log have a part: fields of structs are united by name."""

import pyarrow as pa


def unified_type(known: pa.DataType, found: pa.DataType) -> pa.DataType:
    """Return a type with all fields that structs in either have, at any depth of structs and lists.

    Parameters
    ----------
    known : pyarrow.DataType
        The type so far. Its fields come first, in their order.
    found : pyarrow.DataType
        Type in a further file, or part of a file. If the two contradict each other, the known one stays.
    """
    types = pa.types
    if types.is_null(known):
        return found
    if types.is_struct(known) and types.is_struct(found):
        fields = {field.name: field.type for field in known}
        for field in found:
            fields[field.name] = unified_type(fields.get(field.name, pa.null()), field.type)
        return pa.struct(list(fields.items()))
    if types.is_list(known) and types.is_list(found):
        return pa.list_(unified_type(known.value_type, found.value_type))
    return known


def unified_schema(known: pa.Schema, found: pa.Schema) -> pa.Schema:
    """Return a schema with the columns of both, of the types of `unified_type`."""
    both = unified_type(pa.struct(list(known)), pa.struct(list(found)))
    return pa.schema(list(both))
