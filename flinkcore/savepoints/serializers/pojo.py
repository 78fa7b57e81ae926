"""The serializer of POJOs, with subclasses."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from flinkcore._native.state_columns import ChoiceColumn, PojoColumn, StateColumn
from flinkcore.savepoints.serializers.serializer import StateSerializer


@dataclass(frozen=True)
class PojoSerializer(StateSerializer):
    """Objects of a class by their fields.

    Values become structs of the fields. If the snapshot knows subclasses, the structs have the fields of all of them;
    those that a class does not have are null, and the field `class` has the name of the class.

    Parameters
    ----------
    class_name : str
    fields : tuple of (str, StateSerializer)
        In the order in which they are written.
    subclasses : tuple of (str, StateSerializer or None)
        Classes that the serializer has met, by their names; None if the snapshot does not have their serializer.
    registered : tuple of (str, StateSerializer or None)
        Classes by their tags.
    declared_by : tuple of str
        Classes that declare the fields, in their order.
    hash_fields : tuple of str or None
        Fields whose hash codes that of an object combines; None if it is not known.
    hash_start : int
        Hash code of an object without such fields.
    """

    class_name: str
    fields: tuple[tuple[str, StateSerializer], ...]
    registered: tuple[tuple[str, StateSerializer | None], ...] = ()
    subclasses: tuple[tuple[str, StateSerializer | None], ...] = ()
    declared_by: tuple[str, ...] = ()
    hash_fields: tuple[str, ...] | None = field(default=None, compare=False)
    hash_start: int = field(default=1, compare=False)

    @property
    def name(self) -> str:
        return self.class_name

    @property
    def parts(self) -> tuple[StateSerializer, ...]:
        others = (
            each for _, each in (*self.registered, *self.subclasses) if isinstance(each, PojoSerializer)
        )
        return (*(each for _, each in self.fields), *others)

    def merged(self, other: StateSerializer) -> StateSerializer:
        if not isinstance(other, PojoSerializer) or [name for name, _ in self.fields] != [
            n for n, _ in other.fields
        ]:
            return super().merged(other)
        fields = (
            (name, one.merged(two)) for (name, one), (_, two) in zip(self.fields, other.fields, strict=True)
        )
        # Each subtask knows only the subclasses that it has met.
        known = dict(self.subclasses)
        for name, serializer in other.subclasses:
            mine = known.get(name)
            known[name] = (
                serializer if mine is None else mine if serializer is None else mine.merged(serializer)
            )
        merged = replace(
            self, fields=tuple(fields), subclasses=tuple(sorted(known.items(), key=lambda each: each[0]))
        )
        return merged if merged.registered == other.registered else super().merged(other)

    def column(self, exact: bool) -> StateColumn:
        classes = {self.class_name: self}
        for name, serializer in (*self.registered, *self.subclasses):
            # Fields of a serializer of another kind, such as Kryo's, are not known: meeting such a value is an error.
            if isinstance(serializer, PojoSerializer):
                classes.setdefault(name, serializer)
        names: list[str] = []
        serializers: list[StateSerializer] = []
        fields: list[list[int]] = []
        for name, each in classes.items():
            numbers = []
            for own, serializer in each.fields:
                column = own
                if own in names and serializers[names.index(own)] != serializer:
                    column = f"{name.rpartition('.')[2]}.{own}"
                if column not in names or names.index(column) in numbers:
                    names.append(column)
                    serializers.append(serializer)
                    numbers.append(len(names) - 1)
                else:
                    numbers.append(names.index(column))
            fields.append(numbers)
        columns = [each.column(exact) for each in serializers]
        if len(classes) > 1:
            names.append("class")
            columns.append(ChoiceColumn([name.encode() for name in classes]))
        order = list(classes)
        registered = [
            order.index(name) if isinstance(serializer, PojoSerializer) else -1
            for name, serializer in self.registered
        ]
        return PojoColumn(names, columns, fields, order, registered)
