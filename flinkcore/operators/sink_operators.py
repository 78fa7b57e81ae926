"""The operators at the end of streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkcore.datastream.connectors.base import SinkWriter
from flinkcore.datastream.functions import SinkFunction
from flinkcore.errors import FlinkcoreError, UserCodeError, in_words
from flinkcore.operators.function_operators import ElementFunctionOperator
from flinkcore.operators.records.output import Output
from flinkcore.operators.records.shown_values import shown
from flinkcore.operators.records.stream_elements import StreamRecord
from flinkcore.operators.stream_operator import ElementCall, OneInputStreamOperator


class SinkWriterOperator(OneInputStreamOperator):
    """Writes the value of each record by a writer; the output takes watermarks and statuses.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.runtime.operators.sink.SinkWriterOperator``. The job's driver commits what the
    writer has prepared.
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
            If the writer raises an error that is not flinkcore's.
        """
        try:
            self._write(record.value)
        except FlinkcoreError:
            raise
        except Exception as failure:
            raise UserCodeError(
                f"{type(self.writer).__qualname__} failed at {shown(record.value)}: {in_words(failure)}"
            ) from failure

    def close(self) -> None:
        self.writer.close()


class StreamSink(ElementFunctionOperator, OneInputStreamOperator):
    """Calls a SinkFunction for the value of each record.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.StreamSink``.
    """

    _function: SinkFunction

    def process_element(self, record: StreamRecord[Any]) -> None:
        try:
            self._function.invoke(record.value)
        except Exception as failure:
            raise self._failed("invoke", record, failure) from failure


class CollectSinkOperator(OneInputStreamOperator):
    """Passes the value of each record to a callable; the output takes watermarks and statuses.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.collect.CollectSinkOperator``.
    """

    def __init__(self, collect: Callable[[Any], None], output: Output) -> None:
        super().__init__(output)
        self._call: ElementCall = lambda record: collect(record.value)

    @property
    def element_call(self) -> ElementCall:
        return self._call

    def process_element(self, record: StreamRecord[Any]) -> None:
        self._call(record)
