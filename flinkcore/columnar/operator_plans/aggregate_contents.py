"""Description of an operator's aggregates in a checkpoint, whose accumulators are then read without the job."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from flinkcore.errors import CheckpointError
from flinkcore.sql.plan.flink_state import SETTING as FLINK_STATE

if TYPE_CHECKING:
    from typing_extensions import Self

CONTENTS: Final = "contents"
"""Name of the setting in the description of a job."""


@dataclass(frozen=True)
class AggregateContents:
    """Aggregates over columns.

    Attributes
    ----------
    aggregates : tuple of tuple
        Name, function, column, `by` and percentage of each.
    columns : pyarrow.Schema
        Columns that the aggregates read.
    """

    aggregates: tuple[tuple[str, str, str | None, str | None, float | None], ...]
    columns: pa.Schema

    def to_text(self) -> str:
        """Return the contents as text for the description of a job."""
        schema = base64.b64encode(self.columns.remove_metadata().serialize().to_pybytes()).decode()
        return json.dumps({**self.__dict__, "columns": schema})

    @classmethod
    def of_job(cls, job: Mapping[str, Any], uid: str) -> Self | None:
        """Return the contents of an operator from the description of its job, or None if it has none.

        Raises
        ------
        CheckpointError
            If the description is not as flinkcore writes it.
        """
        text = job.get(f"{uid}: {CONTENTS}", job.get(CONTENTS))
        if text is None:
            return None
        try:
            content = json.loads(text)
            schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(content.pop("columns"))))
            aggregates = tuple(
                (str(name), str(function), column, by, percentage)
                for name, function, column, by, percentage in content.pop("aggregates")
            )
            return cls(aggregates, schema, **content)
        except (ValueError, TypeError, KeyError, pa.ArrowException) as failure:
            raise CheckpointError(f"the checkpoint does not describe the aggregates of {uid!r}") from failure


def is_contents(setting: str) -> bool:
    """Return whether a setting in the description of a job is for reading its state, and says nothing else."""
    return setting.rpartition(": ")[2] in (CONTENTS, FLINK_STATE)
