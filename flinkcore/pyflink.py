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
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

from flinkcore._internal.python.missing_features import missing_features

MODULES: Final = {
    "common": "completable_future config_options configuration constants execution_config io job_client "
    "job_execution_result job_id job_status restart_strategy serialization serializer time typeinfo types "
    "watermark_strategy",
    "datastream": "async_data_stream async_retry_predicates async_retry_strategies checkpoint_config "
    "checkpoint_storage checkpointing_mode connectors data_stream execution_mode "
    "externalized_checkpoint_retention formats functions output_tag slot_sharing_group state state_backend "
    "stream_execution_environment time_characteristic time_domain timerservice window",
    "datastream.connectors": "base file_system kafka number_seq",
    "datastream.formats": "avro csv json orc parquet",
    "metrics": "metricbase",
    "table": "data_view expression expressions types udf window",
}
"""PyFlink's modules that flinkcore has, by package."""

_NAMES: Final = {
    *MODULES,
    *(f"{package}.{name}" for package, names in MODULES.items() for name in names.split()),
}


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
        if rest and rest not in _NAMES:
            package = missing_features().modules_in_packages.get(name)
            if package is None:
                find_spec(name)  # raises for a module of PyFlink's that is missing, with what to use instead
                raise ModuleNotFoundError(
                    f"flinkcore does not have the module {module.__name__}", name=module.__name__
                )
            name = package
        sys.modules[module.__name__] = import_module(name)


_FLINKCORE = import_module("flinkcore")

if __name__ != "pyflink" and sys.modules.get("pyflink", _FLINKCORE) is not _FLINKCORE:
    raise ImportError("PyFlink has been imported already. Import flinkcore.pyflink before pyflink")
if not any(isinstance(finder, PyFlinkFinder) for finder in sys.meta_path):
    sys.meta_path.insert(0, PyFlinkFinder())
sys.modules["pyflink"] = _FLINKCORE
