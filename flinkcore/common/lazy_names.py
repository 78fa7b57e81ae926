"""Names of a package that are imported when they are first asked for: programs start without what they do not use."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any


def lazy_name(package: str, name: str, modules: Mapping[str, str]) -> Any:
    """Import a name of a package from the module that defines it, and keep it in the package.

    Parameters
    ----------
    package : str
    name : str
    modules : mapping of str to str
        For each such name of the package the module, without the package.

    Raises
    ------
    AttributeError
        If the package has no such name.
    """
    if name not in modules:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    value = getattr(import_module(f"{package}.{modules[name]}"), name)
    setattr(sys.modules[package], name, value)
    return value


def by_name(names: Mapping[str, str]) -> dict[str, str]:
    """Return the module of each name, from the names of each module, with spaces between them."""
    return {name: module for module, listed in names.items() for name in listed.split()}
