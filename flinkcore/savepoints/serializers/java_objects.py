"""Objects that Java has serialized: read as the names and values of their fields; no class is looked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from flinkcore.savepoints.byte_reader import ByteReader

_MAGIC: Final = b"\xac\xed\x00\x05"
_NULL, _REFERENCE, _CLASS_DESCRIPTION, _OBJECT, _STRING, _ARRAY, _CLASS, _BLOCK, _END = range(0x70, 0x79)
_LONG_BLOCK, _LONG_STRING, _ENUM = 0x7A, 0x7C, 0x7E
_HAS_WRITE_METHOD, _IS_SERIALIZABLE, _IS_EXTERNALIZABLE, _HAS_BLOCKS = 1, 2, 4, 8
_FIRST_HANDLE: Final = 0x7E0000
_SIZES: Final = {"B": 1, "C": 2, "D": 8, "F": 4, "I": 4, "J": 8, "S": 2, "Z": 1}
_MOST_NESTED: Final = 200


@dataclass
class JavaObject:
    """An object.

    Attributes
    ----------
    class_name : str
    fields : dict of str to object
        Numbers, texts, lists, objects and None, by the names of the fields of all its classes.
    written : list of object
        Objects that the classes wrote by methods of their own, such as the elements of a list.
    """

    class_name: str
    fields: dict[str, Any] = field(default_factory=dict)
    written: list[Any] = field(default_factory=list)

    @property
    def simple_name(self) -> str:
        """Name of the class without its package."""
        return self.class_name.rpartition(".")[2]


@dataclass
class _Description:
    name: str
    flags: int
    fields: list[tuple[str, str]]
    parent: _Description | None


class JavaObjectReader:
    """Reads a stream of Java's serialization.

    Parameters
    ----------
    reader : ByteReader

    Notes
    -----
    The Java Object Serialization Specification, section 6.4.2.
    """

    def __init__(self, reader: ByteReader) -> None:
        self._reader = reader
        self._handles: list[Any] = []
        self._depth = 0

    def read(self) -> Any:
        """Return the object of the stream.

        Raises
        ------
        SavepointError
            If it is damaged.
        """
        if self._reader.take(4) != _MAGIC:
            self._reader.at -= 4
            self._reader.fail("an object of Java should begin here")
        return self._content()

    def _content(self) -> Any:
        self._depth += 1
        if self._depth > _MOST_NESTED:
            self._reader.fail(f"objects of Java are nested more than {_MOST_NESTED} levels deep")
        found = self._content_of(self._reader.take(1)[0])
        self._depth -= 1
        return found

    def _content_of(self, tag: int) -> Any:
        reader = self._reader
        if tag == _NULL:
            return None
        if tag == _REFERENCE:
            return self._referenced()
        if tag == _STRING:
            return self._known(reader.utf())
        if tag == _LONG_STRING:
            return self._known(reader.take(reader.integer(8)).decode("utf-8", "backslashreplace"))
        if tag == _CLASS_DESCRIPTION:
            return self._described()
        if tag == _CLASS:
            return self._known(self._description())
        if tag == _ENUM:
            description = self._required()
            constant = JavaObject(description.name)
            self._handles.append(constant)
            constant.fields["name"] = self._content()
            return constant
        if tag == _OBJECT:
            return self._object()
        if tag == _ARRAY:
            description = self._required()
            items: list[Any] = self._known([])
            kind = description.name[1:2]
            items += [self._value(kind) for _ in range(reader.count())]
            return items
        reader.at -= 1
        return reader.fail(f"an object of Java does not have the tag {tag:#x}")

    def _known(self, found: Any) -> Any:
        self._handles.append(found)
        return found

    def _referenced(self) -> Any:
        number = self._reader.integer(4) - _FIRST_HANDLE
        if not 0 <= number < len(self._handles):
            self._reader.fail("an object of Java refers to one that does not exist")
        return self._handles[number]

    def _required(self) -> _Description:
        description = self._description()
        if description is None:
            self._reader.fail("an object of Java has no class")
        return description

    def _description(self) -> _Description | None:
        tag = self._reader.take(1)[0]
        if tag == _NULL:
            return None
        found = (
            self._referenced()
            if tag == _REFERENCE
            else self._described()
            if tag == _CLASS_DESCRIPTION
            else None
        )
        if not isinstance(found, _Description):
            self._reader.fail("the class of an object of Java should be here")
        return found

    def _described(self) -> _Description:
        reader = self._reader
        name = reader.utf()
        reader.take(8)  # serialVersionUID
        description: _Description = self._known(_Description(name, 0, [], None))
        description.flags = reader.take(1)[0]
        for _ in range(int.from_bytes(reader.take(2), "big")):
            kind, field_name = chr(reader.take(1)[0]), reader.utf()
            if kind in "[L":
                self._content()  # name of the type
            description.fields.append((kind, field_name))
        self._annotations()
        self._depth += 1
        if self._depth > _MOST_NESTED:
            reader.fail(f"classes of Java are nested more than {_MOST_NESTED} levels deep")
        description.parent = self._description()
        self._depth -= 1
        return description

    def _object(self) -> JavaObject:
        description = self._required()
        made: JavaObject = self._known(JavaObject(description.name))
        classes: list[_Description] = []
        each: _Description | None = description
        while each is not None:
            if any(each is other for other in classes):
                self._reader.fail("a class of Java is its own parent")
            classes.append(each)
            each = each.parent
        for each in reversed(classes):
            if each.flags & _IS_EXTERNALIZABLE:
                if not each.flags & _HAS_BLOCKS:
                    self._reader.fail(f"only Java can read objects of {each.name}")
                made.written += self._annotations()
            elif each.flags & _IS_SERIALIZABLE:
                for kind, name in each.fields:
                    made.fields[name] = self._value(kind)
                if each.flags & _HAS_WRITE_METHOD:
                    made.written += self._annotations()
        return made

    def _value(self, kind: str) -> Any:
        if kind in ("L", "["):
            return self._content()
        if kind not in _SIZES:
            self._reader.fail(f"a field of Java does not have the type {kind!r}")
        return int.from_bytes(self._reader.take(_SIZES[kind]), "big", signed=kind != "C")

    def _annotations(self) -> list[Any]:
        """Return the objects up to the end of what a class has written; plain bytes are skipped."""
        found: list[Any] = []
        while True:
            tag = self._reader.take(1)[0]
            if tag == _END:
                return found
            if tag == _BLOCK:
                self._reader.take(self._reader.take(1)[0])
            elif tag == _LONG_BLOCK:
                self._reader.take(self._reader.count())
            else:
                self._reader.at -= 1
                found.append(self._content())
