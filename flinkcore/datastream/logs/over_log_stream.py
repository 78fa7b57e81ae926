"""Frames of the rows of each key of an event log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from flinkcore.datastream.aggregates import Aggregate
from flinkcore.datastream.graph.transformations import OverTransformation
from flinkcore.errors import ArgumentTypeError, ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.logs.keyed_log_stream import KeyedLogStream
    from flinkcore.datastream.logs.log_stream import LogStream


class OverLogStream:
    """The rows of a log with a frame for each of them; made by :meth:`KeyedLogStream.over`.

    Parameters
    ----------
    stream : KeyedLogStream
    preceding_rows, preceding_ms : int or None
        How far frames go back.
    unit : str
        ``"rows"`` or ``"range"``.
    by : str
        ``"event_time"`` or ``"arrival"``.
    """

    def __init__(
        self,
        stream: KeyedLogStream,
        preceding_rows: int | None,
        preceding_ms: int | None,
        unit: str,
        by: str,
    ) -> None:
        self._stream = stream
        self._preceding_rows, self._preceding_ms = preceding_rows, preceding_ms
        self._unit, self._by = unit, by

    def aggregate(self, **aggregates: Aggregate) -> LogStream:
        """Return the rows with aggregates over their frames as further columns.

        Parameters
        ----------
        **aggregates : Aggregate
            Columns to add, from :mod:`flinkcore.datastream.aggregates`.

        Raises
        ------
        ConfigurationError
            If there is no aggregate, or one is not an Aggregate.
        """
        step = OverTransformation(
            self._stream._input(),
            self._preceding_rows,
            self._preceding_ms,
            self._unit,
            self._by,
            named_aggregates(aggregates),
        )
        return self._stream._then(step)


def named_aggregates(aggregates: Mapping[str, Aggregate]) -> tuple[tuple[str, Aggregate], ...]:
    """Return aggregates with their names.

    Raises
    ------
    ConfigurationError
        If there are none, or one is not an Aggregate.
    """
    if not aggregates:
        raise ConfigurationError("aggregate needs at least one: aggregate(n=count())")
    for name, aggregate in aggregates.items():
        if not isinstance(aggregate, Aggregate):
            raise ArgumentTypeError(
                f"aggregate({name}=...) takes an aggregate such as count() or sum_('price'), not {aggregate!r}"
            )
    return tuple(aggregates.items())
