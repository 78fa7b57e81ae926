"""How many examples tests of whole jobs draw: each takes long, so few by default, and more at night."""

import os


def examples(number: int) -> int:
    """So many, times FLINKCORE_TEST_EXAMPLES."""
    return number * int(os.environ.get("FLINKCORE_TEST_EXAMPLES", "1"))
