"""Map tasks that merge events before the shuffle, however few they are, and in small lots."""

from contextlib import ExitStack
from unittest.mock import patch

from flinkcore.columnar.operator_plans.partial_windows import PartialWindows
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.columnar.stages import partial_results
from flinkcore.spark.columnar import map_task
from flinkcore.spark.columnar.map_task import MergingEvents
from flinkcore.spark.exchange import block_sender
from flinkcore.spark.exchange.sent_timeline import SentTimeline
from flinkcore.time_plane.timeline import Timeline


def merging_events(plan: JobPlan, timeline: Timeline) -> MergingEvents:
    """How map tasks of a job merge events, which can be merged."""
    windows = plan.partial_windows()
    assert isinstance(windows, PartialWindows), windows
    return MergingEvents(windows, SentTimeline.of(timeline, None))


def merging_lots_of(events: int) -> ExitStack:
    """Within this context, map tasks of this process merge all they can of so many events at a time."""
    stack = ExitStack()
    for module, name, value in (
        (map_task, "JUDGED_ROWS", events),
        (block_sender, "LEAST_BLOCK_ROWS", 1),
        (partial_results, "LEAST_EVENTS", 0.0),
        (partial_results, "MOST_ENTRIES", 256 * events),
        (partial_results, "SENT_ROWS", events),
    ):
        stack.enter_context(patch.object(module, name, value))
    return stack
