"""What results need to know of the plan that they come from."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from flinkcore.common.output_tag import OutputTag
from flinkcore.replay.plans.keyed_operator import KeyedOperator


class OutputPlan(Protocol):
    """The outputs of a job: those of a `ReplayPlan` or of a `JobPlan`."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Columns that make up the key of the last operator."""

    @property
    def operator(self) -> KeyedOperator:
        """The last operator."""

    def side_outputs(self) -> tuple[OutputTag, ...]:
        """Return the tags of all side outputs."""

    def side_output_schema(self, output_tag: OutputTag) -> pa.Schema:
        """Return the columns of a side output.

        Raises
        ------
        ConfigurationError
            If the job has no side output with this tag.
        """
