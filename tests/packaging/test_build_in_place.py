"""The kernels of a source tree, built in place."""

import runpy
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from setuptools import Distribution


def test_a_module_whose_source_is_gone_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parents[2]
    built = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(root / "_native", tmp_path / "_native", ignore=built)
    shutil.copytree(root / "flinkcore" / "_native", tmp_path / "flinkcore" / "_native", ignore=built)
    monkeypatch.chdir(tmp_path)
    arguments: dict[str, Any] = {}
    with (
        patch("setuptools.setup", arguments.update),
        patch("Cython.Build.cythonize", lambda extensions, **_: extensions),
    ):
        runpy.run_path(str(root / "setup.py"))
    kernels = [
        Path("flinkcore", "_native", f"{name}.cpython-311-x86_64-linux-gnu.so") for name in ("timers", "gone")
    ]
    for in_place, left in [(False, kernels), (True, kernels[:1])]:
        for kernel in kernels:
            kernel.touch()
        building = arguments["cmdclass"]["build_ext"](Distribution())
        building.inplace = in_place
        building.finalize_options()
        building.run()
        assert sorted(Path("flinkcore", "_native").glob("*.so")) == sorted(left)
