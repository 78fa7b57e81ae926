#!/usr/bin/env python3
"""Print the test files that take long, the longest first, with their seconds.

    .venv/bin/pytest --junit-xml=durations.xml
    .venv/bin/python .ci/durations.py durations.xml > tests/durations.txt

The workers of pytest-xdist take the files in the order of `tests/durations.txt`, and those that it does not have last.
"""

import sys
from collections import Counter
from xml.etree import ElementTree

LEAST_SECONDS = 5


def seconds_of_files(report: str) -> Counter[str]:
    """Return the seconds of each test file in a report in JUnit's format."""
    seconds: Counter[str] = Counter()
    for case in ElementTree.parse(report).iter("testcase"):
        parts = case.attrib["classname"].split(".")
        at = next(number for number, part in enumerate(parts) if part.startswith("test_"))
        seconds["/".join(parts[: at + 1]) + ".py"] += float(case.attrib["time"])
    return seconds


if __name__ == "__main__":
    for path, spent in seconds_of_files(sys.argv[1]).most_common():
        if spent >= LEAST_SECONDS:
            print(f"{spent:.0f} {path}")
