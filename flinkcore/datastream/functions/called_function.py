"""The function that the user gave, where flinkcore has put another one around it."""

from typing import Any

from flinkcore.datastream.functions.co_group_window_function import CoGroupWindowFunction
from flinkcore.datastream.functions.reduce_function import ReduceFunctionWrapper


def called_function(function: Any) -> Any:
    """Return the user's function, for messages."""
    wraps = isinstance(function, CoGroupWindowFunction | ReduceFunctionWrapper)
    return function.wrapped_function if wraps else function
