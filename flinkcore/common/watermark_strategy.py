"""How timestamps and watermarks are made from the events of a split."""

from dataclasses import dataclass, replace
from typing import Any

from flinkcore.common.checked_watermark_generator import (
    WatermarkGeneratorSupplier,
    supplied_generator,
    supplier_name,
)
from flinkcore.common.expressions import Expression, is_expression, same_expression
from flinkcore.common.held_generators import HeldGenerators
from flinkcore.common.percentile_watermarks import PercentileWatermarksSupplier
from flinkcore.common.time import Duration, Time, bound_ms, timeout_ms
from flinkcore.common.timestamp_assigner import (
    CheckedTimestampAssigner,
    RecordTimestampAssigner,
    TimestampAssigner,
)
from flinkcore.common.watermark_alignment_params import WatermarkAlignmentParams
from flinkcore.common.watermark_generator import WatermarkGenerator
from flinkcore.common.watermark_generators import BoundedOutOfOrdernessWatermarks, NoWatermarksGenerator
from flinkcore.common.watermarks_with_idleness import RelativeClock, WatermarksWithIdleness
from flinkcore.errors import ConfigurationError


@dataclass(frozen=True, eq=False)
class WatermarkStrategy:
    """States where event time comes from and how far watermarks trail it; immutable.

    Made by :meth:`for_bounded_out_of_orderness`, :meth:`for_monotonous_timestamps`,
    :meth:`for_percentile_out_of_orderness`, :meth:`for_generator` or :meth:`no_watermarks`, then enriched with
    :meth:`with_idleness`, :meth:`with_timestamp_assigner` and :meth:`with_watermark_alignment`, in any order.
    Can be pickled if its supplier and its assigner can.

    Attributes
    ----------
    out_of_orderness_ms : int or None
        The watermark is the largest timestamp minus this minus 1 ms. None: what the `generator_supplier` makes
        of it, or without one no watermark before the end.
    idleness_ms : int or None
        A split without events for longer than this does not hold the merged watermark back. None: never idle.
    timestamp_column : str, pyarrow.compute.Expression or None
        Column or expression that gives the event time. None: the timestamp that the source gave.
    timestamp_assigner : TimestampAssigner or None
        Gives the event time instead, element by element.
    generator_supplier : callable or None
        Makes the generator of each split, where it is not one of the columnar path.
    alignment_parameters : WatermarkAlignmentParams or None
        None: the source is not aligned with others.

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
    timestamp_assigner: TimestampAssigner | None = None
    generator_supplier: WatermarkGeneratorSupplier | None = None
    alignment_parameters: WatermarkAlignmentParams | None = None

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
        return WatermarkStrategy(bound_ms(max_out_of_orderness, "max_out_of_orderness"))

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

    @staticmethod
    def for_percentile_out_of_orderness(
        max_out_of_orderness: Duration | Time, percentile: float, window_size: int
    ) -> "WatermarkStrategy":
        """Return a strategy whose watermark trails a percentile of the latest timestamps by a bound and 1 ms.

        Parameters
        ----------
        max_out_of_orderness : Duration or Time
            Not negative; counted in whole milliseconds.
        percentile : float
            Above 0, at most 1; 0.99 ignores one event of a hundred.
        window_size : int
            How many of the latest events of a split are looked at.

        Raises
        ------
        ConfigurationError
            If a parameter is out of its range.

        Notes
        -----
        Not in Flink: :class:`PercentileOutOfOrdernessWatermarks` tells what it gains and what it costs.
        """
        supplier = PercentileWatermarksSupplier(max_out_of_orderness, percentile, window_size)
        return WatermarkStrategy(None, generator_supplier=supplier)

    @staticmethod
    def for_generator(generator_supplier: WatermarkGeneratorSupplier) -> "WatermarkStrategy":
        """Return a strategy with a watermark generator written in Python.

        Parameters
        ----------
        generator_supplier : callable
            Called without arguments, once for each split; gives a new WatermarkGenerator each time, for one that
            two splits shared would make events late at random. A subclass of WatermarkGenerator whose constructor
            needs no arguments is one.

        Raises
        ------
        ConfigurationError
            If it cannot be called.

        Notes
        -----
        Flink's ``WatermarkStrategy.forGenerator``, which PyFlink leaves out. A replay reads the times once more
        and calls the generator for each event, which takes some 0.3 µs on top of its own time, and at each tick
        (`WatermarkGenerator`). On Spark each split is one task's, and class or function travel as Spark sends
        user code. Watermarks that do not advance have no effect.

        Each watermark that does, and each change of idleness, takes 32 bytes where the timeline is made (on Spark
        the driver): up to 256 MiB in memory, all of them in a temporary file if there are more. Each step of the
        timeline, at which the watermark of all splits advances, takes 32 bytes of memory there and in each task, or
        16 if ticks alone make steps. A generator that emits at every event may make about as many steps as there
        are events; one that emits periodically at most one per tick.

        A job that stops with a checkpoint, or goes on from one, needs what the generators hold:
        `WatermarkGenerator.snapshot_state` and `restore_state`.

        Examples
        --------
        >>> from flinkcore.common.watermark_generators import AscendingTimestampsWatermarks
        >>> strategy = WatermarkStrategy.for_generator(AscendingTimestampsWatermarks)
        """
        if not callable(generator_supplier):
            raise ConfigurationError(
                "for_generator takes a class or function that makes a WatermarkGenerator, since each split needs "
                f"one of its own, not {generator_supplier!r}"
            )
        return WatermarkStrategy(None, generator_supplier=generator_supplier)

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
        return replace(self, idleness_ms=timeout_ms(idle_timeout, "idle_timeout"))

    def with_timestamp_assigner(
        self, timestamp_assigner: str | Expression | TimestampAssigner
    ) -> "WatermarkStrategy":
        """Return this strategy with event time taken from a column, an expression or an assigner.

        Parameters
        ----------
        timestamp_assigner : str, pyarrow.compute.Expression or TimestampAssigner
            Name of a column, or an expression; of an Arrow timestamp or date type, integer milliseconds since
            the epoch, or ISO 8601 text. Where integers are seconds: ``pyarrow.compute.field("ts") * 1000``. Or an
            assigner, which is called for each element. The last call counts.

        Raises
        ------
        ConfigurationError
            If it is none of these.

        Notes
        -----
        PyFlink's ``WatermarkStrategy.with_timestamp_assigner``, and its columnar counterpart.
        """
        if isinstance(timestamp_assigner, TimestampAssigner):
            return replace(self, timestamp_column=None, timestamp_assigner=timestamp_assigner)
        named = isinstance(timestamp_assigner, str) and timestamp_assigner != ""
        if not named and not is_expression(timestamp_assigner):
            raise ConfigurationError(
                "with_timestamp_assigner takes the name of a column or a pyarrow expression, such as 'ts' or "
                "pyarrow.compute.field('ts'), or an instance of a subclass of TimestampAssigner, "
                f"not {timestamp_assigner!r}"
            )
        return replace(self, timestamp_column=timestamp_assigner, timestamp_assigner=None)

    def with_watermark_alignment(
        self,
        watermark_group: str,
        max_allowed_watermark_drift: Duration | Time,
        update_interval: Duration | Time | None = None,
    ) -> "WatermarkStrategy":
        """Return this strategy with reading paused where it is too far ahead of others.

        Parameters
        ----------
        watermark_group : str
            Sources with the same group wait for each other.
        max_allowed_watermark_drift : Duration or Time
            How far a watermark may be ahead of the group's smallest before reading pauses; not negative.
        update_interval : Duration or Time or None
            How often the group's smallest watermark is computed; at least 1 ms. None: 1 s.

        Raises
        ------
        ConfigurationError
            If the group has no name, the drift is negative or the interval is not above zero.

        Notes
        -----
        Flink's ``WatermarksWithWatermarkAlignment``. In a replay a log is one source, whose splits are aligned with
        each other on the replay clock: a split that is too far ahead is not read, what arrives meanwhile is read when
        it is resumed, and ``report.paused_spans(split)`` tells when that was. The drift then bounds how many windows
        are open at once, and with it the memory; which events are late may change, too. Not with generators of
        `for_generator` and `for_percentile_out_of_orderness`.
        """
        if not isinstance(watermark_group, str) or not watermark_group:
            raise ConfigurationError(f"watermark_group must be a name, not {watermark_group!r}")
        interval = Duration.of_seconds(1) if update_interval is None else update_interval
        parameters = WatermarkAlignmentParams(
            watermark_group,
            bound_ms(max_allowed_watermark_drift, "max_allowed_watermark_drift"),
            timeout_ms(interval, "update_interval"),
        )
        return replace(self, alignment_parameters=parameters)

    def create_timestamp_assigner(self, split: str | None = None) -> TimestampAssigner:
        """Return what gives elements their event time in the runtime.

        Parameters
        ----------
        split : str or None
            Named in error messages.

        Raises
        ------
        ConfigurationError
            If event time comes from a column, which only the columnar path reads.
        """
        if self.timestamp_column is not None:
            raise ConfigurationError(
                f"event time comes from {self.timestamp_column}, but elements that are handled one by one in "
                "Python have no columns: pass with_timestamp_assigner a TimestampAssigner"
            )
        if self.timestamp_assigner is None:
            return RecordTimestampAssigner()
        return CheckedTimestampAssigner(self.timestamp_assigner, split)

    def create_watermark_generator(
        self, clock: RelativeClock, split: str | None = None, held: HeldGenerators | None = None
    ) -> WatermarkGenerator[Any]:
        """Return a new generator for one split.

        Parameters
        ----------
        clock : callable
            Gives the time in ms that idleness is measured by; where it starts does not matter.
        split : str or None
            Named in error messages.
        held : HeldGenerators or None
            Those of the other splits of the source; a supplier's generator becomes one of them.

        Raises
        ------
        ConfigurationError
            If the supplier gives something else, or what another split holds.
        UserCodeError
            If the supplier raises.
        """
        generator: WatermarkGenerator[Any]
        if self.generator_supplier is not None:
            generator = supplied_generator(self.generator_supplier, split, held)
        elif self.out_of_orderness_ms is not None:
            generator = BoundedOutOfOrdernessWatermarks(Time(self.out_of_orderness_ms))
        else:
            generator = NoWatermarksGenerator()
        if self.idleness_ms is None:
            return generator
        return WatermarksWithIdleness(generator, Time(self.idleness_ms), clock)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WatermarkStrategy):
            return NotImplemented
        return self._compared() == other._compared() and same_expression(
            self.timestamp_column, other.timestamp_column
        )

    def __hash__(self) -> int:
        return hash((self.out_of_orderness_ms, self.idleness_ms, str(self.timestamp_column)))

    def _compared(self) -> tuple[object, ...]:
        return (
            self.out_of_orderness_ms,
            self.idleness_ms,
            self.timestamp_assigner,
            self.generator_supplier,
            self.alignment_parameters,
        )

    def __str__(self) -> str:
        if self.generator_supplier is not None:
            parts = [f"watermarks by {supplier_name(self.generator_supplier)}"]
        elif self.out_of_orderness_ms is None:
            parts = ["no watermarks"]
        elif self.out_of_orderness_ms == 0:
            parts = ["monotonous timestamps"]
        else:
            parts = [f"out of order by at most {self.out_of_orderness_ms} ms"]
        if self.idleness_ms is not None:
            parts.append(f"idle after {self.idleness_ms} ms")
        if self.timestamp_column is not None:
            parts.append(f"event time from {self.timestamp_column}")
        if self.timestamp_assigner is not None:
            parts.append(f"event time from {type(self.timestamp_assigner).__name__}")
        if self.alignment_parameters is not None:
            parts.append(str(self.alignment_parameters))
        return ", ".join(parts)
