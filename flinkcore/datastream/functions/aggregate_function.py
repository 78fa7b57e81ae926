"""Functions that aggregate values step by step."""

from abc import abstractmethod
from typing import Generic, TypeVar

from flinkcore.datastream.functions.function import Function

IN = TypeVar("IN")
ACC = TypeVar("ACC")
OUT = TypeVar("OUT")


class AggregateFunction(Function, Generic[IN, ACC, OUT]):
    """Aggregates values into an accumulator, whose type may be another than those of values and result.

    Notes
    -----
    Follows ``pyflink.datastream.AggregateFunction``. An accumulator may be changed in place, and is returned
    all the same.
    """

    @abstractmethod
    def create_accumulator(self) -> ACC:
        """Return the accumulator of no value at all."""

    @abstractmethod
    def add(self, value: IN, accumulator: ACC) -> ACC:
        """Return the accumulator with one more value.

        It must return the accumulator, also one that it changes in place: a window whose accumulator is None gives
        nothing.
        """

    @abstractmethod
    def get_result(self, accumulator: ACC) -> OUT:
        """Return the result of what was accumulated."""

    @abstractmethod
    def merge(self, acc_a: ACC, acc_b: ACC) -> ACC:
        """Return the accumulator of what both have accumulated."""
