"""How values of types that no column has are written into a checkpoint."""

import pickle
from abc import ABC, abstractmethod
from typing import Any, ClassVar


class Serializer(ABC):
    """Turns values of a user's type into bytes, and back; a type for a state's descriptor.

    A checkpoint holds None, bool, int, float, str, bytes, Decimal, date, time, datetime, timedelta, and lists, tuples,
    dictionaries and Rows of them as columns. For anything else the descriptor names a serializer as the type of its
    values, or of its map keys. Reading such a checkpoint takes a descriptor that names the serializer of the
    same name.

    Attributes
    ----------
    name : str
        Of the class; not empty. It stands in the checkpoint. One of another name cannot read the values.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.typeutils.TypeSerializer``.
    """

    name: ClassVar[str]

    @abstractmethod
    def serialize(self, value: Any) -> bytes:
        """Return a value, which is never None, as bytes."""

    @abstractmethod
    def deserialize(self, data: bytes) -> Any:
        """Return the value of bytes that `serialize` gave."""

    def accepts(self, value: object) -> bool:
        """Return whether a value may be held by the state; here, any."""
        return True

    def __eq__(self, other: object) -> bool:
        """Return whether the other is of the same class, with equal attributes."""
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class PickleSerializer(Serializer):
    """Any value that pickle takes.

    Reading a pickle can run code: name it only where checkpoints come from nobody else.

    Examples
    --------
    >>> serializer = PickleSerializer()
    >>> serializer.deserialize(serializer.serialize({1, 2}))
    {1, 2}

    Notes
    -----
    Stands for PyFlink's ``Types.PICKLED_BYTE_ARRAY()``.
    """

    name: ClassVar[str] = "pickle"

    def serialize(self, value: Any) -> bytes:
        """Return the pickle of a value."""
        return pickle.dumps(value, protocol=4)

    def deserialize(self, data: bytes) -> Any:
        """Return the value of a pickle."""
        return pickle.loads(data)
