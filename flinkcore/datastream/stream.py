"""The base of streams of single elements and of logs: the step that they end with, and sinks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, cast, overload

from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.common.typeinfo import TypeInformation, Types
from flinkcore.datastream.connectors.base import Sink
from flinkcore.datastream.connectors.print_sink import PrintSink
from flinkcore.datastream.functions import SinkFunction
from flinkcore.datastream.graph.column_arguments import refuse_repeated
from flinkcore.datastream.graph.element_transformations import SinkTransformation
from flinkcore.datastream.graph.pipeline_executor import ElementJobRun, RestoreFrom
from flinkcore.datastream.graph.transformations import (
    ChainingStrategy,
    StreamGraph,
    TimestampsAndWatermarksTransformation,
    Transformation,
    UnionTransformation,
)
from flinkcore.datastream.timestamps import StrategyOrAssigner, as_watermark_strategy
from flinkcore.errors import ArgumentTypeError, ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.slot_sharing_group import SlotSharingGroup
    from flinkcore.datastream.state import MapStateDescriptor
    from flinkcore.datastream.stream_execution_environment import StreamExecutionEnvironment

C = TypeVar("C", bound="ConfiguredStream")
S = TypeVar("S", bound="Stream")


class ConfiguredStream:
    """A stream or sink, with the settings of its last step.

    Each call changes the step and returns the same object, as in PyFlink. Chaining does not change results; parallelism
    changes only their order, and the side effects of functions.
    """

    _transformation: Transformation

    def get_name(self) -> str:
        """Return the name of the step; by default, the one that PyFlink gives it."""
        return self._transformation.settings.name or self._transformation.operator_name

    def name(self: C, name: str) -> C:
        """Set the name of the step, for messages, ``explain`` and the task name of functions."""
        self._transformation.settings.set_text("name", name)
        return self

    def uid(self: C, uid: str) -> C:
        """Set the id of the step, which must be unique in its job.

        A step of a columnar job finds its state in a checkpoint by its id. By default the ids are "process-1" for a
        process function or a join, "window-1" for windows, and "watermarks-1" for the watermarks of the log with the
        positions in its splits; further operators and logs are numbered on. A watermark strategy that follows a union
        has one state per log: its id with "-" and the number of the log.

        Raises
        ------
        ConfigurationError
            If it is empty, or no text.
        """
        self._transformation.settings.set_text("uid", uid)
        return self

    def set_uid_hash(self: C, uid_hash: str) -> C:
        """Raise a ConfigurationError: there are no savepoints of Flink to read."""
        raise ConfigurationError(
            f"set_uid_hash({uid_hash!r}) is for savepoints of Flink, which nothing reads here: take uid(...)"
        )

    def set_description(self: C, description: str) -> C:
        """Set the description of the step, for ``explain``."""
        self._transformation.settings.set_text("description", description)
        return self

    def set_parallelism(self: C, parallelism: int) -> C:
        """Set the number of subtasks of the step.

        Raises
        ------
        ConfigurationError
            If it is not from 1 to 32,768.
        """
        self._transformation.settings.set_parallelism(parallelism)
        return self

    def disable_chaining(self: C) -> C:
        """Chain the step neither to the one before it nor to the next one."""
        self._transformation.settings.chaining = ChainingStrategy.NEVER
        return self

    def slot_sharing_group(self: C, slot_sharing_group: str | SlotSharingGroup) -> C:
        """Accept a group, or its name, without an effect: there are no slots; ConfigurationError if it is neither."""
        from flinkcore.datastream.slot_sharing_group import SlotSharingGroup

        if not isinstance(slot_sharing_group, str | SlotSharingGroup):
            raise ArgumentTypeError(
                "a slot sharing group is a name, or made by SlotSharingGroup.builder(name), not "
                f"{slot_sharing_group!r}"
            )
        return self


def refused_on_keys(what: str) -> Any:
    """Return a method of steps, which a keyed stream is not."""

    def refuse(self: object, *arguments: Any) -> NoReturn:
        raise ConfigurationError(
            f"{what} for {type(self).__name__} is not supported: call it on the stream before key_by, or on the step "
            "after it"
        )

    refuse.__doc__ = "Raise a ConfigurationError: a keyed stream has no step of its own."
    return refuse


def instead_of_key(call: str) -> Any:
    """Return a method that distributes elements, which on a keyed stream the key does."""

    def refuse(self: object, *arguments: Any) -> NoReturn:
        raise ConfigurationError(
            f"{call} cannot take the place of a key: call it on the stream before key_by"
        )

    refuse.__doc__ = "Raise a ConfigurationError: the key decides where elements go."
    return refuse


class WithoutStep:
    """A keyed stream, which has no step of its own that could have settings."""

    set_parallelism = refused_on_keys("Set parallelism")
    set_max_parallelism = refused_on_keys("Set max parallelism")
    force_non_parallel = refused_on_keys("Set force non-parallel")
    name = refused_on_keys("Set name")
    get_name = refused_on_keys("Get name")
    uid = refused_on_keys("Set uid")
    set_uid_hash = refused_on_keys("Set uid hash")
    set_description = refused_on_keys("Set description")
    set_buffer_timeout = refused_on_keys("Set buffer timeout")
    start_new_chain = refused_on_keys("Start new chain")
    disable_chaining = refused_on_keys("Disable chaining")
    slot_sharing_group = refused_on_keys("Setting slot sharing group")


class Stream(ConfiguredStream):
    """A stream of a job; each call returns a new stream, and nothing runs yet.

    Parameters
    ----------
    environment : StreamExecutionEnvironment
    transformation : Transformation
        The step that it ends with.
    """

    def __init__(self, environment: StreamExecutionEnvironment, transformation: Transformation) -> None:
        self._environment = environment
        self._transformation = transformation

    if not TYPE_CHECKING:  # a type checker knows that there is no such call

        def __getattr__(self, name: str) -> NoReturn:
            from flinkcore.datastream.wrong_calls import refuse_call  # knows the streams, which lie above

            refuse_call(self, name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._input()})"

    def _repr_html_(self) -> str:
        from flinkcore._internal.show.html import html_lines  # for notebooks alone
        from flinkcore.datastream.graph.shown_steps import numbered_steps

        return html_lines(f"{type(self).__name__}\n{numbered_steps(self._input())}")

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """Return the environment that this stream belongs to."""
        return self._environment

    def get_execution_config(self) -> ExecutionConfig:
        """Return the settings of the environment."""
        return self._environment.get_config()

    def get_type(self) -> TypeInformation:
        """Return the declared type of the elements; any Python object by default."""
        return self._transformation.element_type

    def set_max_parallelism(self: C, max_parallelism: int) -> C:
        """Set the number of key groups of the step.

        Raises
        ------
        ConfigurationError
            If it is not from 1 to 32,768.
        """
        self._transformation.settings.set_max_parallelism(max_parallelism)
        return self

    def force_non_parallel(self: C) -> C:
        """Run the step in one subtask."""
        self._transformation.settings.set_parallelism(1)
        self._transformation.settings.set_max_parallelism(1)
        return self

    def set_buffer_timeout(self: C, timeout_millis: int) -> C:
        """Accept a timeout without an effect: elements are never buffered."""
        return self

    def start_new_chain(self: C) -> C:
        """Do not chain the step to the one before it."""
        self._transformation.settings.chaining = ChainingStrategy.HEAD
        return self

    def _input(self) -> Transformation:
        """Return the step whose elements the next one reads; for keyed streams, that of the key."""
        return self._transformation

    def _values(self) -> Transformation:
        """Return the step whose elements a call reads that has no use for keys."""
        return self._transformation

    def _collected(self) -> Transformation:
        """Return the step whose elements are collected, and go to sinks."""
        return self._transformation

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Write the elements to the standard output, one per line, when the environment is executed.

        Parameters
        ----------
        sink_identifier : str, optional
            Prefix of each line; the number of the subtask follows if there are several.
        """
        return self._end(self._values(), PrintSink(sink_identifier))

    def add_sink(self, sink_func: SinkFunction) -> DataStreamSink:
        """Call a SinkFunction with every element when the environment is executed; ConfigurationError if it is none."""
        if getattr(sink_func, "is_of_cluster", False):
            return self._end(self._collected(), self._environment._replaced_topics.sink_of(sink_func))
        if not isinstance(sink_func, SinkFunction):
            raise ArgumentTypeError(
                f"add_sink takes a SinkFunction, not {sink_func!r}; a Sink goes to sink_to"
            )
        return self._end(self._values(), sink_func)

    def sink_to(self, sink: Sink) -> DataStreamSink:
        """Write the elements to a Sink when the environment is executed; ConfigurationError if it is none."""
        if not isinstance(sink, Sink):
            raise ArgumentTypeError(f"sink_to takes a Sink such as a FileSink, not {sink!r}")
        if sink.is_of_cluster:
            sink = self._environment._replaced_topics.sink_of(sink)
        return self._end(self._collected(), sink)

    def _end(self, step: Transformation, sink: Sink | SinkFunction) -> DataStreamSink:
        transformation = SinkTransformation(step, sink)
        self._environment._add_sink(transformation)
        return DataStreamSink(transformation)

    @overload
    def execute_and_collect(
        self,
        job_execution_name: str | None = None,
        limit: None = None,
        *,
        restore_from: RestoreFrom | None = None,
        stop_with_checkpoint: str | PathLike[str] | None = None,
    ) -> CloseableIterator: ...

    @overload
    def execute_and_collect(
        self,
        job_execution_name: str | None = None,
        *,
        limit: int,
        restore_from: RestoreFrom | None = None,
    ) -> list[Any]: ...

    @overload
    def execute_and_collect(
        self,
        job_execution_name: str | None,
        limit: int,
        *,
        restore_from: RestoreFrom | None = None,
    ) -> list[Any]: ...

    def execute_and_collect(
        self,
        job_execution_name: str | None = None,
        limit: int | None = None,
        *,
        restore_from: RestoreFrom | None = None,
        stop_with_checkpoint: str | PathLike[str] | None = None,
    ) -> CloseableIterator | list[Any]:
        """Run the job that leads to this stream, and all sinks of the environment, and return the elements.

        Parameters
        ----------
        job_execution_name : str, optional
        limit : int, optional
            Maximum number of elements; the job is cancelled when they have been collected.
        restore_from : path or flinkcore.savepoints.SavepointSource, optional
            Checkpoint of an earlier run of this job, from which it resumes with the present elements of its sources; or
            savepoint of a Flink job, with whose state it begins.
        stop_with_checkpoint : path, optional
            Directory for a checkpoint with which the job stops, when all elements have been taken: the end of its
            sources then fires nothing. Not with a limit.

        Returns
        -------
        CloseableIterator or list
            A list if there is a limit.

        Raises
        ------
        ConfigurationError
            If the limit is not a whole number of at least 1, or is given for a job that stops with a checkpoint.

        Notes
        -----
        Follows ``pyflink.datastream.DataStream.execute_and_collect``.
        """
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise ConfigurationError(f"limit is a number of elements, at least 1, not {limit!r}")
        if limit is not None and stop_with_checkpoint is not None:
            raise ConfigurationError(
                "limit cancels the job, which then has no checkpoint: leave limit or stop_with_checkpoint out"
            )
        checkpoints = self._environment._checkpoint_settings(restore_from, stop_with_checkpoint)
        step = self._collected()
        element_type = step.element_type
        collected_type = element_type.collected_type()
        run = self._environment._start_job(job_execution_name, step, checkpoints)
        conversion = None if collected_type is element_type else collected_type.conversion()
        elements = CloseableIterator(run, conversion)
        if limit is None:
            return elements
        with elements:
            return [element for _, element in zip(range(limit), elements, strict=False)]

    def explain(self) -> str:
        """Return the steps of the job as text, one per line, with the path of each, or the reason why it is refused.

        The last lines report which version or snapshot is read of each log that is a table of a lake; on Spark also
        whether tasks merge events before the shuffle, how they read each DataFrame, and why so.
        """
        from flinkcore.datastream.graph.shown_steps import numbered_steps

        config = self._environment.get_config()
        parallelism = config.get_parallelism()
        graph, executor = StreamGraph(self._transformation), self._environment.executor
        self._environment._settle_sinks()
        needs_rows = graph.needs_rows
        head = (
            f"{executor.name} {'job, element by element' if needs_rows else 'replay'}, "
            f"parallelism {'of the executor' if parallelism == config.PARALLELISM_DEFAULT else parallelism}, "
            f"{config.get_max_parallelism()} key groups, "
            f"watermarks every {config.get_auto_watermark_interval()} ms"
        )
        return "\n".join(
            [
                head,
                numbered_steps(self._transformation),
                *(f"     {line}" for line in executor.explain_execution(graph, config)),
            ]
        )


