"""Two streams of logs that are joined in windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from flinkcore._internal.arrow.schemas import Schema
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.time import Interval, interval_ms
from flinkcore.datastream.functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
)
from flinkcore.datastream.functions.join_functions import CoGroupWindowFunction
from flinkcore.datastream.graph.column_arguments import require_key_columns
from flinkcore.datastream.graph.declared_type import named_outputs, with_settings
from flinkcore.datastream.graph.key_columns import KeyColumns
from flinkcore.datastream.graph.transformations import PartitionTransformation, WindowJoinTransformation
from flinkcore.datastream.logs.log_stream import LogStream
from flinkcore.datastream.window import Evictor, Trigger, WindowAssigner, WindowOperation
from flinkcore.datastream.window.window_assigner import require_assigner
from flinkcore.errors import ArgumentTypeError, ConfigurationError

F = TypeVar("F", bound=CoGroupFunction[Any, Any] | JoinFunction[Any, Any, Any] | FlatJoinFunction[Any, Any])


class _TwoStreams(Generic[F]):
    """Two streams, and the classes of functions that they accept."""

    def __init__(
        self, stream1: LogStream, stream2: LogStream, call: str, function_types: tuple[type, ...]
    ) -> None:
        self.stream1 = stream1
        self.stream2 = stream2
        self.call = call
        self.function_types = function_types

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.stream1!r}, {self.stream2!r})"

    def where(self, *key_columns: str) -> Where[F]:
        """Return these streams with the key of the first one.

        Parameters
        ----------
        *key_columns : str
            Columns of the first stream.

        Raises
        ------
        ConfigurationError
            If no column is given, one is given twice, or one is not a name.

        Notes
        -----
        Columns instead of Flink's key selector.
        """
        return Where(self, self._keyed(self.stream1, key_columns, "where"))

    def _keyed(self, stream: LogStream, key_columns: tuple[str, ...], call: str) -> PartitionTransformation:
        return PartitionTransformation(
            stream._transformation, KeyColumns(require_key_columns(key_columns, call))
        )


class JoinedStreams(_TwoStreams[JoinFunction[Any, Any, Any] | FlatJoinFunction[Any, Any]]):
    """Two streams whose rows are joined pairwise if they have the same key and are in the same window.

    ``a.join(b).where("user").equal_to("who").window(assigner).apply(MyJoinFunction(), output_type)``

    Notes
    -----
    Flink's ``JoinedStreams``, which PyFlink does not have; made by :meth:`LogStream.join`.
    """

    def __init__(self, stream1: LogStream, stream2: LogStream) -> None:
        super().__init__(stream1, stream2, "join", (JoinFunction, FlatJoinFunction))


class CoGroupedStreams(_TwoStreams[CoGroupFunction[Any, Any]]):
    """Two streams whose rows of one key and window are passed to a function together, even if one stream has none.

    ``a.co_group(b).where("user").equal_to("who").window(assigner).apply(MyCoGroupFunction(), output_type)``

    Notes
    -----
    Flink's ``CoGroupedStreams``, which PyFlink does not have; made by :meth:`LogStream.co_group`.
    """

    def __init__(self, stream1: LogStream, stream2: LogStream) -> None:
        super().__init__(stream1, stream2, "co_group", (CoGroupFunction,))


class Where(Generic[F]):
    """Two streams, of which the first has a key.

    Notes
    -----
    Flink's ``JoinedStreams.Where`` and ``CoGroupedStreams.Where``.
    """

    def __init__(self, streams: _TwoStreams[F], keyed1: PartitionTransformation) -> None:
        self._streams = streams
        self._keyed1 = keyed1

    def equal_to(self, *key_columns: str) -> EqualTo[F]:
        """Return these streams with the key of the second one.

        Parameters
        ----------
        *key_columns : str
            Columns of the second stream: as many as of the first one, and of the same types.

        Raises
        ------
        ConfigurationError
            If their number differs, no column is given, one is given twice, or one is not a name.
        """
        keyed2 = self._streams._keyed(self._streams.stream2, key_columns, "equal_to")
        columns1, columns2 = self._keyed1.key.names, keyed2.key.names
        if len(columns1) != len(columns2):
            raise ConfigurationError(
                f"where({', '.join(columns1)}) and equal_to({', '.join(columns2)}) name keys of "
                f"{len(columns1)} and {len(columns2)} columns. Name as many"
            )
        return EqualTo(self._streams, self._keyed1, keyed2)


class EqualTo(Generic[F]):
    """Two streams with keys.

    Notes
    -----
    Flink's ``JoinedStreams.Where.EqualTo`` and ``CoGroupedStreams.Where.EqualTo``.
    """

    def __init__(
        self,
        streams: _TwoStreams[F],
        keyed1: PartitionTransformation,
        keyed2: PartitionTransformation,
    ) -> None:
        self._streams = streams
        self._keyed = keyed1, keyed2

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WithWindow[F]:
        """Return these streams cut into windows.

        Parameters
        ----------
        window_assigner : WindowAssigner
            From :mod:`flinkcore.datastream.window`. Gap extractors, triggers and evictors get rows of either stream,
            each as a :class:`TaggedUnion`.

        Raises
        ------
        ConfigurationError
            If it is not a window assigner.
        """
        return WithWindow(self._streams, self._keyed, require_assigner(window_assigner, "window"))


class WithWindow(Generic[F]):
    """Two streams with keys, cut into windows, to be joined by a function.

    Notes
    -----
    Flink's ``JoinedStreams.WithWindow`` and ``CoGroupedStreams.WithWindow``, which have no side output for late rows
    either: they are counted and dropped. Deliberate difference: each call returns a new object.
    """

    def __init__(
        self,
        streams: _TwoStreams[F],
        keyed: tuple[PartitionTransformation, PartitionTransformation],
        window_assigner: WindowAssigner[Any, Any],
    ) -> None:
        self._streams = streams
        self._keyed = keyed
        self._window_assigner = window_assigner
        self._trigger: Trigger[Any, Any] | None = None
        self._evictor: Evictor[Any] | None = None
        self._allowed_lateness_ms = 0

    def trigger(self, trigger: Trigger[Any, Any]) -> WithWindow[F]:
        """Return these windows with another trigger than their own."""
        return with_settings(self, trigger=trigger)

    def evictor(self, evictor: Evictor[Any]) -> WithWindow[F]:
        """Return these windows with an evictor, which removes elements before or after the function is called."""
        return with_settings(self, evictor=evictor)

    def allowed_lateness(self, time_ms: Interval) -> WithWindow[F]:
        """Return these windows with an allowed lateness; parameters as of `WindowedLogStream.allowed_lateness`."""
        return with_settings(self, allowed_lateness_ms=interval_ms(time_ms, "allowed_lateness"))

    def apply(
        self,
        function: F,
        output_type: Schema = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> LogStream:
        """Return the results of a function at each firing of a window; it runs row by row.

        Parameters
        ----------
        function : JoinFunction, FlatJoinFunction or CoGroupFunction
            One of the former two for a join, the last for a co-group. Rows are ``flinkcore.common.Row`` with the
            columns of their stream. Every subtask works on a copy.
        output_type, side_outputs, timestamp_column
            As of :meth:`KeyedLogStream.process`. Results have the largest timestamp of the window.

        Raises
        ------
        ConfigurationError
            If the function is of another class, trigger, evictor or lateness are invalid, or a type is missing or no
            schema.

        Notes
        -----
        Flink's ``WithWindow.apply``. Deliberate difference: the type is an Arrow schema, and not optional.
        """
        streams = self._streams
        if not isinstance(function, streams.function_types):
            names = " or a ".join(kind.__name__ for kind in streams.function_types)
            raise ArgumentTypeError(f"{streams.call} takes a {names}, not {function!r}")
        environment = streams.stream1.get_execution_environment()
        trigger = self._trigger
        operation = WindowOperation(
            self._window_assigner,
            self._window_assigner.get_default_trigger(environment) if trigger is None else trigger,
            self._evictor,
            self._allowed_lateness_ms,
            window_function=CoGroupWindowFunction(function),
        )
        return LogStream(
            environment,
            WindowJoinTransformation(
                *self._keyed, operation, output_type, named_outputs(side_outputs), timestamp_column
            ),
        )
