"""Schemas of pyarrow, recognised without importing pyarrow for it."""

import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeAlias

from flinkcore.errors import ArgumentTypeError, ConfigurationError, SchemaError

# pyarrow.Schema; the name is not imported, so that reading the API does not load pyarrow.
Schema: TypeAlias = Any


def is_schema(value: object) -> bool:
    """Return True exactly if the value is a ``pyarrow.Schema``."""
    pyarrow = sys.modules.get("pyarrow")  # who has a schema has loaded it
    return pyarrow is not None and isinstance(value, pyarrow.Schema)


def repeated_names(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, in their order."""
    return [name for name, count in Counter(names).items() if count > 1]


def refuse_repeated_columns(names: Iterable[str], where: str) -> None:
    """Raise a SchemaError if a column occurs more than once in a file or table of this name."""
    repeated = repeated_names(names)
    if repeated:
        raise SchemaError(f"column {repeated[0]!r} occurs more than once in {where}: rename one of them")


def require_row_schema(value: Schema, setting: str) -> None:
    """Check that a setting is a schema for rows.

    Raises
    ------
    ConfigurationError
        If it is not a ``pyarrow.Schema``, has no column, two columns of one name, one whose type pyarrow cannot make of
        Python values or that nests too much, or a dictionary with indices of less than 32 bits: where batches of
        results come together, so do their dictionaries, and how many values these have would depend on the parallelism.
    """
    if not is_schema(value):
        raise ArgumentTypeError(
            f"{setting} is a pyarrow.Schema, such as pyarrow.schema({{'user': pyarrow.string()}}), not {value!r}"
        )
    if not value.names:
        raise ConfigurationError(f"{setting} needs at least one column")
    repeated = repeated_names(value.names)
    if repeated:
        raise ConfigurationError(f"{setting} names columns twice: {', '.join(sorted(repeated))}")
    from flinkcore._internal.arrow.column_values import MOST_DEPTH, depth_of  # loads pyarrow

    for field in value:
        depth = depth_of(field.type)
        if depth > MOST_DEPTH:
            raise ConfigurationError(
                f"{setting} has the column {field.name!r} with {depth} levels of values within values. Declare at most "
                f"{MOST_DEPTH}"
            )
        try:
            sys.modules["pyarrow"].array([], field.type)
        except NotImplementedError as failure:
            raise ConfigurationError(
                f"{setting} has the column {field.name!r} of type {field.type}, which pyarrow cannot make of values "
                f"({failure}). Declare one that it can, such as the storage type in place of an extension type"
            ) from failure
        if _any_narrow_dictionary(field.type):
            raise ConfigurationError(
                f"{setting} has the column {field.name!r} of type {field.type}, whose indices number a few values, "
                "and how many come is not known before. Declare indices of 32 bits, as in "
                "pyarrow.dictionary(pyarrow.int32(), pyarrow.string()), or the type of the values"
            )


def _any_narrow_dictionary(kind: Any) -> bool:
    from flinkcore._internal.arrow.column_values import any_type  # loads pyarrow

    is_dictionary = sys.modules["pyarrow"].types.is_dictionary
    return any_type(kind, lambda each: is_dictionary(each) and each.index_type.bit_width < 32)
