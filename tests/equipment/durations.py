"""The test files that take long, as .ci/durations.py lists them in tests/durations.txt."""

from functools import cache
from pathlib import Path

LISTED = Path(__file__).parents[1] / "durations.txt"


@cache
def seconds_of_files() -> dict[str, int]:
    """Return the seconds of each file that is listed."""
    lines = LISTED.read_text(encoding="utf-8").splitlines()
    return {path: int(seconds) for seconds, path in map(str.split, lines)}


def seconds_of_file(node_id: str) -> int:
    """Return the seconds of the file of a test, 0 if the file is not listed."""
    return seconds_of_files().get(node_id.partition("::")[0], 0)
