"""Functions at the end of a stream."""

from abc import abstractmethod
from typing import Any

from flinkcore.datastream.functions.function import Function


class SinkFunction(Function):
    """Takes every element of a stream somewhere.

    Notes
    -----
    ``pyflink.datastream.functions.SinkFunction`` wraps a Java function; here a sink is a function in Python.
    """

    @abstractmethod
    def invoke(self, value: Any) -> None:
        """Take an element."""
