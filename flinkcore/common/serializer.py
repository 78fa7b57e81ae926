"""Serializers: how values without a column type are written to a checkpoint."""

import pickle
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NoReturn

from flinkcore._internal.python.missing_features import refuse_name


class Serializer(ABC):
    """Converts values of a user's type to bytes and back; used as the type in a state's descriptor.

    A checkpoint holds None, bool, int, float, str, bytes, Decimal, date, time, datetime, timedelta, and lists, tuples,
    dictionaries and Rows of them as columns. For anything else the descriptor has a serializer as the type of its
    values, or of its map keys. A checkpoint can only be read by a job whose descriptor has a serializer of the same
    name.

    Attributes
    ----------
    name : str
        Name of the class in checkpoints; not empty.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.typeutils.TypeSerializer``.
    """

    name: ClassVar[str]

    @abstractmethod
    def serialize(self, value: Any) -> bytes:
        """Return the bytes of a value, which is never None."""

    @abstractmethod
    def deserialize(self, data: bytes) -> Any:
        """Return the value of bytes that `serialize` returned."""

    def accepts(self, value: object) -> bool:
        """Return whether the state may hold a value; any, unless a subclass overrides this."""
        return True

    def __eq__(self, other: object) -> bool:
        """Return whether the other is of the same class, with equal attributes."""
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class PickleSerializer(Serializer):
    """Serializes any value that can be pickled.

    Reading a pickle can run code: use it only for checkpoints that you trust.

    Examples
    --------
    >>> serializer = PickleSerializer()
    >>> serializer.deserialize(serializer.serialize({1, 2}))
    {1, 2}

    Notes
    -----
    Replaces PyFlink's ``Types.PICKLED_BYTE_ARRAY()`` in descriptors.
    """

    name: ClassVar[str] = "pickle"

    def serialize(self, value: Any) -> bytes:
        return pickle.dumps(value, protocol=4)

    def deserialize(self, data: bytes) -> Any:
        return pickle.loads(data)


def __getattr__(name: str) -> NoReturn:
    """Report what to use instead of names that PyFlink has here and flinkcore does not."""
    refuse_name(__name__, name)
