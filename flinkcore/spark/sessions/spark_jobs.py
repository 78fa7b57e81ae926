"""The jobs of a replay as Spark shows them: their descriptions, their group, and what became of the events."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from flinkcore.spark.sessions.session import check_is_running, spark_context

DESCRIPTION: Final = "spark.job.description"
GROUP: Final = "spark.jobGroup.id"
PREFIX: Final = "flinkcore: "

_WAITS: Final = 50
_WAIT_S: Final = 0.1


class SparkJobs:
    """The jobs that a replay runs: Spark's UI and status API show them with a description and one group.

    A description of the user's stays in front, and jobs stay in a group of the user's. Spark Connect, and platforms
    that give nobody access to the SparkContext, show neither.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
    """

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._group = f"flinkcore-{secrets.token_hex(4)}"

    @contextmanager
    def described(self, description: str) -> Iterator[None]:
        """Describe the jobs that this thread runs within the block; an interrupt cancels them.

        Within another such block this description takes the place of that one.

        Raises
        ------
        LifecycleError
            If the session has been stopped.
        """
        check_is_running(self._spark)
        before = self._properties()
        if before is None:
            yield
            return
        of_user, of_others, _ = (before[DESCRIPTION] or "").partition(PREFIX)
        in_front = of_user if of_others or not of_user else f"{of_user}: "
        group = before[GROUP] or self._group
        self._set({DESCRIPTION: f"{in_front}{PREFIX}{description}", GROUP: group})
        try:
            with self._cancelled_on_interrupt(group):
                yield
        finally:
            self._set(before)

    @contextmanager
    def cancelled_on_interrupt(self) -> Iterator[None]:
        """Cancel the jobs of this thread's group, or else of the replay's, if the block is interrupted."""
        with self._cancelled_on_interrupt((self._properties() or {}).get(GROUP) or self._group):
            yield

    @contextmanager
    def _cancelled_on_interrupt(self, group: str) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            # PySpark's own handler cannot reach the JVM where it interrupts a call that is under way.
            with suppress(Exception):
                spark_context(self._spark).cancelJobGroup(group)
            raise

    def wait_for_tasks(self) -> None:
        """Wait, for 5 s at most, until no task of the group's jobs runs: Spark kills those of a failed job later."""
        context = spark_context(self._spark)
        group = (self._properties() or {}).get(GROUP) or self._group
        with suppress(Exception):  # as where a platform refuses the methods of the context
            tracker = context.statusTracker()
            jobs = map(tracker.getJobInfo, tracker.getJobIdsForGroup(group))
            stages = [stage for job in jobs if job is not None for stage in job.stageIds]
            for _ in range(_WAITS):
                running = map(tracker.getStageInfo, stages)
                if not any(stage is not None and stage.numActiveTasks for stage in running):
                    return
                time.sleep(_WAIT_S)

    def show_counts(self, counts: Mapping[str, int]) -> None:
        """Show counts of a replay that has ended among the queries of the session.

        Spark has no accumulators that Python tasks could count in and that its UI shows. So this is a query of no rows,
        described by the counts, for which Spark runs no job and parses no SQL.
        """
        if self._properties() is None:
            return
        with self.described(", ".join(f"{count:,} {name}" for name, count in counts.items())):
            self._spark._jsparkSession.emptyDataFrame().collect()

    def _properties(self) -> dict[str, str | None] | None:
        context = spark_context(self._spark)
        with suppress(Exception):  # as where a platform refuses the methods of the context
            return {name: context.getLocalProperty(name) for name in (DESCRIPTION, GROUP)}
        return None

    def _set(self, properties: Mapping[str, str | None]) -> None:
        context = spark_context(self._spark)
        with suppress(Exception):
            for name, value in properties.items():
                context.setLocalProperty(name, value)
