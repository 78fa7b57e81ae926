"""Frozen dataclasses that are made without compiling code.

The decorator of Python's library compiles six functions for each class, which for a hundred classes takes a third of
the start of a small program. Here each class gets closures over its fields.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
    from inspect import Signature
else:

    def dataclass(
        cls: type | None = None,
        /,
        *,
        frozen: bool = False,
        eq: bool = True,
        repr: bool = True,
        **options: bool,
    ) -> Any:
        """Make a class a dataclass, as the decorator of Python's library does; which makes those that are not frozen.

        Deliberate difference: the text of an object that contains itself has no end.
        """
        if cls is not None or not frozen or options:
            return dataclasses.dataclass(cls, frozen=frozen, eq=eq, repr=repr, **options)

        def decorated(cls: type) -> type:
            _find_fields(cls)
            fields = dataclasses.fields(cls)
            made = {"__init__": _init(cls, fields), "__signature__": _LazySignature(fields)}
            if repr:
                made["__repr__"] = _repr([field.name for field in fields if field.repr])
            if eq:
                made["__eq__"] = _eq(_values([field.name for field in fields if field.compare]))
            for name, value in made.items():
                if name not in vars(cls):
                    setattr(cls, name, value)
            if eq and vars(cls).get("__hash__") is None:
                hashed = [f.name for f in fields if (f.compare if f.hash is None else f.hash)]
                cls.__hash__ = _hash(_values(hashed))
            cls.__setattr__, cls.__delattr__ = _refusals(cls, {field.name for field in fields})
            return cls

        return decorated


def _find_fields(cls: type) -> None:
    """Let Python's library note the fields, and nothing else; for it, the class is frozen as its bases are."""
    noted = "__dataclass_params__"
    bases = [vars(base)[noted] for base in cls.__mro__[1:] if noted in vars(base)]
    if not all(parameters.frozen for parameters in bases):
        raise TypeError("cannot inherit frozen dataclass from a non-frozen one")
    for parameters in bases:
        parameters.frozen = False
    try:
        dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    finally:
        for parameters in (*bases, vars(cls)[noted]):
            parameters.frozen = True


def _init(cls: type, fields: Sequence[Field[Any]]) -> Callable[..., None]:
    initial = [field for field in fields if field.init]
    by_position = [field.name for field in initial if not field.kw_only]
    names = {field.name for field in initial}
    defaults = [(field.name, field.default, field.default_factory) for field in fields]
    n_required = sum(
        field.default is MISSING and field.default_factory is MISSING and not field.kw_only
        for field in initial
    )
    called = f"{cls.__qualname__}.__init__()"
    has_post_init = hasattr(cls, "__post_init__")

    def __init__(self: Any, *values: Any, **named: Any) -> None:
        state = vars(self)
        if not named and len(values) == len(fields) == len(by_position):
            state.update(zip(by_position, values, strict=True))
            if has_post_init:
                self.__post_init__()
            return
        if len(values) > len(by_position):
            raise TypeError(
                f"{called} takes from {1 + n_required} to {1 + len(by_position)} positional arguments "
                f"but {1 + len(values)} were given"
            )
        given = dict(zip(by_position, values, strict=False))
        for name in named:
            if name not in names:
                raise TypeError(f"{called} got an unexpected keyword argument {name!r}")
            if name in given:
                raise TypeError(f"{called} got multiple values for argument {name!r}")
        given |= named
        for name, default, factory in defaults:
            if name in given:
                state[name] = given[name]
            elif default is not MISSING:
                state[name] = default
            elif factory is not MISSING:
                state[name] = factory()
            elif name in names:
                raise TypeError(f"{called} missing 1 required positional argument: {name!r}")
        if has_post_init:
            self.__post_init__()

    return __init__


class _LazySignature:
    """The signature of a class, for help() and inspect.signature(), which is made when it is asked for."""

    def __init__(self, fields: Sequence[Field[Any]]) -> None:
        self._fields = fields

    def __get__(self, instance: object, owner: type) -> Signature:
        from inspect import Parameter, Signature

        def parameters() -> Iterator[Parameter]:
            for field in sorted(self._fields, key=lambda field: bool(field.kw_only)):
                has_default = field.default is not MISSING or field.default_factory is not MISSING
                if field.init:
                    yield Parameter(
                        field.name,
                        Parameter.KEYWORD_ONLY if field.kw_only else Parameter.POSITIONAL_OR_KEYWORD,
                        default=field.default
                        if field.default is not MISSING
                        else ...
                        if has_default
                        else Parameter.empty,
                        annotation=field.type,
                    )

        return Signature(list(parameters()))


def _values(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return the function from an object to the values of attributes."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple([getattr(value, name) for name in names])


def _repr(names: Sequence[str]) -> Callable[[Any], str]:
    def __repr__(self: Any) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({shown})"

    return __repr__


def _eq(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, object], bool]:
    def __eq__(self: Any, other: object) -> bool:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    return __eq__


def _hash(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    return lambda self: hash(values(self))


def _refusals(
    cls: type[Any], names: set[str]
) -> tuple[Callable[[Any, str, Any], None], Callable[[Any, str], None]]:
    """Return what refuses to set and to delete attributes; objects of a subclass may have others."""

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __setattr__, __delattr__
