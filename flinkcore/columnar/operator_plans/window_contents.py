"""Description of the windows in a checkpoint, which are read without the job: aggregates and bounds."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from flinkcore.errors import CheckpointError

CONTENTS: Final = "contents"
"""Name of the setting in the description of a job."""

BEGINNING: Final = "begins with"
"""Name of the setting that windows have if they have begun with those of a savepoint of Flink."""


@dataclass(frozen=True)
class WindowTable:
    """Tables of an operator's windows over columns.

    Attributes
    ----------
    contents : WindowContents
    kind : str
        Name of the kernel.
    """

    contents: WindowContents
    kind: str


@dataclass(frozen=True)
class WindowContents:
    """The aggregates of windows over columns, and how the windows lie in time.

    Attributes
    ----------
    aggregates : tuple of tuple
        Name, function, column, `by` and percentage of each.
    columns : pyarrow.Schema
        Columns that the aggregates read.
    size_ms, slide_ms : int
        Length and slide of windows with a fixed length; else 0.
    lateness_ms : int
        Allowed lateness.
    trigger : str
        Name of the trigger, such as ``event_time`` or ``count``.
    every : int
        Its number of elements or ms.
    purges : bool
        Whether a firing empties a window.
    is_global : bool
        Whether each key has one window without end.
    keeps_results : bool
        Whether windows also hold what they have given before.
    """

    aggregates: tuple[tuple[str, str, str | None, str | None, float | None], ...]
    columns: pa.Schema
    size_ms: int
    slide_ms: int
    lateness_ms: int
    trigger: str
    every: int
    purges: bool
    is_global: bool
    keeps_results: bool

    def to_text(self) -> str:
        """Return the contents as text for the description of a job."""
        schema = base64.b64encode(self.columns.remove_metadata().serialize().to_pybytes()).decode()
        return json.dumps({**self.__dict__, "columns": schema})

    @classmethod
    def of_job(cls, job: Mapping[str, Any], uid: str) -> WindowContents | None:
        """Return the contents of an operator's windows from the description of its job, or None if it has none.

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
            raise CheckpointError(f"the checkpoint does not describe the windows of {uid!r}") from failure


def began_with_savepoint(job: Mapping[str, Any], uid: str) -> bool:
    """Return whether the windows of an operator began with a savepoint of Flink, by the description of its job."""
    return job.get(f"{uid}: {BEGINNING}", job.get(BEGINNING)) is not None


def is_contents(setting: str) -> bool:
    """Return whether a setting in the description of a job is that of windows, which others say in words."""
    return setting.rpartition(": ")[2] == CONTENTS
