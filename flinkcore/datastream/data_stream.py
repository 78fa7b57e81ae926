"""Streams: names for what a job computes, and the calls that run it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, overload

from flinkcore.common.expressions import Expression, is_expression
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.checkpoint_settings import CheckpointSettings
from flinkcore.datastream.pipeline_executor import ProgressListener, ReplayResult
from flinkcore.datastream.side_output_stream import SideOutputStream
from flinkcore.datastream.timestamps import StrategyOrAssigner, as_watermark_strategy
from flinkcore.datastream.transformations import (
    FilterTransformation,
    ProcessTransformation,
    SelectTransformation,
    StreamGraph,
    TimestampsAndWatermarksTransformation,
    Transformation,
    WithColumnsTransformation,
)
from flinkcore.datastream.two_input_transformations import TwoInputTransformation, UnionTransformation
from flinkcore.datastream.window import WindowAssigner
from flinkcore.datastream.window.window_assigner import require_assigner
from flinkcore.errors import ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.all_windowed_stream import AllWindowedStream
    from flinkcore.datastream.connected_streams import (
        BroadcastConnectedStream,
        BroadcastStream,
        ConnectedStreams,
    )
    from flinkcore.datastream.joined_streams import CoGroupedStreams, JoinedStreams
    from flinkcore.datastream.keyed_stream import KeyedStream
    from flinkcore.datastream.state import MapStateDescriptor
    from flinkcore.datastream.stream_execution_environment import StreamExecutionEnvironment


class DataStream:
    """A stream of rows with named columns; each call returns a new stream, and nothing runs yet.

    Each of :meth:`execute`, :meth:`to_arrow`, :meth:`to_batches`, :meth:`write_parquet` and
    :meth:`to_dataframe` runs the job. Several outputs of one run are had from :meth:`execute`'s result, a
    :class:`flinkcore.replay.result.EmbeddedResult` or :class:`flinkcore.spark.result.SparkResult`, and so is the
    report.

    A job begins with one log, or with several that are united or connected: steps over columns and
    :meth:`assign_timestamps_and_watermarks`. Then come operators, ``window`` or ``process`` behind :meth:`key_by`, one
    behind the other with steps over columns between them; an operator is the end, and what comes after is done with the
    rows that it gives. Results keep their timestamps (a window's are its last moment, those of a processing-time timer
    none), and the watermarks go on from operator to operator.

    Notes
    -----
    Follows ``pyflink.datastream.DataStream``. Streams are made by a :class:`StreamExecutionEnvironment`.
    """

    def __init__(self, environment: "StreamExecutionEnvironment", transformation: Transformation) -> None:
        self._environment = environment
        self._transformation = transformation

    def get_execution_environment(self) -> "StreamExecutionEnvironment":
        """Return the environment that this stream belongs to."""
        return self._environment

    def filter(self, predicate: Expression) -> "DataStream":
        """Return the rows for which a predicate is true.

        Parameters
        ----------
        predicate : pyarrow.compute.Expression
            Boolean; rows for which it is null are left out, as SQL does. Rows that are left out before
            :meth:`assign_timestamps_and_watermarks` do not move the watermark.

        Raises
        ------
        ConfigurationError
            If it is not an expression. SQL text is not taken: what it means would depend on a dialect,
            whereas an expression means the same wherever the job runs, and runs on whole columns.

        Examples
        --------
        >>> import pyarrow.compute as pc
        >>> dear = (pc.field("price") > 100) & pc.field("country").isin(["DE", "FR"])
        >>> stream.filter(dear)  # doctest: +SKIP
        """
        _require_expression(predicate, "filter")
        return DataStream(self._environment, FilterTransformation(self._transformation, predicate))

    def select(self, *names: str, **expressions: Expression) -> "DataStream":
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
                raise ConfigurationError(
                    f"select takes names of columns, not {name!r}; computed ones need a name: select(x=...)"
                )
        for name, expression in expressions.items():
            _require_expression(expression, f"select({name}=...)")
        columns = (*names, *expressions)
        if not columns:
            raise ConfigurationError("select needs at least one column")
        _refuse_repeated(columns, "select")
        return DataStream(
            self._environment,
            SelectTransformation(self._transformation, names, tuple(expressions.items())),
        )

    def with_columns(self, **expressions: Expression) -> "DataStream":
        """Return this stream with computed columns.

        Parameters
        ----------
        **expressions : pyarrow.compute.Expression
            New columns, or replacements of columns of the same name; all are computed from the columns of
            this stream, none from another one's result. Before :meth:`assign_timestamps_and_watermarks`, a new
            value of the log's timestamp column is the event time; the columns that give arrivals and splits
            cannot be replaced there (``from_event_log(..., arrival=expression)`` converts arrivals).

        Raises
        ------
        ConfigurationError
            If there is none, or one is not an expression.
        """
        if not expressions:
            raise ConfigurationError("with_columns needs at least one column: with_columns(name=expression)")
        for name, expression in expressions.items():
            _require_expression(expression, f"with_columns({name}=...)")
        return DataStream(
            self._environment, WithColumnsTransformation(self._transformation, tuple(expressions.items()))
        )

    def assign_timestamps_and_watermarks(self, watermark_strategy: StrategyOrAssigner) -> "DataStream":
        """Return this stream with event time and, for each split of the log, watermarks.

        Parameters
        ----------
        watermark_strategy : WatermarkStrategy
            Or an assigner from before there were strategies.

        Raises
        ------
        ConfigurationError
            If it is neither.

        Notes
        -----
        Flink's ``TimestampsAndWatermarksOperator`` on each split, merged by a ``StatusWatermarkValve``.
        """
        strategy = as_watermark_strategy(watermark_strategy)
        return DataStream(
            self._environment, TimestampsAndWatermarksTransformation(self._transformation, strategy)
        )

    def key_by(self, *columns: str) -> "KeyedStream":
        """Return this stream partitioned by key.

        Parameters
        ----------
        *columns : str
            Columns that make up the key.

        Raises
        ------
        ConfigurationError
            If there is no column, one is given twice, or one is not a name.

        Notes
        -----
        The columnar counterpart of ``DataStream.key_by``: columns instead of a key selector function.
        """
        if not columns:
            raise ConfigurationError("key_by needs at least one column: key_by('user')")
        for name in columns:
            if not isinstance(name, str) or not name:
                raise ConfigurationError(
                    f"key_by takes names of columns, not {name!r}; compute a key first: "
                    "with_columns(key=expression).key_by('key')"
                )
        _refuse_repeated(columns, "key_by")
        from flinkcore.datastream.keyed_stream import KeyedStream  # a subclass of this class

        return KeyedStream(self, columns)

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> "AllWindowedStream":
        """Return this stream cut into windows, without keys: all rows come to one place.

        Parameters
        ----------
        window_assigner : WindowAssigner
            From :mod:`flinkcore.datastream.window`.

        Raises
        ------
        ConfigurationError
            If it is not a window assigner.
        """
        from flinkcore.datastream.all_windowed_stream import (
            AllWindowedStream,  # built on a subclass of this class
        )

        return AllWindowedStream(self, require_assigner(window_assigner, "window_all"))

    def union(self, *streams: "DataStream") -> "DataStream":
        """Return all rows of this stream and of others.

        Each has its own watermarks; the least of those that are not idle counts. Calls after the union, such as
        :meth:`filter` or :meth:`assign_timestamps_and_watermarks`, apply to each of the streams.

        Parameters
        ----------
        *streams : DataStream
            With the same columns.

        Raises
        ------
        ConfigurationError
            If there is none, or one is no stream of this environment.

        Notes
        -----
        Follows ``pyflink.datastream.DataStream.union``.
        """
        if not streams:
            raise ConfigurationError("union needs at least one other stream")
        for stream in streams:
            self._require_stream(stream, "union")
        united = tuple(stream._transformation for stream in (self, *streams))
        return DataStream(self._environment, UnionTransformation(united))

    @overload
    def connect(self, ds: "DataStream") -> "ConnectedStreams": ...

    @overload
    def connect(self, ds: "BroadcastStream") -> "BroadcastConnectedStream": ...

    def connect(self, ds: "DataStream | BroadcastStream") -> "ConnectedStreams | BroadcastConnectedStream":
        """Return this stream and another one, to be processed by one function.

        Parameters
        ----------
        ds : DataStream or BroadcastStream
            Its columns may differ from this stream's.

        Raises
        ------
        ConfigurationError
            If it is no stream of this environment.

        Notes
        -----
        Follows ``pyflink.datastream.DataStream.connect``.
        """
        from flinkcore.datastream.connected_streams import (  # made of subclasses of this class
            BroadcastConnectedStream,
            BroadcastStream,
            ConnectedStreams,
        )

        if isinstance(ds, BroadcastStream):
            self._require_stream(ds.input_stream, "connect")
            return BroadcastConnectedStream(self, ds)
        self._require_stream(ds, "connect")
        return ConnectedStreams(self, ds)

    def join(self, other_stream: "DataStream") -> "JoinedStreams":
        """Return this stream and another one, to be joined in windows (Flink's ``join``); errors as of `connect`."""
        from flinkcore.datastream.joined_streams import JoinedStreams  # gives streams of this class

        self._require_stream(other_stream, "join")
        return JoinedStreams(self, other_stream)

    def co_group(self, other_stream: "DataStream") -> "CoGroupedStreams":
        """Return this stream and another one, to be grouped together in windows (Flink's ``coGroup``); as `join`."""
        from flinkcore.datastream.joined_streams import CoGroupedStreams

        self._require_stream(other_stream, "co_group")
        return CoGroupedStreams(self, other_stream)

    def broadcast(
        self,
        broadcast_state_descriptor: "MapStateDescriptor[Any, Any] | None" = None,
        *others: "MapStateDescriptor[Any, Any]",
    ) -> "BroadcastStream":
        """Return this stream with its rows sent to every parallel instance of the function that it is connected to.

        Parameters
        ----------
        broadcast_state_descriptor, *others : MapStateDescriptor
            The broadcast states that the function can ask for.

        Raises
        ------
        ConfigurationError
            If there is none, one is something else, or two have one name.

        Notes
        -----
        Follows ``pyflink.datastream.DataStream.broadcast``, where a broadcast without states is possible, too.
        """
        from flinkcore.datastream.connected_streams import BroadcastStream
        from flinkcore.datastream.state import MapStateDescriptor

        descriptors = [given for given in (broadcast_state_descriptor, *others) if given is not None]
        if not descriptors:
            raise ConfigurationError(
                "broadcast needs the descriptor of at least one broadcast state: "
                "broadcast(MapStateDescriptor('rules', Types.STRING(), Types.INT()))"
            )
        for descriptor in descriptors:
            if not isinstance(descriptor, MapStateDescriptor):
                raise ConfigurationError(f"broadcast takes MapStateDescriptors, not {descriptor!r}")
        names = [descriptor.name for descriptor in descriptors]
        _refuse_repeated(tuple(names), "broadcast", "states")
        return BroadcastStream(self, descriptors)

    def _require_stream(self, stream: object, call: str) -> None:
        if not isinstance(stream, DataStream):
            raise ConfigurationError(f"{call} takes a DataStream, not {stream!r}")
        if stream.get_execution_environment() is not self._environment:
            raise ConfigurationError(f"{call} takes a stream of the same environment, not of another one")

    def process(self, func: Any, output_type: Any = None) -> "DataStream":
        """Raise ConfigurationError: process functions run on keyed streams only.

        Parameters
        ----------
        func, output_type : object
            Of ``pyflink.datastream.DataStream.process``; see :meth:`KeyedStream.process`.
        """
        raise ConfigurationError(
            f"a replay cannot run {func!r} on a stream without keys: call key_by('column') first, and let it be a "
            "KeyedProcessFunction; what needs no keys, state or timers is an expression in filter, select or "
            "with_columns"
        )

    def uid(self, uid: str) -> "DataStream":
        """Return this stream, of which the last step has a name by which it finds its state in a checkpoint.

        Without one a process function is "process-1", windows are "window-1", and the watermarks of the log, with the
        positions in its splits, "watermarks-1".

        Parameters
        ----------
        uid : str
            Of no other step of the job.

        Raises
        ------
        ConfigurationError
            If it is empty, or no text.

        Notes
        -----
        Follows ``pyflink.datastream.DataStream.uid``, which changes the stream itself.
        """
        if not isinstance(uid, str) or not uid:
            raise ConfigurationError(f"a uid is a text that is not empty, not {uid!r}")
        return DataStream(self._environment, replace(self._transformation, uid=uid))

    def execute(
        self,
        progress: ProgressListener | None = None,
        *,
        restore_from: str | PathLike[str] | None = None,
        stop_with_checkpoint: str | PathLike[str] | None = None,
    ) -> ReplayResult:
        """Return the result of the job that leads to this stream: rows, side outputs and report.

        A job over yesterday's log that stops with a checkpoint, and one over today's log that goes on from it, give the
        rows that one job over both logs gives, at any parallelism of each. Today's events must not precede
        yesterday's last one in the total order (arrival, split, position). A split that only today's log has is one
        that is discovered at the cut: from there on it holds the watermark back until it has caught up or is idle. A
        split that today's log lacks goes on as one without events: name an idleness where files are splits.

        Parameters
        ----------
        progress : callable, optional
            Called now and then with how far the job has come: embedded, in the thread that takes the rows; on
            Spark, in a thread of its own while that one waits. An error that it raises fails the job.
        restore_from : str or os.PathLike, optional
            Checkpoint from which the job goes on: of the same job over an earlier log. The settings that its state
            depends on must be the same: watermarks, keys, windows, aggregates, number of key groups.
        stop_with_checkpoint : str or os.PathLike, optional
            Directory for a checkpoint, complete once the rows are: a new one, or one with an older checkpoint, which is
            replaced then. The job stops, and the end of its log fires nothing: open windows and timers are in the
            checkpoint.

        Returns
        -------
        ReplayResult
            With ``to_arrow``, ``to_batches``, ``to_dataframe``, ``write_parquet``, ``get_side_output(tag)`` and
            ``report``: a :class:`flinkcore.replay.result.EmbeddedResult` or
            :class:`flinkcore.spark.result.SparkResult`. It may put off running until one of these is asked for.

        Raises
        ------
        ConfigurationError
            If the job has no meaning, before anything is read.
        SchemaError
            If a column is missing or of an unsupported type.
        DataError, SourceError
            If a row or a file cannot be read.
        """
        graph = StreamGraph(self._transformation)
        checkpoints = CheckpointSettings(restore_from, stop_with_checkpoint)
        return self._environment.executor.execute(
            graph, self._environment.get_config(), progress, checkpoints
        )

    def to_arrow(self) -> Any:
        """Run the job and return its rows as a ``pyarrow.Table``."""
        return self.execute().to_arrow()

    def to_batches(self) -> Iterator[Any]:
        """Run the job and yield its rows as ``pyarrow.RecordBatch``, as they are made."""
        return self.execute().to_batches()

    def to_dataframe(self) -> Any:
        """Run the job and return its rows as a Spark DataFrame.

        Raises
        ------
        ConfigurationError
            If this environment does not run on Spark.
        """
        self._require_dataframes()
        return self.execute().to_dataframe()

    def write_parquet(
        self,
        path: str | PathLike[str],
        side_outputs: Mapping[OutputTag, str | PathLike[str]] | None = None,
        *,
        restore_from: str | PathLike[str] | None = None,
        stop_with_checkpoint: str | PathLike[str] | None = None,
    ) -> Any:
        """Run the job and let the workers write its rows as Parquet files.

        The files of all directories appear at the end, or none do. Only a process that is killed just then can
        leave some: a directory that holds a folder ``_temporary`` is unfinished. A checkpoint is completed when all
        files are there, and before ``_temporary`` goes: until then it is the one before that counts, and the
        directories are to be emptied for another run from that.

        Parameters
        ----------
        path : str or os.PathLike
            Directory for the rows of this stream: a new one, or an empty one.
        side_outputs : mapping of OutputTag to path, optional
            Directories for side outputs of the job, new or empty too.
        restore_from, stop_with_checkpoint
            As for :meth:`execute`.

        Returns
        -------
        ReplayReport
            What became of every event (:class:`flinkcore.replay.report.ReplayReport`).

        Raises
        ------
        ConfigurationError
            If a tag is not one of the job's, or a directory is not empty or within that of another output.
        SourceError
            If a directory cannot be made.
        """
        side_outputs = {} if side_outputs is None else side_outputs
        result = self._with_side_outputs(side_outputs).execute(
            restore_from=restore_from, stop_with_checkpoint=stop_with_checkpoint
        )
        return result.write_parquet(path, side_outputs)

    def get_side_output(self, output_tag: OutputTag) -> SideOutputStream:
        """Return a side output of the job that leads to this stream: late rows, rejected ones, or a function's own.

        Parameters
        ----------
        output_tag : OutputTag
            The tag given to ``side_output_late_data`` or ``from_event_log``; or one that a process function emits
            to, with a schema. Matched by its id.

        Raises
        ------
        ConfigurationError
            If no operator of the job has this tag (Flink gives an empty stream).
        """
        return SideOutputStream(self._with_side_outputs((output_tag,)), output_tag)

    def explain(self) -> str:
        """Return the steps of the job as text, one per line, each with the path that it takes."""
        config = self._environment.get_config()
        parallelism = config.get_parallelism()
        head = (
            f"{self._environment.executor.name} replay, "
            f"parallelism {'of the executor' if parallelism == config.PARALLELISM_DEFAULT else parallelism}, "
            f"{config.get_max_parallelism()} key groups, "
            f"watermarks every {config.get_auto_watermark_interval()} ms"
        )
        steps = self._transformation.in_order()
        return "\n".join(
            [head, *(f"{number:>3}. [{step.path}] {step}" for number, step in enumerate(steps, start=1))]
        )

    def _with_side_outputs(self, output_tags: Iterable[OutputTag]) -> "DataStream":
        """Return this stream, of a job that has these side outputs; a process function can have any with a schema."""
        transformation = self._transformation
        for output_tag in output_tags:
            if not isinstance(output_tag, OutputTag):
                raise ConfigurationError(f"a side output is named by an OutputTag, not {output_tag!r}")
            tags = [tag for step in transformation.in_order() for tag in step.side_outputs()]
            if output_tag in tags:
                continue
            if isinstance(transformation, ProcessTransformation | TwoInputTransformation):
                transformation = replace(transformation, tags=(*transformation.tags, output_tag))
                continue
            known = ", ".join(tag.tag_id for tag in tags) or "none"
            raise ConfigurationError(
                f"no side output is named {output_tag.tag_id!r}; this job has: {known}. Name one with "
                "side_output_late_data(tag), or from_event_log(..., on_bad_row=tag)"
            )
        return (
            self if transformation is self._transformation else DataStream(self._environment, transformation)
        )

    def _require_dataframes(self) -> None:
        executor = self._environment.executor
        if not executor.makes_dataframes:
            raise ConfigurationError(
                f"to_dataframe needs Spark, but this job runs {executor.name}: start from a "
                "SparkExecutionEnvironment (flinkcore.spark), or take to_arrow() or write_parquet(path)"
            )


def _require_expression(value: object, call: str) -> None:
    if is_expression(value):
        return
    if isinstance(value, str):
        hint = (
            "text is neither read as SQL nor as the name of a column; a column is pyarrow.compute.field(name)"
        )
    elif callable(value):
        hint = "a Python function, called for each row, is not supported"
    else:
        hint = "a constant is pyarrow.compute.scalar(value)"
    raise ConfigurationError(
        f"{call} takes a pyarrow expression, such as pyarrow.compute.field('price') > 100, not {value!r}: "
        f"{hint}"
    )


def _refuse_repeated(columns: tuple[str, ...], call: str, what: str = "columns") -> None:
    repeated = sorted({name for name in columns if columns.count(name) > 1})
    if repeated:
        raise ConfigurationError(f"{call} names {what} twice: {', '.join(repeated)}")
