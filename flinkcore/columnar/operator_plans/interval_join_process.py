"""A function called for the pairs of rows of a key whose timestamps are close."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from flinkcore.columnar.operator_plans.shown_settings import shown_settings
from flinkcore.columnar.operator_plans.user_process import UserProcess
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.graph.interval_join_operation import IntervalJoinOperation


@dataclass(frozen=True)
class IntervalJoinProcess(UserProcess):
    """A function called for the pairs of rows of a key whose timestamps are close.

    Attributes
    ----------
    function : IntervalJoinOperation
    """

    function: IntervalJoinOperation

    @property
    def function_name(self) -> str:
        return type(self.function.function).__qualname__

    @property
    def needs_event_time(self) -> bool:
        """True: without watermarks, everything would wait until the end."""
        return True

    @property
    def timestamp_range(self) -> tuple[int, int]:
        """All but the one that stands for none."""
        return MIN_TIMESTAMP + 1, MAX_TIMESTAMP

    @property
    def late_tags(self) -> tuple[OutputTag | None, ...]:
        return self.function.left_late_tag, self.function.right_late_tag

    def describe(self, inputs: Sequence[pa.Schema]) -> dict[str, str]:
        bounds = "least_difference_ms", "greatest_difference_ms"
        return {"operator": "interval join", **shown_settings(self.function, bounds)}
