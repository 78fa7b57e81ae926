"""PyFlink's ``pyflink.datastream.functions`` names: what a user derives a function from."""

from flinkcore.datastream.functions.co_process_function import CoProcessFunction
from flinkcore.datastream.functions.function import Function, Results
from flinkcore.datastream.functions.keyed_co_process_function import KeyedCoProcessFunction
from flinkcore.datastream.functions.keyed_process_function import KeyedProcessFunction
from flinkcore.datastream.functions.process_function import ProcessFunction
from flinkcore.datastream.functions.runtime_context import RuntimeContext

__all__ = [
    "CoProcessFunction",
    "Function",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "ProcessFunction",
    "Results",
    "RuntimeContext",
]
