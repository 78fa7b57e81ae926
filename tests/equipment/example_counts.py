"""How many examples properties draw that take long: few by default, and more at night."""

import os


def examples(number: int) -> int:
    """Return so many, times FLINKCORE_TEST_EXAMPLES."""
    return number * int(os.environ.get("FLINKCORE_TEST_EXAMPLES", "1"))
