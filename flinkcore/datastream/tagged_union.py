"""Elements of two streams that went into one."""

from typing import Any, Generic, TypeVar

T1 = TypeVar("T1")
T2 = TypeVar("T2")


class TaggedUnion(Generic[T1, T2]):
    """An element that knows of which of two streams it is; what windows of joins are made of.

    Triggers, evictors and gap extractors of a join get these.

    Parameters
    ----------
    value : object
    is_second : bool

    Notes
    -----
    Flink's ``org.apache.flink.util.TaggedUnion``.
    """

    __slots__ = ("_is_second", "_value")

    def __init__(self, value: Any, is_second: bool) -> None:
        self._value = value
        self._is_second = is_second

    @classmethod
    def one(cls, value: T1) -> "TaggedUnion[T1, Any]":
        """Return an element of the first stream."""
        return cls(value, False)

    @classmethod
    def two(cls, value: T2) -> "TaggedUnion[Any, T2]":
        """Return an element of the second stream."""
        return cls(value, True)

    def is_one(self) -> bool:
        """Return whether it is of the first stream."""
        return not self._is_second

    def is_two(self) -> bool:
        """Return whether it is of the second stream."""
        return self._is_second

    def get_one(self) -> T1 | None:
        """Return the element of the first stream; None if it is of the second."""
        return None if self._is_second else self._value

    def get_two(self) -> T2 | None:
        """Return the element of the second stream; None if it is of the first."""
        return self._value if self._is_second else None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TaggedUnion):
            return NotImplemented
        return self._is_second == other._is_second and bool(self._value == other._value)

    def __hash__(self) -> int:
        return hash((self._is_second, self._value))

    def __repr__(self) -> str:
        return f"TaggedUnion.{'two' if self._is_second else 'one'}({self._value!r})"
