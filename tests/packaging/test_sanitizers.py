"""The kernels under the sanitizers of addresses, of undefined behaviour and of leaks; only where it is asked for.

Every test runs but for those that start Java, which is none of ours. Of leaks those count that have one of our kernels
on their stack: Python keeps memory to its end, and so do numpy and Arrow.

FLINKCORE_TEST_SANITIZERS=1     builds a copy with sanitizers, and runs the tests; takes some twenty minutes
FLINKCORE_SANITIZER_FUZZ_SECONDS    for so long tests/fuzz draws examples; 600 unless given
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("unit", "property", "conformance")
STARTS_JAVA = re.compile(r"\bspark_session\(|\bensure_java\(|\bgetOrCreate\(")
OURS = re.compile(r"^ +#\d+ .*\b_native/", re.MULTILINE)
FUZZ_SECONDS = float(os.environ.get("FLINKCORE_SANITIZER_FUZZ_SECONDS", "600"))

pytestmark = pytest.mark.skipif(
    os.environ.get("FLINKCORE_TEST_SANITIZERS") != "1",
    reason="set FLINKCORE_TEST_SANITIZERS=1 to build with sanitizers",
)

# A consumer of Arrow data that takes it, and never releases it.
LEAK = """
import ctypes
from flinkcore._native.timers import TimerHeap

timers = TimerHeap(128, (0, 127))
timers.add(1, 0, 0, 0)
_, capsule = timers.snapshot().__arrow_c_array__()
pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
release = pointer(capsule, b"arrow_array") + 64
ctypes.c_void_p.from_address(release).value = None
"""

# A producer of Arrow data whose column ends before its length.
OVERRUN = """
import numpy as np
import pyarrow as pa
from flinkcore._native.key_groups import hash_codes

zeros = np.zeros(8, np.int8)
few = pa.foreign_buffer(zeros.ctypes.data, 4_096)
hash_codes(pa.record_batch([pa.Array.from_buffers(pa.int64(), 512, [None, few])], ["key"]))
"""

# A kernel that writes to an array after it has given it back to its pool, which keeps the memory.
LATE_WRITE = """
from libc.string cimport memset
from flinkcore._native.array_pool cimport Pool, pool_give_back, pool_take

def write():
    cdef Pool pool
    memset(&pool, 0, sizeof(Pool))
    cdef char* array = <char*> pool_take(&pool, 0)
    array[63] = 1
    pool_give_back(&pool, array, 0)
    array[63] = 2
"""


def library(name: str) -> str:
    done = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


class Checkout:
    """A copy of the project whose kernels are built with sanitizers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        ignore = shutil.ignore_patterns(
            "*.so", "*.c", "__pycache__", "build", ".git", ".venv*", ".*cache", ".hypothesis"
        )
        shutil.copytree(ROOT, path, ignore=ignore)
        build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        subprocess.run(build, cwd=path, env=os.environ | {"FLINKCORE_SANITIZE": "1"}, check=True)

    def compile(self, name: str, source: str) -> None:
        """Add a module that calls those of the copy."""
        path = self.path / f"{name}.pyx"
        path.write_text(source)
        translate = [sys.executable, "-m", "cython", "-3", path.name]
        subprocess.run(translate, cwd=self.path, check=True)
        options = [
            "-g",
            "-fPIC",
            "-shared",
            "-fsanitize=address,undefined",
            f"-I{sysconfig.get_path('include')}",
        ]
        build = ["gcc", *options, f"{name}.c", "-o", f"{name}.so"]
        subprocess.run(build, cwd=self.path, check=True)

    def test_files(self, *folders: str) -> list[str]:
        """The test files of folders, but for those that start Java."""
        return [
            str(path.relative_to(self.path))
            for folder in folders
            for path in sorted((self.path / "tests" / folder).rglob("test_*.py"))
            if not STARTS_JAVA.search(path.read_text())
        ]

    def run(self, reports: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
        """Run Python, and return how it ended, and what sanitizers reported of it and its child processes."""
        reports.mkdir()
        log_path = f"log_path={reports / 'report'}"
        memory = "allocator_may_return_null=1,max_allocation_size_mb=4096"
        settings = {
            "LD_PRELOAD": f"{library('libasan.so')} {library('libubsan.so')}",
            "PYTHONMALLOC": "malloc",
            "PYTHONPATH": str(self.path),
            "ASAN_OPTIONS": f"detect_leaks=1,abort_on_error=1,{memory},{log_path}",
            "LSAN_OPTIONS": "exitcode=0",  # all processes leak what Python keeps
            "UBSAN_OPTIONS": f"halt_on_error=1,print_stacktrace=1,{log_path}",
        }
        command = [sys.executable, *arguments]
        done = subprocess.run(
            command, cwd=self.path, env=os.environ | settings, capture_output=True, text=True, check=False
        )
        return done, [found for path in sorted(reports.iterdir()) for found in findings(path.read_text())]

    def run_tests(self, reports: Path, *arguments: str) -> None:
        # What undefined behaviour is reported goes to the standard error, which pytest leaves alone so.
        options = ("-q", "--capture=sys", "-p", "no:cacheprovider")
        done, found = self.run(reports, "-m", "pytest", *options, *arguments)
        assert found == []
        assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
        print(done.stdout[-2000:])


def findings(report: str) -> Iterator[str]:
    """The paragraphs of a report that tell of our kernels, and errors of anybody's."""
    if "ERROR: LeakSanitizer" not in report:
        yield report
        return
    for paragraph in report.split("\n\n"):
        if "leak of" in paragraph and OURS.search(paragraph):
            yield paragraph


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return Checkout(tmp_path_factory.mktemp("sanitizers") / "checkout")


def test_a_leak_of_a_kernel_is_found(checkout: Checkout, tmp_path: Path) -> None:
    _, found = checkout.run(tmp_path / "reports", "-c", LEAK)
    assert any("_native/timers.c" in paragraph for paragraph in found)


def test_a_kernel_that_reads_beyond_a_column_is_found(checkout: Checkout, tmp_path: Path) -> None:
    done, found = checkout.run(tmp_path / "reports", "-c", OVERRUN)
    assert done.returncode != 0
    assert any("heap-buffer-overflow" in report for report in found)


def test_a_write_to_an_array_that_was_given_back_to_its_pool_is_found(
    checkout: Checkout, tmp_path: Path
) -> None:
    checkout.compile("late_write", LATE_WRITE)
    done, found = checkout.run(tmp_path / "reports", "-c", "import late_write; late_write.write()")
    assert done.returncode != 0
    assert any("use-after-poison" in report for report in found)


def test_the_kernels_run_clean_under_sanitizers(checkout: Checkout, tmp_path: Path) -> None:
    checkout.run_tests(tmp_path / "reports", *checkout.test_files(*FOLDERS))


def test_random_jobs_and_damaged_files_run_clean_under_sanitizers(checkout: Checkout, tmp_path: Path) -> None:
    files = checkout.test_files("fuzz")
    assert files
    checkout.run_tests(tmp_path / "reports", f"--fuzz-seconds={FUZZ_SECONDS}", *files)
