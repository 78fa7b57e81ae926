"""How timestamps and watermarks are made from the events of a split."""

from dataclasses import dataclass, replace

from flinkcore.common.expressions import Expression, is_expression, same_expression
from flinkcore.common.time import Duration, Time, interval_ms
from flinkcore.errors import ConfigurationError


@dataclass(frozen=True, eq=False)
class WatermarkStrategy:
    """States where event time comes from and how far watermarks trail it; immutable.

    Made by :meth:`for_bounded_out_of_orderness`, :meth:`for_monotonous_timestamps` or :meth:`no_watermarks`,
    then enriched with :meth:`with_idleness` and :meth:`with_timestamp_assigner`, in any order.

    Attributes
    ----------
    out_of_orderness_ms : int or None
        The watermark is the largest timestamp minus this minus 1 ms. None: no watermark before the end.
    idleness_ms : int or None
        A split without events for longer than this does not hold the merged watermark back. None: never idle.
    timestamp_column : str, pyarrow.compute.Expression or None
        Column or expression that gives the event time. None: the timestamp that the source gave.

    Notes
    -----
    Follows ``pyflink.common.WatermarkStrategy``. Deliberate difference: in PyFlink
    ``with_timestamp_assigner`` changes the strategy itself, and a later ``with_idleness`` loses the assigner;
    here each call returns a new strategy that keeps everything set before.

    Examples
    --------
    >>> strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(4))
    >>> strategy.with_idleness(Duration.of_minutes(1)).idleness_ms
    60000
    """

    out_of_orderness_ms: int | None
    idleness_ms: int | None = None
    timestamp_column: str | Expression | None = None

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Duration | Time) -> "WatermarkStrategy":
        """Return a strategy whose watermark trails the largest timestamp by a bound and 1 ms.

        Parameters
        ----------
        max_out_of_orderness : Duration or Time
            Not negative; counted in whole milliseconds.

        Raises
        ------
        ConfigurationError
            If the bound is negative.

        Notes
        -----
        Flink's ``BoundedOutOfOrdernessWatermarks``.
        """
        bound_ms = interval_ms(max_out_of_orderness, "max_out_of_orderness")
        if bound_ms < 0:
            raise ConfigurationError(f"max_out_of_orderness cannot be negative, it is {bound_ms} ms")
        return WatermarkStrategy(bound_ms)

    @staticmethod
    def for_monotonous_timestamps() -> "WatermarkStrategy":
        """Return a strategy for timestamps that never go back: the watermark trails the largest by 1 ms.

        Notes
        -----
        Flink's ``AscendingTimestampsWatermarks``: a bound of 0.
        """
        return WatermarkStrategy(0)

    @staticmethod
    def no_watermarks() -> "WatermarkStrategy":
        """Return a strategy that makes no watermark; everything fires at the end of the log.

        Notes
        -----
        Flink's ``NoWatermarksGenerator``.
        """
        return WatermarkStrategy(None)

    def with_idleness(self, idle_timeout: Duration | Time) -> "WatermarkStrategy":
        """Return this strategy with idleness detection.

        Parameters
        ----------
        idle_timeout : Duration or Time
            Above zero, in replay clock (arrival) time, counted in whole milliseconds.

        Raises
        ------
        ConfigurationError
            If the timeout is not above zero.

        Notes
        -----
        Flink's ``WatermarkStrategyWithIdleness`` and ``WatermarksWithIdleness``.
        """
        timeout_ms = interval_ms(idle_timeout, "idle_timeout")
        if timeout_ms <= 0:
            raise ConfigurationError(f"idle_timeout must be at least 1 ms, it is {timeout_ms} ms")
        return replace(self, idleness_ms=timeout_ms)

    def with_timestamp_assigner(self, timestamp_assigner: str | Expression) -> "WatermarkStrategy":
        """Return this strategy with event time taken from a column or an expression over columns.

        Parameters
        ----------
        timestamp_assigner : str or pyarrow.compute.Expression
            Name of a column, or an expression; of an Arrow timestamp or date type, or integer milliseconds
            since the epoch.

        Raises
        ------
        ConfigurationError
            If it is neither.

        Notes
        -----
        The columnar counterpart of ``WatermarkStrategy.with_timestamp_assigner``.
        """
        named = isinstance(timestamp_assigner, str) and timestamp_assigner != ""
        if not named and not is_expression(timestamp_assigner):
            raise ConfigurationError(
                "with_timestamp_assigner takes the name of a column or a pyarrow expression, such as 'ts' or "
                f"pyarrow.compute.field('ts'), not {timestamp_assigner!r}: an assigner written in Python, "
                "called for each row, is not supported"
            )
        return replace(self, timestamp_column=timestamp_assigner)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WatermarkStrategy):
            return NotImplemented
        return (
            self.out_of_orderness_ms == other.out_of_orderness_ms
            and self.idleness_ms == other.idleness_ms
            and same_expression(self.timestamp_column, other.timestamp_column)
        )

    def __hash__(self) -> int:
        return hash((self.out_of_orderness_ms, self.idleness_ms, str(self.timestamp_column)))

    def __str__(self) -> str:
        if self.out_of_orderness_ms is None:
            parts = ["no watermarks"]
        elif self.out_of_orderness_ms == 0:
            parts = ["monotonous timestamps"]
        else:
            parts = [f"out of order by at most {self.out_of_orderness_ms} ms"]
        if self.idleness_ms is not None:
            parts.append(f"idle after {self.idleness_ms} ms")
        if self.timestamp_column is not None:
            parts.append(f"event time from {self.timestamp_column}")
        return ", ".join(parts)
