"""The sink that prints."""

from __future__ import annotations

from typing import Any

from flinkcore.datastream.connectors.base import Sink, SinkWriter, WriterContext


class PrintSink(Sink):
    """Writes each element to the standard output.

    Parameters
    ----------
    sink_identifier : str, optional
        Prefix of each line.

    Notes
    -----
    Flink's ``PrintSink`` and ``PrintSinkOutputWriter``: ``identifier:subtask> element``.
    """

    def __init__(self, sink_identifier: str | None = None) -> None:
        self._identifier = sink_identifier or ""

    def create_writer(self, context: WriterContext) -> SinkWriter:
        parts = [self._identifier] if self._identifier else []
        if context.parallelism > 1:
            parts.append(str(context.subtask_index + 1))
        return PrintWriter(f"{':'.join(parts)}> " if parts else "", context)

    def __str__(self) -> str:
        return f"print {self._identifier}".rstrip()


class PrintWriter(SinkWriter):
    """Writes each element of a subtask to the standard output.

    Parameters
    ----------
    prefix : str
    context : WriterContext
    """

    def __init__(self, prefix: str, context: WriterContext) -> None:
        self._prefix = prefix
        self._text = context.type_info.printed
        self._print_line = context.print_line

    def write(self, element: Any) -> None:
        self._print_line(f"{self._prefix}{self._text(element)}")
