"""Names of a package that are imported when they are first asked for: programs start without what they do not use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any, NoReturn


def lazy_names(
    package: str,
    modules: Mapping[str, str],
    refuse: Callable[[str], NoReturn] | None = None,
    packages: Collection[str] = (),
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a package's ``__getattr__``, which imports a name from its module and keeps it, and its ``__dir__``.

    Parameters
    ----------
    package : str
    modules : mapping of str to str
        For each such name of the package the module that defines it, without the package.
    refuse : callable, optional
        Raises the error for any other name; by default that is an AttributeError.
    packages : collection of str, optional
        Packages and modules within the package that are names of it as well.
    """

    def get(name: str) -> Any:
        if name in packages:
            return import_module(f"{package}.{name}")
        if name not in modules:
            if refuse is not None:
                refuse(name)
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return get, names


def by_name(names: Mapping[str, str]) -> dict[str, str]:
    """Return the module of each name, from the names of each module, with spaces between them."""
    return {name: module for module, listed in names.items() for name in listed.split()}