class ExtendableStream(Stream, Generic[S]):
    """A stream that further steps of its kind can follow, over single elements or over columns."""

    def assign_timestamps_and_watermarks(self, watermark_strategy: StrategyOrAssigner) -> S:
        """Return this stream with event time and, for each split of the log, watermarks.

        Parameters
        ----------
        watermark_strategy : WatermarkStrategy
            Or an assigner of :mod:`flinkcore.datastream.timestamps`. A replay over columns takes bounded and ascending
            extractors whose method returns a field of the element, or an arithmetic expression of fields.

        Raises
        ------
        ConfigurationError
            If it is neither.

        Notes
        -----
        Flink's ``TimestampsAndWatermarksOperator`` on each split, merged by a ``StatusWatermarkValve``.
        """
        strategy = as_watermark_strategy(watermark_strategy)
        return self._then(TimestampsAndWatermarksTransformation(self._transformation, strategy))

    def union(self, *streams: S) -> S:
        """Return all rows of this stream and of others.

        The watermark is the minimum over all streams that are not idle. A log that has ended holds it back until the
        end of the replay, unless it is idle: set an idleness in its strategy. Calls after the union, such as
        :meth:`filter` or :meth:`assign_timestamps_and_watermarks`, apply to each of the streams.

        Parameters
        ----------
        *streams : streams of the same kind
            Streams of this environment with the same columns, or elements of the same type; without any it is this
            stream alone. Streams without a declared type go with all others, to a stream without one.

        Raises
        ------
        ConfigurationError
            If one is not such a stream.

        Notes
        -----
        Follows ``pyflink.datastream.DataStream.union``, where streams without a type go with none that has one.
        """
        for stream in streams:
            self._require_stream(stream, "union")
        if not streams:
            return self._then(self._values())
        united = tuple(stream._values() for stream in cast("tuple[Stream, ...]", (self, *streams)))
        declared = dict.fromkeys(step.element_type for step in united)
        declared.pop(Types.PICKLED_BYTE_ARRAY(), None)
        if len(declared) > 1:
            raise ConfigurationError(
                f"union takes streams of one type, not of {' and '.join(map(repr, declared))}: declare the same "
                "output_type for all, or connect them"
            )
        return self._then(UnionTransformation(united))

    def _broadcast_states(
        self, descriptors: tuple[MapStateDescriptor[Any, Any], ...]
    ) -> tuple[MapStateDescriptor[Any, Any], ...]:
        """Return the broadcast states that a call names; raise a ConfigurationError for anything else."""
        from flinkcore.datastream.state import MapStateDescriptor

        for descriptor in descriptors:
            if not isinstance(descriptor, MapStateDescriptor):
                raise ArgumentTypeError(f"broadcast takes MapStateDescriptors, not {descriptor!r}")
        refuse_repeated(tuple(descriptor.name for descriptor in descriptors), "broadcast", "states")
        return descriptors

    @property
    @abstractmethod
    def _kind(self) -> type[Stream]:
        """The class of the streams that this one can be united or connected with."""

    @abstractmethod
    def _then(self, transformation: Transformation) -> S:
        """Return the stream that ends with a step."""

    def _require_stream(self, stream: object, call: str) -> None:
        """Raise a ConfigurationError unless it is a stream of this kind and this environment."""
        kind = self._kind
        if not isinstance(stream, kind):
            hint = (
                ": call elements() on the stream of the log, to give its rows as single elements"
                if isinstance(stream, Stream)
                else ""
            )
            raise ArgumentTypeError(f"{call} takes a {kind.__name__}, not {stream!r}{hint}")
        if stream.get_execution_environment() is not self._environment:
            raise ConfigurationError(f"{call} takes a stream of the same environment, not of another one")


class DataStreamSink(ConfiguredStream):
    """A sink that is registered with the environment, whose next ``execute`` runs it.

    Notes
    -----
    Follows ``pyflink.datastream.DataStreamSink``; made by :meth:`DataStream.sink_to`, `add_sink` and `print`.
    """

    def __init__(self, transformation: SinkTransformation) -> None:
        self._transformation = transformation


class CloseableIterator(Iterator[Any]):
    """The elements of a stream; asking for the next one runs the job until there is one.

    Parameters
    ----------
    run : ElementJobRun
    conversion : callable, optional
        From an element of the job to what the program gets.

    Notes
    -----
    Follows ``pyflink.datastream.data_stream.CloseableIterator``. Closing it before the end cancels the job: its sinks
    commit nothing.
    """

    def __init__(self, run: ElementJobRun, conversion: Callable[[Any], Any] | None = None) -> None:
        self._run = run
        self._elements = iter(run) if conversion is None else map(conversion, run)

    def __next__(self) -> Any:
        return next(self._elements)

    def next(self) -> Any:
        """Return the next element; StopIteration at the end of the job."""
        return next(self._elements)

    def __enter__(self) -> CloseableIterator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Cancel the job unless it has ended."""
        self._run.close()
