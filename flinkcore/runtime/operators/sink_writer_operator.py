"""The operators at the end of streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkcore.datastream.connectors.base import SinkWriter
from flinkcore.datastream.functions import RuntimeContext, SinkFunction
from flinkcore.errors import FlinkcoreError, UserCodeError
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.operators.element_function_operator import ElementCall, ElementFunctionOperator
from flinkcore.runtime.operators.function_results import shown
from flinkcore.runtime.operators.stream_operator import OneInputStreamOperator
from flinkcore.runtime.output import Output


class SinkWriterOperator(OneInputStreamOperator):
    """Gives the value of each record to a writer.

    Parameters
    ----------
    writer : SinkWriter
    output : Output
        Gets watermarks and the like; nobody reads it.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.runtime.operators.sink.SinkWriterOperator``. Who runs the job commits what
    the writer has prepared.
    """

    def __init__(self, writer: SinkWriter, output: Output) -> None:
        super().__init__(output)
        self.writer = writer
        self._write = writer.write

    def process_element(self, record: StreamRecord[Any]) -> None:
        """Write a record.

        Raises
        ------
        UserCodeError
            If the writer raises something else than an error of flinkcore's.
        """
        try:
            self._write(record.value)
        except FlinkcoreError:
            raise
        except Exception as failure:
            raise UserCodeError(
                f"{type(self.writer).__qualname__} failed at {shown(record.value)}: {type(failure).__name__}: {failure}"
            ) from failure

    def close(self) -> None:
        """Close the writer."""
        self.writer.close()


class StreamSink(ElementFunctionOperator, OneInputStreamOperator):
    """Calls a function for the value of each record.

    Parameters are those of :class:`ElementFunctionOperator`; the function is a SinkFunction.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.StreamSink``.
    """

    _function: SinkFunction

    def process_element(self, record: StreamRecord[Any]) -> None:
        """Give a record's value to the function.

        Raises
        ------
        UserCodeError
            If it raises.
        """
        try:
            self._function.invoke(record.value)
        except Exception as failure:
            raise self._failed("invoke", record, failure) from failure


class CollectSinkOperator(OneInputStreamOperator):
    """Puts the value of each record into a list.

    Parameters
    ----------
    collect : callable
        Takes a value.
    output : Output
        Gets watermarks and the like; nobody reads it.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.collect.CollectSinkOperator``.
    """

    def __init__(self, collect: Callable[[Any], None], output: Output) -> None:
        super().__init__(output)
        self._collect = collect
        self._call: ElementCall = self.process_element

    def open(self, runtime_context: RuntimeContext) -> None:
        """Get ready."""
        collect = self._collect

        def process(record: StreamRecord[Any]) -> None:
            collect(record.value)

        self._call = process

    @property
    def element_call(self) -> ElementCall:
        """What processes a record as `process_element` does, in fewer calls."""
        return self._call

    def process_element(self, record: StreamRecord[Any]) -> None:
        """Collect a record's value."""
        self._collect(record.value)
