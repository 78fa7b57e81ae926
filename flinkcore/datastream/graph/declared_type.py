"""Declarations of programs about steps: types, side outputs, and settings of windows and joins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any, TypeVar

from flinkcore._internal.arrow.schemas import is_schema
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.typeinfo import PickledBytesTypeInfo, RowTypeInfo, TypeInformation, Types
from flinkcore.common.typeinfo.type_information import require_type
from flinkcore.errors import ArgumentTypeError, ConfigurationError

T = TypeVar("T")


def declared_type(output_type: Any, setting: str = "output_type") -> TypeInformation:
    """Return the type that a program has declared.

    Parameters
    ----------
    output_type : TypeInformation, list of TypeInformation, pyarrow.Schema or None
        A list is a row of these types, a schema a row with its names; None is any Python object. Anything else is a
        ConfigurationError.
    setting : str
        Name of the setting in error messages.
    """
    if output_type is None:
        return Types.PICKLED_BYTE_ARRAY()
    if is_schema(output_type):
        return RowTypeInfo([PickledBytesTypeInfo() for _ in output_type.names], output_type.names)
    return require_type(output_type, setting)


def named_outputs(side_outputs: Sequence[OutputTag]) -> tuple[OutputTag, ...]:
    """Return the side outputs that a call names; raise ArgumentTypeError for what is not a sequence of them."""
    if not isinstance(side_outputs, Iterable):
        raise ArgumentTypeError(
            f"side_outputs is a sequence of OutputTags, such as [OutputTag('late', schema)], not {side_outputs!r}"
        )
    tags = tuple(side_outputs)
    for tag in tags:
        if not isinstance(tag, OutputTag):
            raise ArgumentTypeError(f"a side output is named by an OutputTag, not {tag!r}")
    return tags


def gives_elements(
    call: str, output_type: Any, side_outputs: Sequence[OutputTag], timestamp_column: str | None
) -> bool:
    """Return whether a function over the rows of a log gives single elements, as it declares no columns.

    Raises
    ------
    ConfigurationError
        If the type is not a schema, or is missing where other settings need one.
    """
    if is_schema(output_type):
        return False
    if output_type is not None:
        raise ArgumentTypeError(
            f"{call} over the columns of a log takes an output_type that is a pyarrow.Schema, such as "
            f"pyarrow.schema({{'user': pyarrow.string()}}), not {output_type!r}; a type of Types is for single "
            "elements: call elements() first"
        )
    if named_outputs(side_outputs) or timestamp_column is not None:
        raise ConfigurationError(
            "side_outputs and timestamp_column are for an output_type that is a pyarrow.Schema; other side outputs "
            "are had from get_side_output(tag)"
        )
    return True


def require_output_tag(output_tag: object, call: str) -> OutputTag:
    """Return a tag; raise ConfigurationError for anything else."""
    if not isinstance(output_tag, OutputTag):
        raise ArgumentTypeError(f"{call} takes an OutputTag, such as OutputTag('late'), not {output_tag!r}")
    return output_tag


def with_settings(stream: T, **settings: Any) -> T:
    """Return a copy of a windowed or joined stream with other values of some of its private attributes."""
    changed = copy(stream)
    for name, value in settings.items():
        setattr(changed, f"_{name}", value)
    return changed
