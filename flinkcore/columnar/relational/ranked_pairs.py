"""The kernels of a join and of a rank as one: pairs of rows go from the first to the second by number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._native.join_kernel import JoinKernel
from flinkcore._native.relational import KernelResults
from flinkcore._native.top_rows import TopKernel
from flinkcore.columnar.operator_plans.row_ranking import SortWords

MOST_ROWS: Final = (1 << 31) - 1
"""Rows of an input must have lower numbers, so that a pair is one number."""

_LOW: Final = (1 << 32) - 1


def pairs_of(left: Int64s, right: Int64s) -> Int64s:
    """Return the numbers of pairs of rows, of which one may be -1, for none."""
    pairs: Int64s = (left + 1) << 32 | (right + 1)
    return pairs


def rows_of(pairs: Int64s) -> tuple[Int64s, Int64s]:
    """Return the numbers of the left and the right rows of pairs."""
    return (pairs >> 32) - 1, (pairs & _LOW) - 1


class RankedPairs:
    """A join whose results a rank takes in; see `flinkcore.columnar.relational.kernel.RelationalKernel` for its verbs.

    `process` and `take` are those of the join: the stage evaluates the condition, and offers the pairs to the rank.

    Parameters
    ----------
    join : JoinKernel
    top : TopKernel
        Its rows are numbers of pairs.
    sort_words : callable
        Returns the sort keys of pairs with these left and right rows and event times.
    """

    def __init__(
        self, join: JoinKernel, top: TopKernel, sort_words: Callable[[Int64s, Int64s, Int64s], SortWords]
    ) -> None:
        self.join, self.top = join, top
        self._sort_words = sort_words
        self._is_joined = False

    @property
    def process(self) -> Callable[..., int]:
        return self.join.process

    def advance(self, steps_before: int) -> bool:
        """Let the join go on, and once its pairs have been offered, the rank."""
        return self._after_join(
            lambda: self.join.advance(steps_before), lambda: self.top.advance(steps_before)
        )

    def finish(self) -> bool:
        return self._after_join(self.join.finish, self.top.finish)

    def _after_join(self, join: Callable[[], bool], rank: Callable[[], bool]) -> bool:
        if not self._is_joined:
            self._is_joined = join()
            return False
        done = rank()
        self._is_joined = not done
        return done

    @property
    def is_full(self) -> bool:
        return bool(self.join.is_full)

    def pairs(self) -> tuple[Int64s, Int64s]:
        """Return the pairs that wait for the condition."""
        return self.join.pairs()

    def take(self, *passed: Any) -> KernelResults:
        return self.join.take(*passed)

    def counts(self) -> dict[str, int]:
        """Counts of the join's events, of timers, and of the pairs that were late for their window."""
        ranked = self.top.counts()
        return {**self.join.counts(), "late_pairs": ranked["late"]}

    @property
    def current_watermark(self) -> int:
        return int(self.join.current_watermark)

    def memory_bytes(self) -> int:
        return int(self.join.memory_bytes() + self.top.memory_bytes())

    @property
    def live_count(self) -> int:
        return int(self.join.live_count + 2 * self.top.live_count)

    def live_rows(self, input_number: int) -> Int64s:
        of_pairs = rows_of(self.top.live_rows())[input_number]
        return np.concatenate([self.join.live_rows(input_number), of_pairs[of_pairs >= 0]])

    def renumber(self, rows: Int64s, input_number: int) -> None:
        n_joined = len(self.join.live_rows(input_number))
        self.join.renumber(rows[:n_joined], input_number)
        sides = rows_of(self.top.live_rows())
        of_pairs = sides[input_number]
        of_pairs[of_pairs >= 0] = rows[n_joined:]
        self.top.renumber(pairs_of(*sides))

    def snapshot(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the tables of the join, and `top` with `row` and `right_row` in place of the pairs."""
        top = dict(self.top.snapshot()["top"])
        left, right = rows_of(top.pop("row"))
        return {
            **self.join.snapshot(),
            "top": {"key": top.pop("key"), "row": left, "right_row": right, **top},
        }

    def restore(self, table: str, keys: Int64s, rows: dict[str, Any], columns: pa.RecordBatch) -> None:
        if table != "top":
            self.join.restore(table, keys, rows, columns)
            return
        left, right = rows["row"], rows["right_row"]
        words = self._sort_words(left, right, columns.column("timestamp").to_numpy())
        self.top.restore(table, keys, {"row": pairs_of(left, right), **words._asdict()}, columns)
