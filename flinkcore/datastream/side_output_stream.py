"""Side outputs of a job."""

from __future__ import annotations

from os import PathLike

from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.element_transformations import SideOutputTransformation
from flinkcore.datastream.pipeline_executor import OutputStream, ProgressListener
from flinkcore.datastream.transformations import StreamGraph, Transformation


class SideOutputStream(DataStream):
    """A side output of a step; of a columnar job each terminal call runs the job.

    To run a columnar job once for several outputs, take them from :meth:`DataStream.execute`'s result. Calls of
    functions on a side output make the job one that runs element by element.

    Parameters
    ----------
    main : DataStream
        The end of the job.
    step : Transformation
        That has the side output.
    output_tag : OutputTag
    """

    def __init__(self, main: DataStream, step: Transformation, output_tag: OutputTag) -> None:
        super().__init__(main.get_execution_environment(), SideOutputTransformation(step, output_tag))
        self._main = main
        self._output_tag = output_tag

    def execute(  # type: ignore[override]
        self,
        progress: ProgressListener | None = None,
        *,
        restore_from: str | PathLike[str] | None = None,
        stop_with_checkpoint: str | PathLike[str] | None = None,
    ) -> OutputStream:
        """Run the job and return the rows of this side output; parameters as of :meth:`DataStream.execute`."""
        result = self._main.execute(
            progress, restore_from=restore_from, stop_with_checkpoint=stop_with_checkpoint
        )
        return result.get_side_output(self._output_tag)

    def explain(self) -> str:
        """Return the steps of the job as text, one per line, each with the path that it takes."""
        is_columnar = not StreamGraph(self._main._transformation).needs_rows
        return self._main.explain() if is_columnar else super().explain()
