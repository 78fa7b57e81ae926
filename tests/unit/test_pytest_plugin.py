"""The pytest plugin in a pytest of its own, as a user's project has it."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import flinkcore

FUNCTIONS = """
import pytest
from flinkcore.datastream import KeyedProcessFunction
from flinkcore.datastream.state import ValueStateDescriptor

class Keep(KeyedProcessFunction):
    closed = []
    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last"))
    def process_element(self, value, ctx):
        self.last.update(value)
        ctx.timer_service().register_event_time_timer(10)
    def on_timer(self, timestamp, ctx):
        self.last.clear()
    def close(self):
        self.closed.append(self)

@pytest.fixture
def harness(flinkcore_harnesses):
    return flinkcore_harnesses.for_keyed_process_function(Keep(), lambda value: value)
"""


# Whether the package is installed or not, the plugin is there once.
PLUGIN = ("-p", "no:flinkcore", "-p", "flinkcore.pytest_plugin", "-W", "error", "--strict-markers")


def run_pytest(folder: Path, tests: str, options: Sequence[str] = PLUGIN) -> str:
    (folder / "test_it.py").write_text(tests)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, "test_it.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(flinkcore.__file__).parents[1])},
        capture_output=True,
        text=True,
    ).stdout


def test_harnesses_are_closed_at_the_end_of_a_test(tmp_path: Path) -> None:
    output = run_pytest(
        tmp_path,
        FUNCTIONS
        + """
def test_it(harness):
    harness.process_element("a", 1)
    assert Keep.closed == []

def test_it_was_closed_without_a_look_at_leaks():
    assert len(Keep.closed) == 1

def test_a_clock_stands_still(flinkcore_clock):
    flinkcore_clock.advance_by(5)
    assert flinkcore_clock.current_processing_time() == 5
""",
    )
    assert "3 passed" in output, output


def test_leaks_are_errors_on_request_unless_the_test_has_failed_anyhow(tmp_path: Path) -> None:
    output = run_pytest(
        tmp_path,
        FUNCTIONS
        + """
pytestmark = pytest.mark.flinkcore_no_leaks

def test_leaky(harness):
    harness.process_element("a", 1)

def test_failing(harness):
    harness.process_element("a", 1)
    assert False

def test_tight(harness):
    harness.process_element("a", 1)
    harness.process_watermark(10)

def test_all_were_closed():
    assert len(Keep.closed) == 3
""",
    )
    assert "1 failed, 3 passed, 1 error" in output, output
    assert "ERROR test_it.py::test_leaky - AssertionError: 'operator' leaves behind" in output


def test_a_failed_comparison_shows_the_users_line_and_both_sides(tmp_path: Path) -> None:
    output = run_pytest(
        tmp_path,
        """
from flinkcore.testing import StreamRecord, assert_output

def test_by_call():
    assert_output([StreamRecord("a", 1)], [StreamRecord("a", 2)])

def test_by_statement():
    assert [StreamRecord("b", 1)] == [StreamRecord("b", 2)]

def test_of_something_else():
    assert ["c"] == ["d"]
""",
    )
    assert "> 0  'a' @ 2   'a' @ 1  timestamp: 1, not 2" in output, output
    assert "> 0  'b' @ 2   'b' @ 1  timestamp: 1, not 2" in output
    assert "At index 0 diff: 'c' != 'd'" in output
    assert "output_assertion.py" not in output


def test_nothing_is_imported_before_a_fixture_is_asked_for(tmp_path: Path) -> None:
    output = run_pytest(
        tmp_path,
        """
import sys

def test_it():
    heavy = {"numpy", "pyarrow", "flinkcore.errors", "flinkcore.common", "flinkcore.testing"}
    assert not heavy & set(sys.modules)
""",
    )
    assert "1 passed" in output, output


def test_without_the_plugin_there_are_no_fixtures(tmp_path: Path) -> None:
    output = run_pytest(tmp_path, "def test_it(flinkcore_harnesses): ...", ["-p", "no:flinkcore"])
    assert "fixture 'flinkcore_harnesses' not found" in output
