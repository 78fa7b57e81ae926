"""A compiler for tests that ask whether something builds, and not how fast it is."""

import os
import sysconfig

import pytest


@pytest.fixture(scope="session")
def quick_compiler(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The compiler of extensions, but one that does not optimize: that is most of its time."""
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    script = tmp_path_factory.mktemp("compiler") / "quick-compiler"
    script.write_text(f'#!/bin/sh\nexec {compiler} "$@" -O0\n')
    script.chmod(0o755)
    return str(script)
