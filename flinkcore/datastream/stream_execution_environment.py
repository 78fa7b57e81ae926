"""Where programs start: settings, sources, and what executes them."""

import math
import os
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal

from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.expressions import Expression, is_expression
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.split_origin import FILE, SplitOrigin
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.pipeline_executor import PipelineExecutor, load_executor
from flinkcore.datastream.time_characteristic import TimeCharacteristic
from flinkcore.datastream.transformations import EventLogSource
from flinkcore.errors import ConfigurationError


class StreamExecutionEnvironment:
    """Holds the settings of jobs and makes their source streams.

    Parameters
    ----------
    executor : PipelineExecutor, optional
        What runs the jobs; the embedded executor (one process, no JVM) unless given.

    Notes
    -----
    Follows ``pyflink.datastream.StreamExecutionEnvironment``. Deliberate difference: the environment holds no
    graph of its own. A job is what leads to one result stream, and that stream's :meth:`DataStream.execute`
    runs it.

    Examples
    --------
    >>> env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    >>> env.get_parallelism()
    2
    """

    def __init__(self, executor: PipelineExecutor | None = None) -> None:
        self._executor = executor
        self._config = ExecutionConfig()
        self._time_characteristic = TimeCharacteristic.EventTime

    @staticmethod
    def get_execution_environment() -> "StreamExecutionEnvironment":
        """Return a new environment that runs jobs embedded, in this process."""
        return StreamExecutionEnvironment()

    def get_config(self) -> ExecutionConfig:
        """Return the settings, to be read and changed."""
        return self._config

    def get_parallelism(self) -> int:
        """Return the number of parallel tasks; -1 leaves it to the executor (embedded: one per processor)."""
        return self._config.get_parallelism()

    def set_parallelism(self, parallelism: int) -> "StreamExecutionEnvironment":
        """Set the number of parallel tasks (embedded: threads), and return this environment.

        Results do not depend on it.
        """
        self._config.set_parallelism(parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """Return the number of key groups."""
        return self._config.get_max_parallelism()

    def set_max_parallelism(self, max_parallelism: int) -> "StreamExecutionEnvironment":
        """Set the number of key groups, from 1 to 32,768 (128 unless set), and return this environment."""
        self._config.set_max_parallelism(max_parallelism)
        return self

    def get_stream_time_characteristic(self) -> TimeCharacteristic:
        """Return the time that source functions run on; event time unless set."""
        return self._time_characteristic

    def set_stream_time_characteristic(self, characteristic: TimeCharacteristic) -> None:
        """Set the time that source functions run on, and with it the auto-watermark interval.

        Parameters
        ----------
        characteristic : TimeCharacteristic
            ProcessingTime sets the interval to 0 (no periodic watermark), the others to 200 ms; an interval
            of one's own is to be set after it.

        Raises
        ------
        ConfigurationError
            If it is no TimeCharacteristic.
        """
        if not isinstance(characteristic, TimeCharacteristic):
            raise ConfigurationError(
                f"a time characteristic is one of TimeCharacteristic, not {characteristic!r}"
            )
        self._time_characteristic = characteristic
        self._config.set_auto_watermark_interval(characteristic.auto_watermark_interval_ms)

    @property
    def executor(self) -> PipelineExecutor:
        """What runs the jobs of this environment."""
        if self._executor is None:
            self._executor = load_executor("embedded")
        return self._executor

    def from_event_log(
        self,
        path_or_table: Any,
        *,
        timestamp: str | Expression,
        arrival: str | Expression | None = None,
        split: str | SplitOrigin | None = None,
        rate: float = 1000.0,
        arrival_start_ms: int = 0,
        format: str | None = None,
        format_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
        on_bad_row: Literal["fail", "drop"] | OutputTag = "fail",
    ) -> DataStream:
        """Return the stream of events of a log.

        Nothing is read before the job runs. In its results ``window_start`` and ``window_end`` are timestamps in ms,
        of the same zone, where the source's timestamp is a timestamp, a date or text, and integer ms where it is an
        integer; ``watermark`` is integer ms, and 2**63 - 1 for what the end of the log fires.

        Parameters
        ----------
        path_or_table : str, os.PathLike, sequence of these, or Arrow data
            A file, directory, glob or ``pyarrow.fs`` URI, or several; or anything with ``__arrow_c_stream__``
            or ``__arrow_c_array__`` (a table of pyarrow, Polars, DuckDB, ...).
        timestamp : str or pyarrow.compute.Expression
            Column with the source's timestamp, no nulls: integer milliseconds since the epoch; an Arrow
            timestamp of any unit (without a zone: UTC) or date; or ISO 8601 text such as
            ``2001-01-31T12:00:00.250Z`` (without an offset: UTC). What is finer than a millisecond is floored. Or
            an expression over the log's columns that gives one of these: ``pc.field("ts") * 1000`` where integers
            are seconds, ``pc.round(pc.field("ts") * 1000).cast("int64")`` where floats are. A column that
            :meth:`DataStream.with_columns` replaces before timestamps are assigned counts as replaced.
        arrival : str or pyarrow.compute.Expression, optional
            The processing time at which the event reached the system, of the same types; always of the log as it
            was recorded. None: the position in the split gives it.
        split : str or FILE, optional
            Column that names the split (Kafka partition, device, ...) of each event; ``FILE``: each file is a
            split. None: the whole log is one split.
        rate : float
            Records per second of each split where there is no arrival column.
        arrival_start_ms : int
            Arrival of the first record of each split where there is no arrival column.
        format : str, optional
            ``parquet``, ``arrow``, ``csv`` or ``json`` (lines); None: by the file name.
        format_options : mapping, optional
            Options of the format's reader.
        filesystem : pyarrow.fs.FileSystem, optional
            Where the paths are; None: by URI, else local.
        on_bad_row : {"fail", "drop"} or OutputTag
            What becomes of rows that cannot be processed, such as those with a null timestamp or one that is no
            time: an error, counted and dropped, or a side output.

        Raises
        ------
        ConfigurationError
            If a setting has no meaning.
        """
        if not is_expression(timestamp):
            _require_column(timestamp, "timestamp", " or a pyarrow expression")
        if arrival is not None and not is_expression(arrival):
            _require_column(arrival, "arrival", " or a pyarrow expression")
        if split is not None and split is not FILE:
            _require_column(split, "split")
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < math.inf:
            raise ConfigurationError(f"rate must be a number of records per second above zero, not {rate!r}")
        if isinstance(arrival_start_ms, bool) or not isinstance(arrival_start_ms, int):
            raise ConfigurationError(f"arrival_start_ms must be an integer, not {arrival_start_ms!r}")
        if not isinstance(on_bad_row, OutputTag) and on_bad_row not in ("fail", "drop"):
            raise ConfigurationError(f"on_bad_row must be 'fail', 'drop' or an OutputTag, not {on_bad_row!r}")
        return DataStream(
            self,
            EventLogSource(
                data=_data(path_or_table),
                timestamp=timestamp,
                arrival=arrival,
                split=split,
                rate=float(rate),
                arrival_start_ms=arrival_start_ms,
                format=format,
                format_options=format_options,
                filesystem=filesystem,
                on_bad_row=on_bad_row,
            ),
        )


def _require_column(name: object, setting: str, alternative: str = "") -> None:
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"{setting} must be the name of a column{alternative}, not {name!r}")


def _data(path_or_table: Any) -> Any:
    if hasattr(path_or_table, "mapInArrow"):
        raise ConfigurationError(
            "from_event_log reads files and Arrow data; for a Spark DataFrame, use "
            "SparkExecutionEnvironment(spark).from_dataframe(dataframe, ...)"
        )
    if hasattr(path_or_table, "__arrow_c_stream__") or hasattr(path_or_table, "__arrow_c_array__"):
        return path_or_table
    if isinstance(path_or_table, str | PathLike):
        return os.fspath(path_or_table)
    if isinstance(path_or_table, Sequence) and not isinstance(path_or_table, bytes):
        paths = [os.fspath(path) for path in path_or_table if isinstance(path, str | PathLike)]
        if paths and len(paths) == len(path_or_table):
            return paths
    raise ConfigurationError(
        "an event log is a path, a list of paths, or Arrow data (anything with __arrow_c_stream__ or "
        f"__arrow_c_array__), not {path_or_table!r}"
    )
