"""Warnings of rejected rows: how many, for which reasons, and why a column is null in all of a file or its messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from flinkcore._internal.show.durations import shown_share
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.columnar.plans.log_plan import LogPlan
from flinkcore.columnar.results.late_events import OnChunks
from flinkcore.log.sources.chunks import Chunk


def rejection_warning(plan: JobPlan, rejected: Counter[str], rows: int, on_chunks: OnChunks) -> str | None:
    """Return a warning if a larger share of the rows of the logs is rejected than the job accepts.

    Parameters
    ----------
    plan : JobPlan
        The job.
    rejected : Counter of str
        Rejected rows, by reason.
    rows : int
        All rows that were read.
    on_chunks : callable
        Reads a log again, in search of a column that is null in all rows of a file.

    Returns
    -------
    str or None
        The share, the reasons, and what to change.
    """
    total = rejected.total()
    if total <= plan.late_share_warning * rows:
        return None
    tags = dict.fromkeys(repr(log.rejected_tag.tag_id) for log in plan.logs if log.rejected_tag is not None)
    fate = f"go to the side output {' or '.join(tags)}" if tags else "are dropped"
    reasons = ", ".join(f"{reason} ({count:,})" for reason, count in rejected.most_common())
    head = f"{shown_share(total / rows)} of the rows are rejected and {fate}: {total:,} of {rows:,}, for {reasons}."
    why = None
    with suppress(Exception):  # the results are there: what only explains them fails nothing
        why = _why_null(plan, rejected, on_chunks)
    if why is None:
        why = (
            "" if tags else ' In a program, an OutputTag instead of "drop" collects them with their reasons.'
        )
    return head + why


def _why_null(plan: JobPlan, rejected: Counter[str], on_chunks: OnChunks) -> str | None:
    """Return why a column is null that rows were rejected for, from the first file that shows it."""
    for reason, _ in rejected.most_common():
        for number, log in enumerate(plan.logs):
            column = _column(log, reason)
            if column:
                found = next(iter(on_chunks(number, _WhyNull(column))), None)
                if found is not None:
                    return f" {reason.capitalize()}: {found.decode()}."
    return None


def _column(log: LogPlan, reason: str) -> str | None:
    """Return the column whose nulls are rejected for a reason, or None if the reason is not a null column."""
    if reason == f"null key {log.key.never_null!r}":
        return log.key.never_null
    return log.data_reader().columns_of_nulls.get(reason)


@dataclass(frozen=True)
class _WhyNull:
    """Looks up in a chunk why a column is null; picklable.

    Attributes
    ----------
    column : str
    """

    column: str

    def __call__(self, chunk: Chunk) -> Iterator[bytes]:
        for file in chunk.parts:
            why = file.why_null(self.column)
            if why is not None:
                yield f"{why}, as in {file.label}".encode()
                return
