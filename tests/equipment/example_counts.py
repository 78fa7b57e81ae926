"""How many examples properties draw: half as many for each change, and ten times as many at night."""

import os

from equipment.sampling import ALL


def examples(number: int) -> int:
    """Return so many times FLINKCORE_TEST_EXAMPLES; without that and FLINKCORE_TEST_ALL, half as many."""
    if "FLINKCORE_TEST_EXAMPLES" in os.environ:
        return number * int(os.environ["FLINKCORE_TEST_EXAMPLES"])
    return number if ALL else -(-number // 2)
