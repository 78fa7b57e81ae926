"""A compiler for tests that ask whether something builds, and not how fast it is."""

import os
import shlex
import sys
import sysconfig
from pathlib import Path

import pytest
from equipment.sampling import ALL

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def quick_compiler(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The compiler of extensions, but one that does not optimize, nor compile anything twice.

    By day it does not compile again what the checkout has compiled, but for a few modules.
    """
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    folder = tmp_path_factory.mktemp("compiler")
    checkout = folder if ALL else ROOT
    program = [
        sys.executable,
        "-I",
        Path(__file__).with_name("quick_compiler.py"),
        compiler,
        folder,
        checkout,
    ]
    script = folder / "quick-compiler"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, program))} "$@"\n')
    script.chmod(0o755)
    return str(script)
