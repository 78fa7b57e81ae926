"""Aggregate functions of users, as those with which Flink's rows were recorded."""

from __future__ import annotations

from collections.abc import Iterable

from flinkcore.table import AggregateFunction
from flinkcore.table.udf import udaf


class Trace(AggregateFunction):
    """Writes down its calls."""

    def create_accumulator(self) -> list[str]:
        return []

    def accumulate(self, accumulator: list[str], v: int | None) -> None:
        accumulator.append(f"+{'null' if v is None else v}")

    def retract(self, accumulator: list[str], v: int | None) -> None:
        accumulator.append(f"-{'null' if v is None else v}")

    def merge(self, accumulator: list[str], accumulators: Iterable[list[str]]) -> None:
        accumulator += [f"({''.join(each)})" for each in accumulators]

    def get_value(self, accumulator: list[str]) -> str:
        return "".join(accumulator)


class Weighted(AggregateFunction):
    """Adds values times their weights, and divides by the weights; null without any."""

    def create_accumulator(self) -> list[int]:
        return [0, 0]

    def accumulate(self, accumulator: list[int], v: int | None, w: int | None) -> None:
        if v is not None and w is not None:
            accumulator[0] += v * w
            accumulator[1] += w

    def retract(self, accumulator: list[int], v: int | None, w: int | None) -> None:
        if v is not None and w is not None:
            accumulator[0] -= v * w
            accumulator[1] -= w

    def merge(self, accumulator: list[int], accumulators: Iterable[list[int]]) -> None:
        for total, weight in accumulators:
            accumulator[0] += total
            accumulator[1] += weight

    def get_value(self, accumulator: list[int]) -> int | None:
        total, weight = accumulator
        return int(total / weight) if weight else None


FUNCTIONS = {"trace": Trace(), "weighted": Weighted}
"""An object and a class."""

WEIGHTED = udaf(Weighted(), result_type="BIGINT")
DECLARED = {"trace": udaf(Trace(), result_type="STRING"), "weighted": WEIGHTED}
