"""Streams of event logs: steps over columns, and the calls that run them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, overload

from flinkcore._internal.arrow.expressions import Expression
from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.datastream.functions import Function, KeySelector, ProcessFunction
from flinkcore.datastream.graph.column_arguments import (
    refuse_repeated,
    require_boolean,
    require_expression,
    require_key_columns,
)
from flinkcore.datastream.graph.declared_type import require_output_tag
from flinkcore.datastream.graph.key_columns import KeyColumns
from flinkcore.datastream.graph.pipeline_executor import (
    ProgressChoice,
    ProgressListener,
    RestoreFrom,
    SavepointStop,
)
from flinkcore.datastream.graph.transformations import (
    EventLogSource,
    ExpandTransformation,
    FilterTransformation,
    FunctionTransformation,
    LogData,
    OperatorTransformation,
    SelectTransformation,
    StreamGraph,
    Transformation,
    WithColumnsTransformation,
)
from flinkcore.datastream.logs.analysed_log import AnalysedLog
from flinkcore.datastream.logs.log_rows import SideOutputLogStream
from flinkcore.datastream.stream import ExtendableStream
from flinkcore.errors import ArgumentTypeError, ConfigurationError

if TYPE_CHECKING:
    from flinkcore import JobResult, ReplayReport
    from flinkcore.datastream.connected_streams import BroadcastStream
    from flinkcore.datastream.data_stream import DataStream
    from flinkcore.datastream.keyed_stream import KeyedStream
    from flinkcore.datastream.logs.connected_log_streams import (
        BroadcastConnectedLogStream,
        ConnectedLogStreams,
    )
    from flinkcore.datastream.logs.joined_streams import CoGroupedStreams, JoinedStreams
    from flinkcore.datastream.logs.keyed_log_stream import KeyedLogStream
    from flinkcore.datastream.logs.windowed_log_streams import AllWindowedLogStream
    from flinkcore.datastream.state import MapStateDescriptor
    from flinkcore.datastream.window import WindowAssigner

L = TypeVar("L", bound="LogStream")


class LogStream(AnalysedLog, ExtendableStream["LogStream"]):
    """A stream of rows with columns; each call returns a new stream, and nothing runs yet.

    A job starts with one log, or several that are united or connected, steps over columns and
    :meth:`assign_timestamps_and_watermarks`. Operators may follow, ``window`` or ``process`` after :meth:`key_by`, with
    steps over columns between them and after the last one. Results have timestamps (those of a window its largest
    timestamp, those of a processing-time timer none), and watermarks are forwarded from operator to operator.

    The job is run by each of :meth:`execute`, :meth:`to_arrow`, :meth:`to_batches`, :meth:`write_parquet` and
    :meth:`to_dataframe`. To get several outputs or the report of one run, take them from the result of
    :meth:`execute`, a :class:`flinkcore.JobResult`.

    Calls that take a Python function of single elements, such as :meth:`map`, return streams of PyFlink, which run
    element by element; :meth:`elements` gives all the others.

    Notes
    -----
    Made by :meth:`StreamExecutionEnvironment.from_event_log`; PyFlink does not have it.
    """

    @property
    def _kind(self) -> type[LogStream]:
        return LogStream

    def _then(self, transformation: Transformation) -> LogStream:
        return LogStream(self._environment, transformation)

    def filter(self, predicate: Expression) -> LogStream:
        """Return the rows for which a predicate is true.

        Parameters
        ----------
        predicate : pyarrow.compute.Expression
            A boolean expression; rows for which it is null are dropped, as in SQL. Rows that are dropped before
            :meth:`assign_timestamps_and_watermarks` do not move the watermark. On the stream of a log that is a Spark
            DataFrame also a condition of Spark, as text or as a ``Column``: Spark applies it before the replay.

        Raises
        ------
        ConfigurationError
            If it is neither, or a condition of Spark comes after other steps. A Python function is for
            :meth:`DataStream.filter` of the :meth:`elements`.

        Examples
        --------
        >>> import pyarrow.compute as pc
        >>> dear = (pc.field("price") > 100) & pc.field("country").isin(["DE", "FR"])
        >>> stream.filter(dear)  # doctest: +SKIP
        """
        is_function = callable(predicate) or isinstance(predicate, Function)
        of_log = None if is_function else self._in_log(lambda data: data.filter(predicate))
        if of_log is not None:
            return of_log
        require_expression(predicate, "filter")
        return self._then(FilterTransformation(self._transformation, predicate))

    def select(self, *names: str, **expressions: Expression) -> LogStream:
        """Return a stream with these columns only.

        Parameters
        ----------
        *names : str
            Columns to keep.
        **expressions : pyarrow.compute.Expression
            Further columns, computed from those of this stream.

        Raises
        ------
        ConfigurationError
            If there is no column, one is given twice, or an expression is something else.
        """
        for name in names:
            if not isinstance(name, str):
                raise ArgumentTypeError(
                    f"select takes names of columns, not {name!r}; computed ones need a name: select(x=...)"
                )
        for name, expression in expressions.items():
            require_expression(expression, f"select({name}=...)")
        columns = (*names, *expressions)
        if not columns:
            raise ConfigurationError("select needs at least one column")
        refuse_repeated(columns, "select")
        return self._then(
            SelectTransformation(self._transformation, names, tuple(expressions.items())),
        )

    def with_columns(self, *unnamed: Expression, **expressions: Expression) -> LogStream:
        """Return this stream with computed columns.

        Parameters
        ----------
        *unnamed
            Refused: a column needs a name.
        **expressions : pyarrow.compute.Expression
            New columns, or replacements of columns of the same name; all are computed from the columns of this stream,
            not from each other. Before :meth:`assign_timestamps_and_watermarks`, replacing the log's timestamp column
            changes the event time, and the columns of arrivals and splits cannot be replaced
            (``from_event_log(..., arrival=expression)`` converts arrivals). On the stream of a log that is a Spark
            DataFrame they may also be columns of Spark, which Spark computes before the replay.

        Raises
        ------
        ConfigurationError
            If no expression is given, or one is not an expression or has no name.
        """
        if unnamed:
            raise ConfigurationError(
                f"with_columns got {unnamed[0]!r} without a name: a column is given as with_columns(name=expression)"
            )
        if not expressions:
            raise ConfigurationError("with_columns needs at least one column: with_columns(name=expression)")
        if not any(isinstance(expression, str) for expression in expressions.values()):
            of_log = self._in_log(lambda data: data.with_columns(expressions))
            if of_log is not None:
                self._refuse_replaced(expressions)
                return of_log
        for name, expression in expressions.items():
            require_expression(expression, f"with_columns({name}=...)")
        return self._then(WithColumnsTransformation(self._transformation, tuple(expressions.items())))

    @overload
    def key_by(self, *key_columns: str, null_keys: bool = False) -> KeyedLogStream: ...

    @overload
    def key_by(
        self, key_selector: KeySelector | Callable[[Any], Any], key_type: TypeInformation | None = None
    ) -> KeyedStream: ...

    def key_by(
        self, *key_columns: Any, null_keys: bool = False, **of_function: Any
    ) -> KeyedLogStream | KeyedStream:
        """Return this stream partitioned by key.

        Parameters
        ----------
        *key_columns : str
            Columns that make up the key; or one function of a row, as of :meth:`DataStream.key_by`, whose rows are then
            single elements.
        null_keys : bool
            Whether null is a key like others in a single column, as in Flink SQL. By default it is refused, as in
            Flink's DataStream API; see ``on_bad_row`` of ``from_event_log``. Each of several columns may be null in any
            case. Functions in Python do not take null as a key of a single column.

        Raises
        ------
        ConfigurationError
            If there is neither, a column is given twice, one is not a name, or `null_keys` is set for a function.

        Notes
        -----
        The columnar counterpart of ``pyflink.datastream.DataStream.key_by``. Keys are equal if their Java objects are:
        all NaNs are one key; -0.0 and 0.0 are two keys, as are 1 and 1.0 of different types. Functions get the key as a
        plain Python object: of a struct column a Row, of a timestamp with a time zone the datetime in UTC, and of
        several columns a tuple. Timestamps with digits below microseconds, which Python cannot represent, can be keys
        of windows over columns and of functions over batches.
        """
        from flinkcore.datastream.logs.keyed_log_stream import KeyedLogStream  # a subclass of this class

        require_boolean(null_keys, "key_by(null_keys=...)")
        first = key_columns[0] if key_columns else None
        if of_function or (not isinstance(first, str) and callable(getattr(first, "get_key", first))):
            if null_keys:
                raise ConfigurationError(
                    "key_by(function, null_keys=True): keys that a function computes are not null. Leave null_keys out"
                )
            return self.elements().key_by(*key_columns, **of_function)
        columns = require_key_columns(key_columns, "key_by", ", or one function of an element")
        return KeyedLogStream(self, KeyColumns(columns, null_keys and len(columns) == 1))

    def process(self, func: ProcessFunction) -> DataStream:
        """Return the results of a ProcessFunction for the rows; as :meth:`DataStream.process` of the :meth:`elements`.

        Over columns a function has a key: :meth:`KeyedLogStream.process`.
        """
        return self.elements().process(func)

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedLogStream:
        """Return this stream cut into windows, without keys: all rows go to one partition.

        As :meth:`KeyedLogStream.window`.
        """
        from flinkcore.datastream.logs.windowed_log_streams import AllWindowedLogStream

        return AllWindowedLogStream(self, window_assigner)

    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedLogStream:
        """Return this stream cut into windows of a number of rows, without keys.

        As :meth:`KeyedLogStream.count_window`.
        """
        from flinkcore.datastream.window.count_windows import count_assigner

        return self.window_all(count_assigner(size, slide))

    @overload
    def connect(self, other: LogStream) -> ConnectedLogStreams: ...

    @overload
    def connect(self, other: BroadcastStream[LogStream]) -> BroadcastConnectedLogStream: ...

    def connect(
        self, other: LogStream | BroadcastStream[LogStream]
    ) -> ConnectedLogStreams | BroadcastConnectedLogStream:
        """Return this stream and another one, to be processed by one function; watermarks as of :meth:`union`.

        Parameters
        ----------
        other : LogStream or BroadcastStream
            Its columns may differ from this stream's.

        Raises
        ------
        ConfigurationError
            If it is not a stream of a log of this environment.
        """
        from flinkcore.datastream.connected_streams import BroadcastStream
        from flinkcore.datastream.logs.connected_log_streams import (  # made of subclasses of this class
            BroadcastConnectedLogStream,
            ConnectedLogStreams,
        )

        if isinstance(other, BroadcastStream):
            self._require_stream(other.input_stream, "connect")
            return BroadcastConnectedLogStream(self, other)
        self._require_stream(other, "connect")
        return ConnectedLogStreams(self, other)

    def broadcast(
        self, *broadcast_state_descriptors: MapStateDescriptor[Any, Any]
    ) -> BroadcastStream[LogStream]:
        """Return this stream with its rows sent to every subtask of the function that processes it and another one.

        Parameters
        ----------
        *broadcast_state_descriptors : MapStateDescriptor
            The broadcast states of the function, at least one.

        Raises
        ------
        ConfigurationError
            If no descriptor is given, one is not a MapStateDescriptor, or two have the same name.
        """
        from flinkcore.datastream.connected_streams import BroadcastStream

        if not broadcast_state_descriptors:
            raise ConfigurationError(
                "broadcast of a log needs the states of the function, MapStateDescriptors; elements().broadcast() "
                "sends single elements to every subtask of the next step"
            )
        return BroadcastStream(self, self._broadcast_states(broadcast_state_descriptors))

    def join(self, other_stream: LogStream) -> JoinedStreams:
        """Return this stream and another one, to be joined in windows (Flink's ``join``); errors as of `connect`."""
        from flinkcore.datastream.logs.joined_streams import JoinedStreams  # gives streams of this class

        self._require_stream(other_stream, "join")
        return JoinedStreams(self, other_stream)

    def co_group(self, other_stream: LogStream) -> CoGroupedStreams:
        """Return this stream and another one, to be co-grouped in windows (Flink's ``coGroup``); as :meth:`join`."""
        from flinkcore.datastream.logs.joined_streams import CoGroupedStreams

        self._require_stream(other_stream, "co_group")
        return CoGroupedStreams(self, other_stream)

    def join_lookup(
        self,
        table: Any,
        on: str | Sequence[str] | Mapping[str, str],
        how: Literal["inner", "left"] = "inner",
        *,
        where: Expression | None = None,
        suffix: str = "_right",
    ) -> LogStream:
        """Return each row with the rows of a table in memory that have its key.

        Parameters
        ----------
        table : pyarrow.Table, or anything that exports Arrow data
            Rows that are the same at all times, such as a frame of pandas or Polars. It is sent to each task.
        on : str, list of str, or dict of str to str
            Columns that are equal in both, or columns of the rows and the columns of the table that equal them. Nulls
            are equal to nothing.
        how : str
            ``"left"`` also returns rows that find nothing, with nulls.
        where : pyarrow.compute.Expression, optional
            Condition on columns of both rows, named as in the results; null is not true.
        suffix : str
            Added to names of columns of the table that rows have, too.

        Returns
        -------
        LogStream
            Rows come at once, with their timestamps; those that one row finds in the order of the table. No row is
            moved to another task.

        Raises
        ------
        ConfigurationError
            If an argument is another one.
        SchemaError
            If the table has no such column. If the rows have none, or the types of the keys differ, the error comes
            when the job is planned.

        Notes
        -----
        Flink SQL's lookup join (``LookupJoinRunner``) with a table that does not change. Versions that change with
        event time are for :meth:`KeyedLogStream.join_temporal`.

        Examples
        --------
        >>> bids.join_lookup(categories, on={"category": "id"}, how="left")  # doctest: +SKIP
        """
        from flinkcore.datastream.graph.table_lookups import table_rows

        return self._then(
            ExpandTransformation(self._transformation, table_rows(table, on, how, where, suffix))
        )

    def with_emitted_at(self: L, name: str = "emitted_at") -> L:
        """Add a column with the time of emission to the results of the operator that this stream comes from.

        That is what the clock of the replay showed, so when a result was known: the arrival of the event for which it
        was given; for what a watermark fires, the time at which that came; the time of a processing-time timer. It
        has the type of the bounds of windows: a timestamp in ms, or int64 ms where event times are numbers. Results
        that only the end of the log makes come are null: they were not known within the log.

        A function over batches must yield ``elements.results(batch, rows)`` then, which says for which element or timer
        each result is.

        It is the last column of the results, and of a function's own side outputs; late rows stay as they came. Like
        :meth:`uid` it changes the step, also for streams that came from it before, and returns this stream.

        Parameters
        ----------
        name : str
            Name of the new column, which must differ from those of the operator.

        Raises
        ------
        ConfigurationError
            If no operator over columns comes right before, or the name is empty or no text. Where the job is planned,
            also if a column has this name.

        Examples
        --------
        >>> windowed.aggregate(n=count()).with_emitted_at()  # doctest: +SKIP
        """
        step = self._transformation
        if not isinstance(step, OperatorTransformation):
            raise ConfigurationError(
                f"with_emitted_at({name!r}) comes right after an operator that gives columns, such as aggregate(...), "
                f"process(...) or a join, but here it follows: {step}. Rows of Flink SQL have it by "
                f"from_plan(..., emitted_at={name!r})"
            )
        if not isinstance(name, str) or not name:
            raise ConfigurationError(f"with_emitted_at(name) takes the name of a column, not {name!r}")
        step.settings.emitted_at = name
        return self

    def get_side_output(self, output_tag: OutputTag) -> SideOutputLogStream:
        """Return a side output of the job that leads to this stream: late rows, rejected ones, or a function's own.

        Parameters
        ----------
        output_tag : OutputTag
            The tag passed to ``side_output_late_data`` or ``from_event_log``, or one with a schema that a process
            function emits to. Tags are compared by id.

        Raises
        ------
        ConfigurationError
            If no operator of the job has this tag (Flink gives an empty stream).
        """
        main = self._with_side_outputs((require_output_tag(output_tag, "get_side_output"),))
        steps = [step for step in main._transformation.in_order() if output_tag in step.side_outputs()]
        return SideOutputLogStream(main, steps[-1], output_tag)

    def execute(
        self,
        progress: ProgressListener | bool | None = None,
        *,
        restore_from: RestoreFrom | None = None,
        stop_with_checkpoint: str | PathLike[str] | None = None,
        stop_with_savepoint: str | PathLike[str] | SavepointStop | None = None,
    ) -> JobResult:
        """Return the result of the job that leads to this stream: rows, side outputs and report.

        The job runs, and writes its checkpoint, when ``to_arrow()``, ``to_batches()``, ``write_parquet()`` or
        ``report`` of the result is called.

        A job over yesterday's log that stops with a checkpoint, and a job over today's log that is restored from it,
        return the same rows as one job over both logs, at any parallelism of each. Today's events must not precede
        yesterday's last one in the total order (arrival, split, position). A split that only today's log has counts as
        discovered at the cut: from there on it holds the watermark back until it has caught up or is idle. A split that
        today's log lacks continues without events: set an idleness if files are splits.

        A job of several logs stops after the last event of all logs: no event of today's logs may precede it, and at
        equal arrivals events of earlier logs of the job come first. Custom watermark generators need
        `WatermarkGenerator.snapshot_state`. Checkpoints are not supported for aligned splits
        (`with_watermark_alignment`), and for jobs in which an operator after the first one reads a log, or the results
        of several operators.

        Parameters
        ----------
        progress : callable or bool, optional
            Called from time to time with the progress of the job: embedded, in the thread that reads the rows; on
            Spark, in a separate thread while that one waits. An error that it raises fails the job. True: progress is
            shown on standard error, by tqdm if that is installed; False: it is not. By default
            :meth:`ExecutionConfig.set_progress` decides: it is shown in a terminal and in a notebook.
        restore_from : str, os.PathLike or flinkcore.savepoints.SavepointSource, optional
            Savepoint of a Flink job with whose state the job begins; a source says which operators are which. Or
            checkpoint to restore: of the same job over an earlier log. The settings that its state depends on must be
            the same: watermarks, keys, windows, aggregates, number of key groups. A state that a function no longer
            asks for is kept, and written to the next checkpoint, as in Flink.
        stop_with_checkpoint : str or os.PathLike, optional
            Directory for a checkpoint, complete once the rows are: a new one, or one with an older checkpoint, which is
            replaced. The job stops, and the end of its log fires nothing: open windows and timers are in the
            checkpoint.
        stop_with_savepoint : str, os.PathLike or flinkcore.savepoints.SavepointTarget, optional
            New directory for a savepoint, from which a Flink job continues: it is made of the checkpoint, which is
            temporary unless `stop_with_checkpoint` is given, too. A target says what the Flink job names and types in
            another way.

        Returns
        -------
        JobResult
            With ``to_arrow``, ``to_batches``, ``to_dataframe``, ``write_parquet``, ``get_side_output(tag)`` and
            ``report``: a :class:`flinkcore.JobResult`.

        Raises
        ------
        ConfigurationError
            If the job is invalid, before anything is read.
        SchemaError
            If a column is missing or of an unsupported type.
        DataError, SourceError
            If a row or a file cannot be read.
        """
        config = self._environment.get_config()
        checkpoints = self._environment._checkpoint_settings(
            restore_from, stop_with_checkpoint, stop_with_savepoint
        )
        graph = StreamGraph(self._transformation)
        result = self._environment.executor.execute(graph, config, _choice(progress, config), checkpoints)
        return cast("JobResult", result)

    def write_parquet(
        self,
        path: str | PathLike[str],
        side_outputs: Mapping[OutputTag, str | PathLike[str]] | None = None,
        mode: str = "error",
        partition_by: str | Sequence[str] = (),
        *,
        restore_from: RestoreFrom | None = None,
        stop_with_checkpoint: str | PathLike[str] | None = None,
    ) -> ReplayReport:
        """Run the job and let the workers write its rows as Parquet files.

        Either all files of all directories appear at the end, or none. Only a process that is killed in that moment can
        leave some: a directory with a folder ``_temporary`` is incomplete. A checkpoint is completed after all files
        have appeared, and before ``_temporary`` is removed: until then the previous checkpoint is valid, and the
        directories must be emptied before another run from it.

        Parameters
        ----------
        path : str or os.PathLike
            Directory for the rows of this stream.
        side_outputs : mapping of OutputTag to path, optional
            Directories for side outputs of the job.
        mode : {"error", "overwrite", "append"}
            "error": the directories are new, or empty. "overwrite": Parquet files in them are replaced, of all
            partitions: they stay until all of the new ones are complete, in ``_temporary`` where these are moved into
            place, and are put back if that fails. "append": files are added, and a run with a checkpoint to stop with
            replaces those of its repetition: see :meth:`flinkcore.JobResult.write_parquet`.
        partition_by : str or sequence of str
            Columns by whose values the files of this stream's rows are in directories ``name=value``.
        restore_from, stop_with_checkpoint
            As for :meth:`execute`.

        Returns
        -------
        ReplayReport
            Counts of what happened to every event (:class:`flinkcore.ReplayReport`).

        Raises
        ------
        ConfigurationError
            If a tag is not one of the job's, or a directory has what is not to be replaced or is within that of
            another output.
        SourceError
            If a directory cannot be made.
        """
        side_outputs = {} if side_outputs is None else side_outputs
        result = self._with_side_outputs(side_outputs).execute(
            restore_from=restore_from, stop_with_checkpoint=stop_with_checkpoint
        )
        return result.write_parquet(path, side_outputs, mode, partition_by)

    def write_delta(
        self,
        path: str | PathLike[str],
        mode: str = "error",
        partition_by: str | Sequence[str] = (),
        storage_options: Mapping[str, str] | None = None,
        filesystem: Any = None,
        *,
        restore_from: RestoreFrom | None = None,
        stop_with_checkpoint: str | PathLike[str] | None = None,
    ) -> ReplayReport:
        """Run the job and let the workers write its rows into a Delta table, by one commit (``flinkcore[delta]``).

        The files are part of the table at once, or not at all: if the job or the commit fails, the table is as it was,
        and no file stays. A checkpoint is completed after the commit; if that fails, the error says so, and the table
        is to be restored to the version before.

        Parameters
        ----------
        path : str or os.PathLike
            Path or URI of the table.
        mode : {"error", "append", "overwrite", "overwrite_partitions"}
            "error": there is no table yet. The others take one that is there, or make one: "overwrite" replaces all of
            its rows; "overwrite_partitions" those of the partitions that rows of this stream fall into. Nothing is
            replaced if somebody else has committed to the table since the call.
        partition_by : str or sequence of str
            Columns by which a new table is partitioned: integers, text, dates, times, decimals or booleans.
        storage_options : mapping of str to str, optional
            Options of deltalake, for the table's log.
        filesystem : pyarrow.fs.FileSystem, optional
            File system of the data files; by default that of the table's URI.
        restore_from, stop_with_checkpoint
            As for :meth:`execute`.

        Returns
        -------
        ReplayReport
            Counts of what happened to every event.

        Raises
        ------
        ConfigurationError
            If deltalake is not installed, or the table and the settings do not go together.
        SchemaError
            If the table has no type for a column, or no such column.
        SourceError
            If the table cannot be written or committed to.
        """
        result = self.execute(restore_from=restore_from, stop_with_checkpoint=stop_with_checkpoint)
        return result.write_delta(path, mode, partition_by, storage_options, filesystem)

    def write_iceberg(
        self,
        table: Any,
        mode: str = "append",
        *,
        restore_from: RestoreFrom | None = None,
        stop_with_checkpoint: str | PathLike[str] | None = None,
    ) -> ReplayReport:
        """Run the job and let the workers write its rows into an Iceberg table, by one commit (``flinkcore[iceberg]``).

        As :meth:`write_delta`.

        Parameters
        ----------
        table : pyiceberg.table.Table or str
            A table, or the name of one in the default catalog; not partitioned, or by values, years, months, days or
            hours of columns.
        mode : {"append", "overwrite", "overwrite_partitions"}
            As of :meth:`write_delta`; the last one for tables that are partitioned by values only.
        restore_from, stop_with_checkpoint
            As for :meth:`execute`.

        Returns
        -------
        ReplayReport
            Counts of what happened to every event.

        Raises
        ------
        ConfigurationError
            If pyiceberg is not installed, or the table and the settings do not go together.
        SchemaError
            If the table has no such column, or another type for it.
        SourceError
            If the table cannot be written or committed to.
        """
        result = self.execute(restore_from=restore_from, stop_with_checkpoint=stop_with_checkpoint)
        return result.write_iceberg(table, mode)

    def _with_side_outputs(self, output_tags: Iterable[OutputTag]) -> LogStream:
        """Return this stream of a job with these side outputs; a process function accepts any tag with a schema."""
        transformation = self._transformation
        for output_tag in output_tags:
            if not isinstance(output_tag, OutputTag):
                raise ArgumentTypeError(f"a side output is named by an OutputTag, not {output_tag!r}")
            tags = [tag for step in transformation.in_order() for tag in step.side_outputs()]
            if output_tag in tags:
                continue
            if isinstance(transformation, FunctionTransformation):
                transformation = transformation.with_side_output(output_tag)
                continue
            known = ", ".join(tag.tag_id for tag in tags) or "none"
            raise ConfigurationError(
                f"no side output is named {output_tag.tag_id!r}; this job has: {known}. Name one with "
                "side_output_late_data(tag), or from_event_log(..., on_bad_row=tag)"
            )
        return self._then(transformation)

    def _in_log(self, change: Callable[[LogData], LogData | None]) -> LogStream | None:
        """Return the stream of the changed log; None if the log does not evaluate the expressions itself."""
        log = self._transformation
        if not isinstance(log, EventLogSource) or not isinstance(log.data, LogData):
            return None
        changed = change(log.data)
        return None if changed is None else self._then(replace(log, data=changed))

    def _refuse_replaced(self, names: Iterable[str]) -> None:
        log = self._transformation
        assert isinstance(log, EventLogSource)
        for name in names:
            if name in (log.log.arrival, log.log.split):
                raise ConfigurationError(
                    f"column {name!r} has the arrivals or splits of the log: replace it in the DataFrame before "
                    "from_event_log, or give another name to the computed column"
                )


def _choice(progress: object, config: ExecutionConfig) -> ProgressChoice:
    if progress is None:
        return config.get_progress()
    if isinstance(progress, bool):
        return "on" if progress else "off"
    if not callable(progress):
        raise ArgumentTypeError(
            f"progress is called with how far the job is, or is True or False, and cannot be {progress!r}"
        )
    return progress
