"""Windows element by element: the operators, and the windows in flight that merge."""

from flinkcore.runtime.windowing.evicting_window_operator import EvictingWindowOperator
from flinkcore.runtime.windowing.make_window_operator import make_window_operator
from flinkcore.runtime.windowing.merging_window_set import MergingWindowSet
from flinkcore.runtime.windowing.window_operator import WindowOperator

__all__ = ["EvictingWindowOperator", "MergingWindowSet", "WindowOperator", "make_window_operator"]
