"""PyFlink's programs as they are: once this module is imported, ``import pyflink`` gives flinkcore.

A module of PyFlink is flinkcore's module of that name, whether PyFlink itself is installed or not. What flinkcore
does not have is an ImportError, which says what to use instead.

Modules of a program that Spark's executors import find it, too, once this file has been sent there by
``env.add_python_file(flinkcore.pyflink.__file__)``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class PyFlinkFinder:
    """Finds the modules of PyFlink in flinkcore; a meta path finder."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how a module of PyFlink is loaded; None for any other module."""
        loader: Any = _PyFlinkLoader()  # of no base: those of the library load much
        return ModuleSpec(fullname, loader) if fullname.partition(".")[0] == "pyflink" else None


class _PyFlinkLoader:
    def create_module(self, spec: ModuleSpec) -> None:
        """Let the import system create the module, which another one replaces."""

    def exec_module(self, module: ModuleType) -> None:
        _, dot, rest = module.__name__.partition(".")
        name = f"flinkcore{dot}{rest}"
        try:
            sys.modules[module.__name__] = import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            raise ModuleNotFoundError(
                f"flinkcore has no module {name}, and so none for {module.__name__}", name=module.__name__
            ) from None


_FLINKCORE = import_module("flinkcore")

if __name__ != "pyflink" and sys.modules.get("pyflink", _FLINKCORE) is not _FLINKCORE:
    raise ImportError("PyFlink has been imported already: import flinkcore.pyflink before pyflink")
if not any(isinstance(finder, PyFlinkFinder) for finder in sys.meta_path):
    sys.meta_path.insert(0, PyFlinkFinder())
sys.modules["pyflink"] = _FLINKCORE
