"""Functions called for the rows of each key and window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa

from flinkcore.columnar.operator_plans.native_windows import window_timestamps
from flinkcore.columnar.operator_plans.operator_plan import OperatorWindows
from flinkcore.columnar.operator_plans.shown_settings import shown_settings
from flinkcore.columnar.operator_plans.user_process import UserProcess
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.window import LocalEventTimeWindows, WindowOperation


class OverWindows(UserProcess):
    """Properties of functions over windows, of one input or of two."""

    described_as: ClassVar[str]

    function: WindowOperation

    @property
    def function_name(self) -> str:
        """The class of the function that gives the results."""
        return self.function.function_names[-1]

    @property
    def needs_event_time(self) -> bool:
        return self.function.assigner.is_event_time()

    @property
    def timestamp_range(self) -> tuple[int, int]:
        """Timestamps whose windows have bounds of 64 bits, as far as the timestamp alone decides."""
        return window_timestamps(self.function.assigner)

    @property
    def has_windows(self) -> bool:
        return True

    @property
    def local_windows(self) -> LocalEventTimeWindows | None:
        assigner = self.function.assigner
        return assigner if isinstance(assigner, LocalEventTimeWindows) else None

    @property
    def sets_timers(self) -> bool:
        return False

    def describe(self, inputs: Sequence[pa.Schema]) -> dict[str, str]:
        settings = ("assigner", "trigger", "evictor", "allowed_lateness_ms", "pre_aggregation")
        return {"operator": self.described_as, **shown_settings(self.function, settings)}


@dataclass(frozen=True)
class WindowProcess(OverWindows):
    """Functions called for the rows of each key and window.

    Attributes
    ----------
    function : WindowOperation
    output_type : pyarrow.Schema or None
        Columns of the results, or None for those of the rows, which `bound_to` then fills in.
    """

    uid_prefix: ClassVar[str] = "window"
    described_as: ClassVar[str] = "functions over windows"

    function: WindowOperation

    def bound_to(self, inputs: Sequence[pa.Schema]) -> WindowProcess:
        return self if self.output_type is not None else replace(self, output_type=inputs[0])

    @property
    def late_tags(self) -> tuple[OutputTag | None, ...]:
        return (self.function.late_tag,)

    @property
    def windows(self) -> OperatorWindows:
        windows = self.function
        return OperatorWindows(windows.assigner, windows.trigger, windows.allowed_lateness_ms)
