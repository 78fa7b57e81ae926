"""Names of PyFlink, Spark, Polars and pandas that flinkcore does not have, and what to use instead.

``missing_features.json`` has them by what to use instead; it is read when a program asks for a name that is not there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeAlias

from flinkcore.errors import ArgumentTypeError, UnsupportedOperationError

Instead: TypeAlias = Mapping[str, str]
"""What to use instead, by name."""

_OF_JAVA: Final = "it wraps an object of Java, and there is no JVM"
_FOR_JAVA: Final = frozenset(("need_conversion", "to_internal_type", "from_internal_type"))


class MissingFeatures(NamedTuple):
    """Missing names and methods, each with a replacement.

    Attributes
    ----------
    names : mapping of str to mapping
        Names of PyFlink's, by module; a module without an entry of its own has that of its package.
    former_names : mapping of str to mapping
        Names that PyFlink's versions 1 had, and 2 has not, by module.
    former_methods : mapping of str to mapping
        Methods that PyFlink's versions 1 had, and 2 has not, by class.
    stream_methods, result_methods : mapping of str to str
        Methods of tables of Spark, Polars, pandas and Arrow that streams and results do not have.
    aggregates : mapping of str to str
        Aggregates of these and of SQL, with the call that computes the same.
    modules : mapping of str to str
        Modules of PyFlink 1 and 2, with ``flinkcore`` in place of ``pyflink``.
    modules_in_packages : mapping of str to str
        Modules of PyFlink, named in the same way, whose names a package of flinkcore has, with that package.
    """

    names: Mapping[str, Instead]
    former_names: Mapping[str, Instead]
    former_methods: Mapping[str, Instead]
    stream_methods: Instead
    result_methods: Instead
    aggregates: Instead
    modules: Instead
    modules_in_packages: Mapping[str, str]


@cache
def missing_features() -> MissingFeatures:
    """Return what is missing, which is read at the first call."""
    import json

    with open(os.path.join(os.path.dirname(__file__), "missing_features.json"), encoding="utf-8") as file:
        content = json.load(file)
    return MissingFeatures(
        _by_place(content["names"]),
        _by_place(content["former names"]),
        _by_place(content["former methods"]),
        _by_name(content["stream methods"]),
        _by_name(content["result methods"]),
        _by_name(content["aggregates"]),
        _by_name(content["modules"]),
        {
            f"{place}.{name}": place
            for place, names in content["modules in packages"].items()
            for name in names
        },
    )


def _by_place(tables: dict[str, dict[str, list[str]]]) -> Mapping[str, Instead]:
    """Return tables by module or class; the file has those that several have once, by all of these."""
    found: dict[str, dict[str, str]] = {}
    for places, table in tables.items():
        for place in places.split():
            found.setdefault(place, {}).update(_by_name(table))
    return found


def _by_name(names: dict[str, list[str]]) -> dict[str, str]:
    return {name: instead for instead, of_one in names.items() for name in of_one}


class MissingModuleFinder:
    """Raises an error that names the replacement when a program imports a module of PyFlink that flinkcore lacks."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        """Raise a MissingNameError for such a module; leave all others to other finders."""
        if not fullname.startswith("flinkcore."):
            return
        missing = missing_features()
        instead = missing.modules.get(fullname)
        if fullname in missing.modules_in_packages:
            instead = f"import its names from {missing.modules_in_packages[fullname]}"
        if instead is not None:
            raise MissingNameError(
                f"flinkcore has no {fullname.partition('.')[2]}, which PyFlink has: {instead}"
            )


class MissingNameError(UnsupportedOperationError, ImportError):
    """A name of PyFlink that flinkcore does not have."""


class MissingMethodError(UnsupportedOperationError, AttributeError):
    """A method of PyFlink, or of Spark, that flinkcore does not have."""


class WithoutJava:
    """Base of classes without PyFlink's methods for objects of Java: its error says that there is no JVM."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith(("get_java_", "to_j_", "_j_")) or name in _FOR_JAVA:
            raise MissingMethodError(
                f"{type(self).__name__} has no {name}: {_OF_JAVA}. Values stay Python objects"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class WithFormerMethods:
    """Base of classes that lost methods after PyFlink 1: its error names the replacement."""

    if not TYPE_CHECKING:  # a type checker knows that there is no such method

        def __getattr__(self, name: str) -> NoReturn:
            kind = type(self).__name__
            for base in type(self).__mro__:
                instead = missing_features().former_methods.get(base.__name__, {}).get(name)
                if instead is not None:
                    raise MissingMethodError(f"{kind} has no {name}, which PyFlink 1 had: {instead}")
            raise AttributeError(f"{kind!r} object has no attribute {name!r}")


class WithoutItems:
    """Rows of a job, which are not a table: length and items are refused, as no job runs for them."""

    def _call_instead(self, name: str) -> str:
        """Return what to call instead of a special method of tables."""
        raise NotImplementedError

    if not TYPE_CHECKING:  # a type checker refuses both

        def __len__(self) -> NoReturn:
            raise ArgumentTypeError(f"{type(self).__name__} has no length: {self._call_instead('__len__')}")

        def __getitem__(self, item: object) -> NoReturn:
            raise ArgumentTypeError(
                f"{type(self).__name__} has no items: {self._call_instead('__getitem__')}"
            )

        def __bool__(self) -> bool:
            return True  # without it, Python asks for the length


def refuse_stream_method(stream: object, name: str) -> NoReturn:
    """Raise for a name that a stream, or the windows of one, do not have.

    Raises
    ------
    MissingMethodError
        If tables elsewhere have it; the message says what to use instead.
    AttributeError
        If not.
    """
    missing = missing_features()
    instead = missing.stream_methods.get(name)
    if instead is None and name in missing.aggregates:
        call = missing.aggregates[name]
        instead = f"call aggregate(x={call}) on windows: window(...) after key_by('column')"
    _refuse_method(stream, name, instead)


def refuse_result_method(result: object, name: str) -> NoReturn:
    """Raise for a name that the rows of an output do not have; errors as of :func:`refuse_stream_method`."""
    _refuse_method(
        result, name, None if name.startswith("_") else missing_features().result_methods.get(name)
    )


def _refuse_method(thing: object, name: str, instead: str | None) -> NoReturn:
    kind = type(thing).__name__
    if instead is None:
        raise AttributeError(f"{kind!r} object has no attribute {name!r}")
    raise MissingMethodError(f"{kind} has no {name}: {instead}")


def refuse_aggregate(module: str, name: str) -> NoReturn:
    """Raise for a name that a module with aggregates does not have.

    Raises
    ------
    MissingNameError
        If it is an aggregate elsewhere; the message says what to use instead.
    AttributeError
        If it is not.
    """
    instead = None if name.startswith("_") else missing_features().aggregates.get(name)
    if instead is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    raise MissingNameError(f"{module} has no {name}: take {instead}")


def refuse_name(module: str, name: str) -> NoReturn:
    """Raise for a name that a module does not have.

    Raises
    ------
    MissingNameError
        If it is one of PyFlink's, or was in its versions 1; the message says what to use instead.
    AttributeError
        If it is not.
    """
    if not name.startswith("__"):  # as importing a name from a module asks for its __path__
        missing, package = missing_features(), module
        while package and package not in missing.names:
            package = package.rpartition(".")[0]
        instead = missing.names.get(package, {}).get(name)
        if instead is not None:
            raise MissingNameError(f"flinkcore has no {name}, which PyFlink has: {instead}")
        instead = missing.former_names.get(module, {}).get(name)
        if instead is not None:
            raise MissingNameError(f"flinkcore has no {name}, which PyFlink 1 had: {instead}")
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


sys.meta_path.append(MissingModuleFinder())
