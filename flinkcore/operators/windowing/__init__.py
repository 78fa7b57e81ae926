"""Windows, element by element: their operators, and the windows in flight that merge."""

from flinkcore.operators.windowing.merging_windows import MergingWindowSet
from flinkcore.operators.windowing.window_operator import (
    EvictingWindowOperator,
    WindowOperator,
    make_window_operator,
)

__all__ = ["EvictingWindowOperator", "MergingWindowSet", "WindowOperator", "make_window_operator"]
