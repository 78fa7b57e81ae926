"""JSON schemas as types."""

from __future__ import annotations

import json
from typing import Any, Final

from flinkcore.common.typeinfo import TypeInformation, Types
from flinkcore.errors import ConfigurationError

_REFUSED: Final = ("allOf", "anyOf", "not", "extends", "disallow")
_SIMPLE: Final = {"boolean": Types.BOOLEAN(), "number": Types.BIG_DEC(), "integer": Types.BIG_DEC()}
_FORMATS: Final = {
    "date": Types.SQL_DATE(),
    "time": Types.SQL_TIME(),
    "date-time": Types.SQL_TIMESTAMP(),
}
_MOST_REFERENCES: Final = 100


def type_of_json_schema(json_schema: str) -> TypeInformation:
    """Return the type of values that a JSON schema describes.

    Numbers are decimals, arrays of one type arrays, other arrays rows.

    Raises
    ------
    ConfigurationError
        If it is not JSON, or describes values of no or several types.

    Notes
    -----
    Follows Flink's ``JsonRowSchemaConverter``, which also reads JSON with comments, names without quotes and single
    quotes.
    """
    try:
        root = json.loads(json_schema)
    except (TypeError, ValueError, RecursionError) as failure:
        raise ConfigurationError(f"the JSON schema is not JSON: {failure}") from failure
    return _type_of("<root>", root, root, 0)


def _type_of(place: str, node: Any, root: Any, references: int) -> TypeInformation:
    if not isinstance(node, dict):
        raise ConfigurationError(f"{place} of the JSON schema is an object, not {node!r:.80}")
    if refused := [key for key in _REFUSED if key in node]:
        raise ConfigurationError(
            f"{place} of the JSON schema has {refused[0]!r}: a value has one type, and may be null"
        )
    found = _types_of(place, node, root, references)
    kinds = [kind for kind in dict.fromkeys(found) if kind is not None]
    if len(kinds) != 1:
        raise ConfigurationError(f"{place} of the JSON schema has one type beside null, not {kinds}")
    return kinds[0]


def _types_of(place: str, node: dict[str, Any], root: Any, references: int) -> list[TypeInformation | None]:
    """Return the types of a value; None for null."""
    target: dict[str, Any] = {}
    reference = node.get("$ref")
    if isinstance(reference, str):
        if references == _MOST_REFERENCES:
            raise ConfigurationError(f"the reference {reference!r} of the JSON schema leads to itself")
        target = _referenced(reference, root)
    types = node.get("type", [])
    found = [
        _named_type(place, name, node, root, references)
        for name in ([types] if isinstance(types, str) else types)
    ]
    if "type" not in node and "type" in target:
        found.append(_type_of(reference or place, target, root, references + 1))
    choices = node.get("oneOf", target.get("oneOf"))
    if isinstance(choices, list):
        for index, choice in enumerate(choices):
            inner = f"{place}/oneOf[{index}]"
            is_null = isinstance(choice, dict) and choice.get("type") == "null"
            found.append(None if is_null else _type_of(inner, choice, root, references + 1))
    return found


def _named_type(
    place: str, name: object, node: dict[str, Any], root: Any, references: int
) -> TypeInformation | None:
    if name == "null":
        return None
    if name == "object":
        if node.get("additionalProperties") is True:
            raise ConfigurationError(f"{place} of the JSON schema must not have additional properties")
        properties = node.get("properties", {})
        types = [_type_of(f"{place}/{key}", each, root, references) for key, each in properties.items()]
        return Types.ROW_NAMED(list(properties), types)
    if name == "array":
        return _array_type(place, node, root, references)
    if name == "string":
        if "format" in node:
            return _FORMATS.get(node["format"], Types.STRING())
        if "contentEncoding" not in node:
            return Types.STRING()
        if node["contentEncoding"] == "base64":
            return Types.PRIMITIVE_ARRAY(Types.BYTE())
        raise ConfigurationError(
            f"{place} of the JSON schema has the unknown encoding {node['contentEncoding']!r}"
        )
    if isinstance(name, str) and name in _SIMPLE:
        return _SIMPLE[name]
    raise ConfigurationError(f"{place} of the JSON schema has the unknown type {name!r}")


def _array_type(place: str, node: dict[str, Any], root: Any, references: int) -> TypeInformation:
    items = node.get("items")
    if isinstance(items, dict):
        element = _type_of(f"{place}/items", items, root, references)
        return Types.BASIC_ARRAY(element) if element == Types.STRING() else Types.OBJECT_ARRAY(element)
    if isinstance(items, list):
        if node.get("additionalItems") is True:
            raise ConfigurationError(f"{place} of the JSON schema must not have additional items")
        types = [
            _type_of(f"{place}/items[{index}]", each, root, references) for index, each in enumerate(items)
        ]
        return Types.ROW_NAMED([f"f{index}" for index in range(len(types))], types)
    raise ConfigurationError(f"{place} of the JSON schema is an array, and so needs 'items'")


def _referenced(reference: str, root: Any) -> dict[str, Any]:
    if not reference.startswith("#"):
        raise ConfigurationError(f"a reference of the JSON schema begins with '#', unlike {reference!r}")
    found = root
    for key in reference[1:].split("/")[1:]:
        key = key.replace("~1", "/").replace("~0", "~")
        found = found.get(key) if isinstance(found, dict) else None
    if not isinstance(found, dict):
        raise ConfigurationError(f"the reference {reference!r} of the JSON schema leads nowhere")
    return found
