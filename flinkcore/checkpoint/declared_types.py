"""Types that a program declares for keys and states, in checkpoints: as JSON, like the calls of `Types`."""

from __future__ import annotations

from typing import Any, Final

from flinkcore.common.typeinfo import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from flinkcore.errors import DataError, FlinkcoreError

TYPES: Final = "types"
"""Setting of an operator in the description of its job: types that the program declares."""

_MAX_DEPTH: Final = 32
_PLAIN: Final = {
    DateTypeInfo: "SQL_DATE",
    TimeTypeInfo: "SQL_TIME",
    TimestampTypeInfo: "SQL_TIMESTAMP",
    PickledBytesTypeInfo: "PICKLED_BYTE_ARRAY",
}
_OF_ELEMENTS: Final = {
    ListTypeInfo: "LIST",
    PrimitiveArrayTypeInfo: "PRIMITIVE_ARRAY",
    BasicArrayTypeInfo: "BASIC_ARRAY",
    ObjectArrayTypeInfo: "OBJECT_ARRAY",
}
_NAMES: Final = frozenset((*BasicType.__members__, *_PLAIN.values()))


def type_to_json(type_info: Any) -> Any:
    """Return a declared type as JSON, or None without a type of `Types`."""
    if isinstance(type_info, BasicTypeInfo):
        return type_info.basic_type.name
    if type(type_info) in _PLAIN:
        return _PLAIN[type(type_info)]
    parts: list[Any]
    if isinstance(type_info, TupleTypeInfo):
        kind, parts = "TUPLE", [type_to_json(each) for each in type_info.get_field_types()]
    elif isinstance(type_info, RowTypeInfo):
        types = [type_to_json(each) for each in type_info.get_field_types()]
        kind, parts = "ROW", [type_info.get_field_names(), *types]
    elif isinstance(type_info, MapTypeInfo):
        kind = "MAP"
        parts = [type_to_json(each) for each in (type_info.key_type_info, type_info.value_type_info)]
    elif type(type_info) in _OF_ELEMENTS:
        kind, parts = _OF_ELEMENTS[type(type_info)], [type_to_json(type_info.elem_type)]
    else:
        return None
    return None if None in parts else [kind, *parts]


def type_of_json(content: Any, where: str, depth: int = 0) -> TypeInformation | None:
    """Return the declared type that `type_to_json` has described, or None.

    Parameters
    ----------
    content : object
        From `json.loads`.
    where : str
        Names the type in messages.
    depth : int
        Number of types around it.

    Raises
    ------
    DataError
        If it is not such a description.
    """
    if content is None and depth == 0:
        return None
    if isinstance(content, str) and content in _NAMES:
        found: TypeInformation = getattr(Types, content)()
        return found
    kind, *parts = content if isinstance(content, list) and content else [None]
    try:
        if depth > _MAX_DEPTH:
            raise DataError(f"{where} is nested more than {_MAX_DEPTH} deep")
        if kind == "ROW" and isinstance(parts[0], list):
            return RowTypeInfo(_parts(parts[1:], where, depth), [*parts[0]])
        types = _parts(parts, where, depth)
        if kind == "TUPLE":
            return TupleTypeInfo(types)
        if kind == "MAP" and len(types) == 2:
            return MapTypeInfo(*types)
        if kind in _OF_ELEMENTS.values() and len(types) == 1:
            made: TypeInformation = getattr(Types, str(kind))(*types)
            return made
    except (FlinkcoreError, IndexError, TypeError, ValueError) as failure:
        raise DataError(f"{where} is {str(content)[:80]!r}: {failure}") from None
    raise DataError(f"{where} is {str(content)[:80]!r}, which this version does not know")


def _parts(parts: list[Any], where: str, depth: int) -> list[TypeInformation]:
    found = [type_of_json(part, where, depth + 1) for part in parts]
    assert None not in found
    return found  # type: ignore[return-value]
