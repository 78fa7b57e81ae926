"""The steps of a job as text, for `explain` and for notebooks."""

from flinkcore.datastream.graph.columnar_windows import why_not_columnar
from flinkcore.datastream.graph.transformations import StreamGraph, Transformation, WindowTransformation


def numbered_steps(last: Transformation) -> str:
    """Return the steps up to the last one, a line for each, with the way in which it runs."""
    needs_rows = StreamGraph(last).needs_rows
    steps = enumerate(last.in_order(), 1)
    return "\n".join(f"{number:>3}. [{_path(step, needs_rows)}] {step}" for number, step in steps)


def _path(step: Transformation, needs_rows: bool) -> str:
    """Return how a step runs in its job, and why, if it differs from the step's own path."""
    if isinstance(step, WindowTransformation):
        refusal = why_not_columnar(step.assigner, step.trigger, step.evictor)
        if refusal is not None:
            return f"refused: {refusal}"
    if step.needs_rows or not needs_rows or step.path == "rows":
        return step.path
    return "rows, as other steps of the job call functions"
