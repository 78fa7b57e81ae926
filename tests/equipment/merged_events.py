"""Map tasks that merge events before the shuffle, however few they are, and in small lots."""

import sys
from contextlib import ExitStack
from functools import partial
from unittest.mock import patch

from flinkcore.columnar.operator_plans.partial_windows import PartialWindows
from flinkcore.columnar.plans.job_plan import JobPlan
from flinkcore.columnar.stages.partial_results import MergeLimits
from flinkcore.spark.columnar import replay
from flinkcore.spark.columnar.map_task import MergingEvents
from flinkcore.spark.exchange import block_sender
from flinkcore.spark.exchange.sent_timeline import SentTimeline
from flinkcore.time_plane.timeline import Timeline

limits = MergeLimits()
"""Those of the map tasks of this process."""


def merging_events(plan: JobPlan, timeline: Timeline) -> MergingEvents:
    """How map tasks of a job merge events, which can be merged."""
    windows = plan.partial_windows()
    assert isinstance(windows, PartialWindows), windows
    return MergingEvents(windows, SentTimeline.of(timeline, None), limits)


def merging_within(limits: MergeLimits, least_block_rows: int) -> ExitStack:
    """Within this context, map tasks of this process merge events within these limits."""
    stack = ExitStack()
    stack.enter_context(patch.object(sys.modules[__name__], "limits", limits))
    stack.enter_context(patch.object(replay, "MergingEvents", partial(MergingEvents, limits=limits)))
    stack.enter_context(patch.object(block_sender, "LEAST_BLOCK_ROWS", least_block_rows))
    return stack


def merging_lots_of(events: int) -> ExitStack:
    """Within this context, map tasks of this process merge all they can of so many events at a time."""
    limits = MergeLimits(judged_rows=events, least_events=0.0, most_bytes=events << 10, sent_rows=events)
    return merging_within(limits, 1)
