"""Contracts of the native kernels; the implementations are in the top-level folder `_native`."""

from importlib.util import find_spec
from os.path import dirname

if find_spec("flinkcore._native.arrow") is None:
    raise ImportError(
        f"flinkcore was imported from {dirname(dirname(__path__[0]))}, a source tree whose kernels are not compiled: "
        "change to another directory to use the installed package, or compile there with: pip install -e ."
    )
