"""The interface of decoders, and columns of decoded values with the faults of those that cannot be decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from flinkcore.errors import DataError


@dataclass
class DecodedColumn:
    """Values of a column of messages.

    Attributes
    ----------
    values : pyarrow.Array
        Null where there is no message, or one that cannot be decoded.
    faults : dict of int to str
        Rows of messages that cannot be decoded, with the reason.
    """

    values: pa.Array
    faults: dict[int, str] = field(default_factory=dict)


class ValueDecoder(Protocol):
    """A decoder of the messages of one column; picklable.

    It is made by the program, prepared once where the job is planned, and called by the workers.
    """

    def prepared(self) -> ValueDecoder:
        """Return a decoder that has read its schemas, which workers need not reach.

        Raises
        ------
        ConfigurationError
            If a schema is not one, cannot be read, or a library is missing.
        """

    @property
    def type(self) -> pa.DataType:
        """Type of the decoded values, once the decoder is prepared: a struct of plain types."""

    def decode(self, messages: Sequence[bytes | None]) -> DecodedColumn:
        """Return the values of messages; None and empty messages are null."""


def decoded_one_by_one(
    messages: Sequence[bytes | None], kind: pa.DataType, decode: Callable[[bytes], Any]
) -> DecodedColumn:
    """Decode messages each by itself.

    Parameters
    ----------
    messages : sequence of bytes or None
    kind : pyarrow.DataType
        Type of the values.
    decode : callable
        Returns the value of a message, as Arrow takes it; any error says that it has none.
    """
    values: list[Any] = []
    faults: dict[int, str] = {}
    for row, message in enumerate(messages):
        value = None
        if message:
            try:
                value = decode(message)
            except DataError as failure:
                faults[row] = str(failure)
            except Exception as failure:  # of any kind, as libraries do not check all that they read
                faults[row] = (
                    f"{type(failure).__name__}: {failure}" if str(failure) else type(failure).__name__
                )
        values.append(value)
    return DecodedColumn(_column(values, kind, faults), faults)


def _column(values: list[Any], kind: pa.DataType, faults: dict[int, str]) -> pa.Array:
    """Return values as a column; those that its type does not hold become null and faults."""
    try:
        return _sound(values, kind)
    except _NOT_HELD:
        for row, value in enumerate(values):
            try:
                _sound([value], kind)
            except _NOT_HELD as failure:
                values[row], faults[row] = None, str(failure)
        return _sound(values, kind)


_NOT_HELD = (pa.ArrowException, OverflowError, TypeError, ValueError)


def _sound(values: Iterable[Any], kind: pa.DataType) -> pa.Array:
    column = pa.array(values, kind)
    column.validate(full=True)  # a time beyond its day is not one
    return column
