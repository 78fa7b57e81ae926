"""Side outputs of a job."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.pipeline_executor import OutputStream

if TYPE_CHECKING:
    from flinkcore.datastream.data_stream import DataStream


class SideOutputStream:
    """A side output of a job; each terminal call runs the job.

    To run it once for several outputs, take them from :meth:`DataStream.execute`'s result.
    """

    def __init__(self, main: "DataStream", output_tag: OutputTag) -> None:
        self._main = main
        self._output_tag = output_tag

    def execute(self) -> OutputStream:
        """Run the job and return the rows of this side output."""
        return self._main.execute().get_side_output(self._output_tag)

    def to_arrow(self) -> Any:
        """Run the job and return the rows of this side output as a ``pyarrow.Table``."""
        return self.execute().to_arrow()

    def to_batches(self) -> Iterator[Any]:
        """Run the job and yield the rows of this side output as ``pyarrow.RecordBatch``."""
        return self.execute().to_batches()

    def to_dataframe(self) -> Any:
        """Run the job and return the rows of this side output as a Spark DataFrame.

        Raises
        ------
        ConfigurationError
            If this environment does not run on Spark.
        """
        self._main._require_dataframes()
        return self.execute().to_dataframe()
