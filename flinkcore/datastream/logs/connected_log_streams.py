"""Two streams of logs that one function processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

from flinkcore._internal.arrow.schemas import Schema
from flinkcore.common.output_tag import OutputTag
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.datastream.connected_streams import (
    BroadcastConnectedStream,
    BroadcastStream,
    ConnectedStreams,
    ConnectedWithBroadcast,
    Key,
    TwoConnected,
    columns_of,
    is_function_of_key,
    require_process_function,
)
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.functions import (
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeySelector,
)
from flinkcore.datastream.graph.declared_type import gives_elements, named_outputs
from flinkcore.datastream.graph.transformations import TwoInputTransformation
from flinkcore.datastream.logs.keyed_log_stream import KeyedLogStream
from flinkcore.datastream.logs.log_stream import LogStream


class ConnectedLogStreams(TwoConnected[LogStream]):
    """Two streams of logs that may differ in their columns, to be processed by one function.

    The function sees the rows of both in the order of the replay, and the smaller watermark of both; an input whose
    splits are all idle does not hold the other one back.

    Notes
    -----
    The columnar counterpart of :class:`ConnectedStreams`; made by :meth:`LogStream.connect`.
    """

    def elements(self) -> ConnectedStreams:
        """Return the rows of both streams as single elements; see :meth:`LogStream.elements`."""
        return ConnectedStreams(self.stream1.elements(), self.stream2.elements())

    @overload
    def key_by(self, key1: str | Sequence[str], key2: str | Sequence[str]) -> ConnectedLogStreams: ...

    @overload
    def key_by(
        self,
        key1: KeySelector | Callable[[Any], Any],
        key2: KeySelector | Callable[[Any], Any],
        key_type: TypeInformation | None = None,
    ) -> ConnectedStreams: ...

    def key_by(
        self, key1: Key, key2: Key, key_type: TypeInformation | None = None
    ) -> ConnectedLogStreams | ConnectedStreams:
        """Return these streams partitioned by key.

        Parameters
        ----------
        key1, key2 : str or sequence of str, or KeySelector or callable
            Columns that make up the key of the first and of the second stream, as many and of the same types; or for
            both a function of a row, as of :meth:`ConnectedStreams.key_by`, whose rows are then single elements.
        key_type : TypeInformation, optional
            Type of the functions' keys.

        Raises
        ------
        ConfigurationError
            If a stream has a key already, or the numbers of columns differ.
        """
        if is_function_of_key(key1) and is_function_of_key(key2):
            return self.elements().key_by(key1, key2, key_type)
        self._refuse_second_key(KeyedLogStream)
        return ConnectedLogStreams(
            self.stream1.key_by(*columns_of(key1)), self.stream2.key_by(*columns_of(key2))
        )

    def map(self, func: CoMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """Return the result of a function for each row, as :meth:`ConnectedStreams.map` of the elements."""
        return self.elements().map(func, output_type)

    def flat_map(self, func: CoFlatMapFunction, output_type: TypeInformation | None = None) -> DataStream:
        """Return all results of a function for each row, as :meth:`ConnectedStreams.flat_map` of the elements."""
        return self.elements().flat_map(func, output_type)

    @overload
    def process(
        self,
        func: CoProcessFunction | KeyedCoProcessFunction,
        output_type: Schema,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> LogStream: ...

    @overload
    def process(self, func: CoProcessFunction | KeyedCoProcessFunction) -> DataStream: ...

    def process(
        self,
        func: CoProcessFunction | KeyedCoProcessFunction,
        output_type: Schema | None = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> LogStream | DataStream:
        """Return the results of a function for the rows of both streams, and for the timers that it registers.

        Parameters
        ----------
        func : KeyedCoProcessFunction or CoProcessFunction
            The former if both streams are keyed. The latter runs as one instance at any parallelism, so that results do
            not depend on it.
        output_type, side_outputs, timestamp_column
            As of :meth:`KeyedLogStream.process`.

        Raises
        ------
        ConfigurationError
            If only one stream is keyed, the function is of another class, or a type is not a schema.

        Notes
        -----
        Follows ``pyflink.datastream.ConnectedStreams.process``; the differences of :meth:`KeyedLogStream.process`.
        """
        if gives_elements("process", output_type, side_outputs, timestamp_column):
            return self.elements().process(func)
        keyed = self._is_keyed(KeyedLogStream)
        require_process_function(
            func,
            (KeyedCoProcessFunction if keyed else CoProcessFunction,),
            "streams keyed by columns" if keyed else "streams without keys",
        )
        return self.stream1._then(
            TwoInputTransformation(
                self.stream1._input(),
                self.stream2._input(),
                func,
                output_type,
                named_outputs(side_outputs),
                timestamp_column,
            )
        )


class BroadcastConnectedLogStream(ConnectedWithBroadcast[LogStream]):
    """A stream of a log, keyed or not, and one whose rows are sent to every subtask.

    Notes
    -----
    The columnar counterpart of :class:`BroadcastConnectedStream`; made by :meth:`LogStream.connect`.
    """

    def elements(self) -> BroadcastConnectedStream:
        """Return the rows of both streams as single elements; see :meth:`LogStream.elements`."""
        broadcast = self.broadcast_stream
        return BroadcastConnectedStream(
            self.non_broadcast_stream.elements(),
            BroadcastStream(broadcast.input_stream.elements(), broadcast.broadcast_state_descriptors),
        )

    @overload
    def process(
        self,
        func: BroadcastProcessFunction | KeyedBroadcastProcessFunction,
        output_type: Schema,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> LogStream: ...

    @overload
    def process(self, func: BroadcastProcessFunction | KeyedBroadcastProcessFunction) -> DataStream: ...

    def process(
        self,
        func: BroadcastProcessFunction | KeyedBroadcastProcessFunction,
        output_type: Schema | None = None,
        *,
        side_outputs: Sequence[OutputTag] = (),
        timestamp_column: str | None = None,
    ) -> LogStream | DataStream:
        """Return the results of a function for the rows of both streams, and for the timers that it registers.

        Parameters
        ----------
        func : KeyedBroadcastProcessFunction or BroadcastProcessFunction
            The former if the stream is keyed. The latter runs as one instance at any parallelism.
        output_type, side_outputs, timestamp_column
            As of :meth:`KeyedLogStream.process`.

        Raises
        ------
        ConfigurationError
            If the function is of the other class, or a type is not a schema.

        Notes
        -----
        Follows ``pyflink.datastream.BroadcastConnectedStream.process``. Deliberate difference: the results for a row of
        the broadcast stream are emitted once, where Flink emits them once per subtask.
        """
        if gives_elements("process", output_type, side_outputs, timestamp_column):
            return self.elements().process(func)
        self._require_function(func, KeyedLogStream)
        stream = self.non_broadcast_stream
        return stream._then(
            TwoInputTransformation(
                stream._input(),
                self.broadcast_stream._transformation(),
                func,
                output_type,
                named_outputs(side_outputs),
                timestamp_column,
            )
        )
