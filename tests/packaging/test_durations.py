"""The files that take long, which the workers of pytest-xdist take first."""

import subprocess
import sys
from pathlib import Path

from equipment.durations import seconds_of_file, seconds_of_files

ROOT = Path(__file__).parents[2]

REPORT = """<testsuites><testsuite>
<testcase classname="tests.unit.test_short" name="test_one" time="4.9" />
<testcase classname="tests.unit.test_long" name="test_one" time="3.2" />
<testcase classname="tests.unit.test_long.TestMachine" name="runTest" time="2.3" />
<testcase classname="tests.differential.test_longest" name="test_one[a.b]" time="71" />
</testsuite></testsuites>"""


def test_the_files_of_a_report_that_take_long_are_listed_with_the_longest_first(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    command = [sys.executable, ROOT / ".ci" / "durations.py", tmp_path / "report.xml"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert listed == "71 tests/differential/test_longest.py\n6 tests/unit/test_long.py\n"


def test_the_files_that_are_listed_are_there() -> None:
    assert [path for path in seconds_of_files() if not (ROOT / path).exists()] == []


def test_a_test_has_the_seconds_of_its_file_and_of_a_file_that_is_not_listed_none() -> None:
    seconds = seconds_of_files()
    assert [*seconds.values()] == sorted(seconds.values(), reverse=True)
    assert {path: seconds_of_file(f"{path}::test_one[a::b]") for path in seconds} == seconds
    assert seconds_of_file("tests/unit/test_nothing.py::test_one") == 0
