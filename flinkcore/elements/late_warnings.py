"""Warnings of late records that operators over single elements have dropped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from flinkcore._internal.python.user_warnings import warn_user
from flinkcore._internal.show.durations import shown_duration
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.graph.element_transformations import SourceTransformation
from flinkcore.datastream.graph.transformations import TimestampsAndWatermarksTransformation, Transformation
from flinkcore.elements.tasks.stream_graph import StreamNode
from flinkcore.errors import LateEventsWarning
from flinkcore.operators.late_records import LateRecords


def warn_of_late_records(late_records: Mapping[StreamNode, LateRecords], most_share: float) -> None:
    """Warn of each operator that has dropped a larger share of its records as late than the job accepts.

    Parameters
    ----------
    late_records : mapping of StreamNode to LateRecords
    most_share : float
        Share of late records above which to warn.
    """
    for node, late in late_records.items():
        if late.dropped > most_share * late.records:
            from flinkcore.columnar.results.late_events import LossWarning  # loads pyarrow

            warning = LossWarning(f" of {node.name!r}", "are dropped", (_advice(node, late.missed_ms),))
            warn_user(warning.text(late.dropped, late.records), LateEventsWarning)


def _advice(node: StreamNode, missed_ms: int) -> str:
    """Return by how much watermarks were ahead of late records, and what to change."""
    bounds = {strategy.out_of_orderness_ms for strategy in _strategies(node.transformation)}
    bound_ms = bounds.pop() if len(bounds) == 1 else None
    if bound_ms is None:
        remedy = f"watermark strategies that trail the elements by {missed_ms:,} ms more lose none"
    else:
        remedy = (
            f"for_bounded_out_of_orderness(Duration.of_millis({bound_ms + missed_ms})) loses none, where the bound is "
            f"{shown_duration(bound_ms)} now"
        )
    return (
        f"The watermark was ahead of them by up to {shown_duration(missed_ms, 2)}: {remedy}. If single elements are "
        "far ahead of all others, filter them out before assign_timestamps_and_watermarks. A side output for late "
        "data keeps late elements."
    )


def _strategies(step: Transformation) -> Iterator[WatermarkStrategy]:
    """Yield the nearest watermark strategies upstream of a step."""
    open_steps, seen = [step], {id(step)}
    while open_steps:
        step = open_steps.pop()
        if isinstance(step, TimestampsAndWatermarksTransformation | SourceTransformation):
            if step.strategy is not None:
                yield step.strategy
            continue
        open_steps += [given for given in step.inputs() if id(given) not in seen]
        seen.update(map(id, step.inputs()))
