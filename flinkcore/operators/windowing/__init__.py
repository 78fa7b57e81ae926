"""Windows of functions: the window operator, its panes and its merging windows. Private."""

from flinkcore.operators.windowing.merging_windows import MergingWindowSet
from flinkcore.operators.windowing.window_operator import (
    EvictingWindowOperator,
    WindowOperator,
    make_window_operator,
)

__all__ = ["EvictingWindowOperator", "MergingWindowSet", "WindowOperator", "make_window_operator"]
