"""Frozen dataclasses behave as those of Python's library."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar

import pytest

from flinkcore.common import frozen_dataclass

Decorator = Callable[..., Callable[[type], type]]
DECORATORS: list[Decorator] = [dataclasses.dataclass, frozen_dataclass.dataclass]


def _classes(dataclass: Decorator) -> tuple[Any, Any, Any, Any]:
    @dataclass(frozen=True)
    class Point:
        """A point."""

        x: int
        y: int = 2
        tags: list[str] = field(default_factory=list, compare=False)
        count: ClassVar[int] = 7

    @dataclass(frozen=True)
    class Named(Point):
        """A point with a name."""

        name: str = field(default="p", repr=False)
        size: int = field(default=1, kw_only=True)
        twice: int = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "twice", self.size * 2)

    @dataclass(frozen=True, eq=False, repr=False)
    class Own:
        """With a text of its own."""

        x: int

        def __repr__(self) -> str:
            return "own"

    class Plain(Point):
        """Not decorated."""

        def __init__(self, x: int) -> None:
            super().__init__(x, 9)
            self.more = x

    return Point, Named, Own, Plain


LIBRARYS, OURS = map(_classes, DECORATORS)
BOTH = pytest.mark.parametrize("classes", [LIBRARYS, OURS], ids=["library", "flinkcore"])


@BOTH
def test_objects_have_fields_texts_and_equality(classes: tuple[Any, Any, Any, Any]) -> None:
    point, named, own, plain = classes
    assert repr(point(1)).endswith("Point(x=1, y=2, tags=[])")
    assert repr(named(1, size=4)).endswith("Named(x=1, y=2, tags=[], size=4, twice=8)")
    assert point(1) == point(x=1, tags=["a"])
    assert point(1) != point(2)
    assert point(1) != named(1)
    assert hash(point(1)) == hash(point(1, 2))
    assert own(1) != own(1)
    assert repr(own(1)) == "own"
    assert (plain(3).more, plain(3).y) == (3, 9)
    assert point(1).tags is not point(1).tags
    assert point.__match_args__ == ("x", "y", "tags")


@BOTH
def test_objects_do_not_change(classes: tuple[Any, Any, Any, Any]) -> None:
    point, named, _, plain = classes
    for made in (point(1), named(1), plain(1)):
        with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
            made.x = 2
        with pytest.raises(FrozenInstanceError, match="cannot delete field 'y'"):
            del made.y
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'other'"):
        point(1).other = 2
    changed = plain(1)
    changed.more = 5
    del changed.more


@BOTH
@pytest.mark.parametrize(
    ("values", "named", "message"),
    [
        ((), {}, "missing 1 required positional argument: 'x'"),
        ((1,), {"z": 2}, "got an unexpected keyword argument 'z'"),
        ((1,), {"x": 2}, "got multiple values for argument 'x'"),
        ((1, 2, [], "n", 5), {}, r"takes from 2 to 5 positional arguments but 6 were given"),
        ((1,), {"twice": 2}, "got an unexpected keyword argument 'twice'"),
    ],
)
def test_wrong_arguments_are_errors(
    classes: tuple[Any, Any, Any, Any], values: tuple[Any, ...], named: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        classes[1](*values, **named)


@BOTH
def test_functions_of_the_library_know_them(classes: tuple[Any, Any, Any, Any]) -> None:
    point, named, _, _ = classes
    assert dataclasses.replace(named(1, size=4), x=3, size=5).twice == 10
    assert [each.name for each in dataclasses.fields(named(1))] == ["x", "y", "tags", "name", "size", "twice"]
    assert dataclasses.asdict(point(1)) == {"x": 1, "y": 2, "tags": []}
    assert copy.deepcopy(point(1)) == point(1)
    assert list(inspect.signature(named).parameters) == ["x", "y", "tags", "name", "size"]
    assert inspect.signature(point).parameters["y"].default == 2

    @dataclasses.dataclass(frozen=True)
    class Users(point):  # type: ignore[misc]
        more: int = 4

    assert Users(1) == Users(1, 2, [], 4)
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):
        dataclasses.dataclass(type("Changing", (point,), {}))


@pytest.mark.parametrize("dataclass", DECORATORS)
def test_other_dataclasses_are_as_in_the_library(dataclass: Decorator) -> None:
    changing = dataclass(type("Changing", (), {"__annotations__": {"x": int}}))
    made = changing(1)
    made.x = 2
    assert made == changing(2)
    ordered = dataclass(frozen=True, order=True)(type("Ordered", (), {"__annotations__": {"x": int}}))
    assert ordered(1) < ordered(2)
    with pytest.raises(TypeError, match="cannot inherit frozen dataclass from a non-frozen one"):
        dataclass(frozen=True)(type("Frozen", (changing,), {}))


@frozen_dataclass.dataclass(frozen=True)
class Sent:
    """Sent to other processes."""

    x: int


def test_objects_are_pickled() -> None:
    assert pickle.loads(pickle.dumps(Sent(3))) == Sent(3)
