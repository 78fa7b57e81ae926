"""The kernels under AddressSanitizer and UndefinedBehaviorSanitizer; takes minutes, so only where it is asked for."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNEL_TESTS = (
    "accumulator_state",
    "aggregates",
    "batch_process",
    "count_windows",
    "current_key",
    "exchange",
    "integer_codes",
    "key_groups",
    "key_context",
    "key_timers",
    "keys",
    "narrow_integers",
    "record_store",
    "time_cut",
    "timeline",
    "timer",
    "valve",
    "watermarks",
    "window",
)


def library(name: str) -> str:
    done = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.skipif(
    os.environ.get("FLINKCORE_TEST_SANITIZERS") != "1",
    reason="set FLINKCORE_TEST_SANITIZERS=1 to build with sanitizers",
)
def test_the_kernels_run_clean_under_sanitizers(tmp_path: Path) -> None:
    ignore = shutil.ignore_patterns("*.so", "*.c", "__pycache__", "build", ".*")
    shutil.copytree(ROOT, tmp_path / "checkout", ignore=ignore)
    build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(build, cwd=tmp_path / "checkout", env=os.environ | {"FLINKCORE_SANITIZE": "1"}, check=True)
    tests = [
        str(path.relative_to(tmp_path / "checkout"))
        for folder in ("unit", "property", "conformance")
        for path in sorted((tmp_path / "checkout" / "tests" / folder).glob("test_*.py"))
        if path.stem.removeprefix("test_").removesuffix("_property").startswith(KERNEL_TESTS)
    ]
    sanitizers = {
        "LD_PRELOAD": f"{library('libasan.so')} {library('libubsan.so')}",
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0,allocator_may_return_null=1",
        "UBSAN_OPTIONS": "halt_on_error=1,print_stacktrace=1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(
        command, cwd=tmp_path / "checkout", env=os.environ | sanitizers, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
