"""Rows with columns that a job over event logs gives: how they are taken."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any

from flinkcore._internal.python.missing_features import WithoutItems, missing_features
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.functions import FunctionOrCallable
from flinkcore.datastream.graph.element_transformations import SideOutputTransformation
from flinkcore.datastream.graph.pipeline_executor import ProgressListener, RestoreFrom
from flinkcore.datastream.graph.transformations import Transformation
from flinkcore.datastream.stream import Stream
from flinkcore.errors import ConfigurationError

if TYPE_CHECKING:
    from flinkcore import JobResult, SideOutput
    from flinkcore.datastream.logs.log_stream import LogStream


class LogRows(WithoutItems, Stream):
    """Rows of a job over event logs: its results, or one of its side outputs.

    Each of the calls that return or print rows runs the job. To get several outputs or the report of one run, take them
    from the result of :meth:`LogStream.execute`.
    """

    @abstractmethod
    def execute(self) -> JobResult | SideOutput:
        """Return the rows of the job."""

    def _call_instead(self, name: str) -> str:
        return missing_features().stream_methods[name]

    @property
    def schema(self) -> Any:
        """The columns of the rows with their types, a ``pyarrow.Schema``; files are asked for it, and no job runs.

        Raises
        ------
        ConfigurationError, SchemaError, SourceError
            If the job cannot be planned, as of :meth:`execute`.
        """
        planned = self.execute()
        planned.discard()
        return planned.schema

    @property
    def columns(self) -> list[str]:
        """The names of the columns; errors as of :attr:`schema`."""
        return list(self.schema.names)

    def elements(self) -> DataStream:
        """Return the rows as a stream of single elements, each a ``flinkcore.common.Row``.

        From here on the steps are those of PyFlink, with Python functions, and the whole job runs element by element.
        """
        return DataStream(self._environment, self._transformation)

    def map(self, func: FunctionOrCallable, output_type: TypeInformation | None = None) -> DataStream:
        """Return the result of a function for each row; as :meth:`DataStream.map` of the :meth:`elements`."""
        return self.elements().map(func, output_type)

    def flat_map(self, func: FunctionOrCallable, output_type: TypeInformation | None = None) -> DataStream:
        """Return all results of a function for each row; as :meth:`DataStream.flat_map` of the :meth:`elements`."""
        return self.elements().flat_map(func, output_type)

    def to_arrow(self) -> Any:
        """Run the job and return its rows as a ``pyarrow.Table``."""
        return self.execute().to_arrow()

    def to_batches(self) -> Iterator[Any]:
        """Run the job and yield its rows as ``pyarrow.RecordBatch``, as they are made."""
        return self.execute().to_batches()

    def to_pandas(self) -> Any:
        """Run the job and return its rows as a ``pandas.DataFrame`` (``flinkcore[pandas]``)."""
        return self.execute().to_pandas()

    def to_polars(self) -> Any:
        """Run the job and return its rows as a ``polars.DataFrame`` (``flinkcore[polars]``)."""
        return self.execute().to_polars()

    def show(self, rows: int = 20) -> None:
        """Run the job until it has given so many rows, and print them."""
        self.execute().show(rows)

    def to_dataframe(self) -> Any:
        """Run the job and return its rows as a Spark DataFrame.

        Raises
        ------
        ConfigurationError
            If this environment does not run on Spark.
        """
        self._require_dataframes()
        return self.execute().to_dataframe()

    def _require_dataframes(self) -> None:
        executor = self._environment.executor
        if not executor.makes_dataframes:
            raise ConfigurationError(
                f"to_dataframe needs Spark, but this job runs {executor.name}: start from a "
                "SparkExecutionEnvironment (flinkcore.spark), or take to_arrow() or write_parquet(path)"
            )


class SideOutputLogStream(LogRows):
    """A side output of a job over event logs.

    To run a job once for several outputs, take them from the result of :meth:`LogStream.execute`. Calls of functions on
    a side output make the job run element by element.

    Parameters
    ----------
    main : LogStream
        The last stream of the job.
    step : Transformation
        The step with the side output.
    output_tag : OutputTag
    """

    def __init__(self, main: LogStream, step: Transformation, output_tag: OutputTag) -> None:
        super().__init__(main._environment, SideOutputTransformation(step, output_tag))
        self._main = main
        self._output_tag = output_tag

    def execute(
        self,
        progress: ProgressListener | bool | None = None,
        *,
        restore_from: RestoreFrom | None = None,
        stop_with_checkpoint: str | PathLike[str] | None = None,
    ) -> SideOutput:
        """Run the job and return the rows of this side output; parameters as of :meth:`LogStream.execute`."""
        result = self._main.execute(
            progress, restore_from=restore_from, stop_with_checkpoint=stop_with_checkpoint
        )
        return result.get_side_output(self._output_tag)

    def explain(self) -> str:
        """Return the steps of the job as text; see :meth:`LogStream.explain`."""
        return self._main.explain()
