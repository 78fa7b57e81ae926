"""Declarations of a Flink job's operators: what a savepoint names and types that a checkpoint of flinkcore does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from flinkcore.datastream.state import StateDescriptor
from flinkcore.errors import ArgumentTypeError, ConfigurationError
from flinkcore.savepoints.java_types import JavaType, serializer_of
from flinkcore.savepoints.serializers.serializer import StateSerializer


@dataclass(frozen=True)
class FlinkWindow:
    """Contents of the windows of a Flink job, made of the aggregates of a window over columns.

    Parameters
    ----------
    type : type
        Type of the accumulator of an ``AggregateFunction``, or of the elements that a ``ReduceFunction`` combines: a
        tuple, row or POJO of `fields`, or the type of the only field.
    fields : sequence of str
        For each field of the type the name of an aggregate or of a key column of flinkcore's job, in the order of the
        type; of a POJO in the order of its names. A replay that begins with the windows may leave a field out by None.
    reduces : bool
        Whether the Flink job has a ``ReduceFunction``; otherwise it has an ``AggregateFunction``.

    Examples
    --------
    ``.aggregate(n=count(), total=sum_("price"))`` of flinkcore, and an accumulator of ``Tuple2<Long, Long>`` in Java:

    >>> from flinkcore.common import Types
    >>> FlinkWindow(Types.TUPLE([Types.LONG(), Types.LONG()]), ["n", "total"]).fields
    ('n', 'total')
    """

    type: JavaType
    fields: Sequence[str | None]
    reduces: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.fields, str) or not self.fields:
            raise ArgumentTypeError(f"fields is a list of names of aggregates and keys, not {self.fields!r}")
        object.__setattr__(self, "fields", tuple(self.fields))
        serializer_of(self.type)

    @property
    def serializer(self) -> StateSerializer:
        """Serializer of the contents."""
        return serializer_of(self.type)


@dataclass(frozen=True)
class FlinkOperator:
    """An operator of a Flink job that continues with the state of one of flinkcore's.

    Other types follow from the values of the checkpoint, as an obvious Java job has them: integers are Long, tuples
    TupleN, rows Row. States have the names of their descriptors.

    Parameters
    ----------
    uid : str
        Argument of ``uid(...)`` in the Flink job, or the id of the operator as 32 hexadecimal digits.
    of : str, optional
        Uid of flinkcore's operator; by default the same, or that of the only operator with state.
    key : type, optional
        Type of the keys: Flink finds the state of a key only if it is exact, such as INT or LONG.
    states : mapping of str to type, optional
        Types by the names of states: of the value, of an element of a list, or of a reduced value or accumulator. Of a
        map state a pair of types, of its keys and of its values. ``window-contents`` are the elements of windows of
        functions.
    names : mapping of str to str, optional
        Names of states in the Flink job by those that flinkcore's descriptors have, if they differ.
    window : FlinkWindow, optional
        Contents of a window over columns.
    descriptors : sequence of StateDescriptor, optional
        Descriptors of the states of a PyFlink program, by which a replay that begins with its savepoint reads them:
        the savepoint does not have all kinds and types. Those of windows have the name ``window-contents``.

    Raises
    ------
    ConfigurationError
        If a type is one that no Java job has.
    """

    uid: str
    of: str | None = None
    key: JavaType | None = None
    states: Mapping[str, JavaType | tuple[JavaType, JavaType]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    window: FlinkWindow | None = None
    descriptors: Sequence[StateDescriptor] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.uid, str) or not self.uid:
            raise ArgumentTypeError(f"the uid of a Flink job's operator is a text, not {self.uid!r}")
        object.__setattr__(self, "descriptors", tuple(self.descriptors))
        for descriptor in self.descriptors:
            if not isinstance(descriptor, StateDescriptor):
                raise ArgumentTypeError(f"descriptors is a list of StateDescriptor, not of {descriptor!r}")
        if self.window is not None and not isinstance(self.window, FlinkWindow):
            raise ArgumentTypeError(f"window is a FlinkWindow, not {self.window!r}")
        if self.key is not None:
            serializer_of(self.key)
        for name in self.states:
            self.types_of(name)

    @property
    def key_serializer(self) -> StateSerializer | None:
        """Serializer of the declared keys, or None."""
        return None if self.key is None else serializer_of(self.key)

    def types_of(self, name: str) -> tuple[StateSerializer | None, StateSerializer | None]:
        """Return the declared serializers of a map state's keys, and of the values of a state; None if undeclared."""
        declared = self.states.get(name)
        if declared is None:
            return None, None
        if isinstance(declared, tuple):
            if len(declared) != 2:
                raise ConfigurationError(
                    f"state {name!r}: a map state has two types, and not {len(declared)}"
                )
            return serializer_of(declared[0]), serializer_of(declared[1])
        return None, serializer_of(declared)
