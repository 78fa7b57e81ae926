"""Style and types are part of the suite: ruff, mypy on the package and a user's program, native stubs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from equipment.sampling import at_night

import flinkcore

ROOT = Path(__file__).parents[2]
NATIVE_MODULES = sorted(path.stem for path in (ROOT / "flinkcore" / "_native").glob("*.pyi"))


def run(*command: str, cwd: Path = ROOT) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ruff_has_nothing_to_say() -> None:
    run("ruff", "check", ".")


def test_files_are_formatted() -> None:
    run("ruff", "format", "--check", ".")


@pytest.mark.skipif(
    sys.version_info < (3, 11), reason="the last NumPy for Python 3.10 types arrays by their shapes"
)
@at_night  # and before all tests of CI: .ci/lint
def test_the_package_is_typed() -> None:
    run("mypy")


def test_users_programs_are_typed_and_their_mistakes_are_seen() -> None:
    run(
        "mypy",
        "tests/typing/user_program.py",
        "tests/typing/user_process_functions.py",
        "tests/typing/user_harness.py",
        "tests/typing/user_window_functions.py",
        "tests/typing/user_joins.py",
        "tests/typing/user_elements.py",
        "tests/typing/user_log_streams.py",
    )


def test_hooks_before_a_commit_run_these_checks() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    entries = re.findall(r"entry: \.venv/bin/(.*)", hooks)
    assert entries == ["ruff check --force-exclude", "ruff format --force-exclude", "mypy"]


def test_the_first_job_of_ci_runs_these_checks() -> None:
    lines = (ROOT / ".ci" / "lint").read_text(encoding="utf-8")
    run_by_ci = re.findall(r"^\.venv-lint/bin/(?!pip )(.*)", lines, re.MULTILINE)
    assert run_by_ci == ["ruff check .", "ruff format --check .", "mypy"]


def test_stubs_say_what_the_native_modules_are() -> None:
    allowed = str(Path(__file__).with_name("stubtest_allowlist.txt"))
    modules = (f"flinkcore._native.{name}" for name in NATIVE_MODULES)
    run("mypy.stubtest", "--allowlist", allowed, *modules, cwd=Path(flinkcore.__file__).parents[1])
