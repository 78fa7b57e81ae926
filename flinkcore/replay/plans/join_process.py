"""What a plan says about the joins of two streams."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.interval_join_operation import IntervalJoinOperation
from flinkcore.datastream.window import WindowOperation
from flinkcore.replay.plans.connected_inputs import ConnectedInputs
from flinkcore.replay.plans.connected_process import ConnectedProcess
from flinkcore.replay.plans.keyed_operator import window_timestamp_range


@dataclass(frozen=True)
class IntervalJoinProcess(ConnectedProcess):
    """A function called for the pairs of rows of a key whose timestamps are close.

    Attributes
    ----------
    function : IntervalJoinOperation
    """

    function: IntervalJoinOperation

    @property
    def function_name(self) -> str:
        """The function's class, for messages."""
        return type(self.function.function).__qualname__

    @property
    def needs_event_time(self) -> bool:
        """True: without watermarks, everything would wait until the end."""
        return True

    @property
    def late_tags(self) -> tuple[OutputTag | None, ...]:
        """Those of left and of right late rows."""
        return self.function.left_late_tag, self.function.right_late_tag

    @property
    def timestamp_range(self) -> tuple[int, int]:
        """All but the one that stands for none."""
        return MIN_TIMESTAMP + 1, MAX_TIMESTAMP

    def side_output_schema(
        self, output_tag: OutputTag, events: pa.Schema, time_type: pa.DataType
    ) -> pa.Schema:
        """Late rows are as they came; others as of UserProcess."""
        if output_tag in self.late_tags:
            return ConnectedInputs.own_schema(self.late_tags.index(output_tag), events)
        return super().side_output_schema(output_tag, events, time_type)


@dataclass(frozen=True)
class WindowJoinProcess(ConnectedProcess):
    """A function called for what two streams have in each window of a key.

    Attributes
    ----------
    function : WindowOperation
    """

    function: WindowOperation

    @property
    def function_name(self) -> str:
        """The class of the user's function, for messages."""
        return self.function.function_names[-1]

    @property
    def gives_windows(self) -> bool:
        """True."""
        return True

    @property
    def needs_event_time(self) -> bool:
        """Whether the windows do."""
        return self.function.assigner.is_event_time()

    @property
    def unites_inputs(self) -> bool:
        """True: both streams are united, and then cut into windows."""
        return True

    @property
    def timestamp_range(self) -> tuple[int, int]:
        """Timestamps whose windows do not overflow, where the timestamp alone tells."""
        return window_timestamp_range(self.function.assigner)
