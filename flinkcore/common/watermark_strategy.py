"""Watermark strategies: how the events of a split get timestamps and watermarks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NoReturn

from flinkcore._internal.arrow.expressions import Expression, is_expression, same_expression
from flinkcore._internal.python.missing_features import refuse_name
from flinkcore.common.generators.supplied_generators import (
    HeldGenerators,
    WatermarkGeneratorSupplier,
    supplied_generator,
    supplier_name,
)
from flinkcore.common.percentile_watermarks import PercentileWatermarksSupplier
from flinkcore.common.time import Duration, Interval, Time, bound_ms, timeout_ms
from flinkcore.common.timestamp_assigner import (
    CheckedTimestampAssigner,
    ClockedTimestampAssigner,
    RecordTimestampAssigner,
    TimestampAssigner,
)
from flinkcore.common.watermark_generators import (
    BoundedOutOfOrdernessWatermarks,
    NoWatermarksGenerator,
    RelativeClock,
    WatermarkGenerator,
    WatermarksWithIdleness,
)
from flinkcore.errors import ArgumentTypeError, ConfigurationError


@dataclass(frozen=True)
class WatermarkAlignmentParams:
    """The group that a source is aligned with, and how closely.

    Parameters
    ----------
    watermark_group : str
        Sources of the same group wait for each other.
    max_allowed_watermark_drift_ms : int
        Largest lead of a watermark over the group's smallest before reading pauses, in ms; not negative.
    update_interval_ms : int
        Interval at which the group's smallest watermark is computed, in ms; at least 1.

    Raises
    ------
    ConfigurationError
        If the drift is negative, or the interval not above zero.

    Notes
    -----
    Flink's ``org.apache.flink.api.common.eventtime.WatermarkAlignmentParams``.
    """

    watermark_group: str
    max_allowed_watermark_drift_ms: int
    update_interval_ms: int

    def __post_init__(self) -> None:
        if self.max_allowed_watermark_drift_ms < 0:
            raise ConfigurationError(
                "the maximum allowed watermark drift cannot be negative, it is "
                f"{self.max_allowed_watermark_drift_ms} ms"
            )
        if self.update_interval_ms < 1:
            raise ConfigurationError(
                f"the update interval of watermark alignment must be at least 1 ms, it is {self.update_interval_ms} ms"
            )

    def __str__(self) -> str:
        return (
            f"aligned in group {self.watermark_group!r} to {self.max_allowed_watermark_drift_ms} ms, "
            f"updated each {self.update_interval_ms} ms"
        )


@dataclass(frozen=True, eq=False)
class WatermarkStrategy:
    """Defines where event time comes from and how far watermarks trail it; immutable.

    Made by :meth:`for_bounded_out_of_orderness`, :meth:`for_monotonous_timestamps`,
    :meth:`for_percentile_out_of_orderness`, :meth:`for_generator` or :meth:`no_watermarks`, then refined by
    :meth:`with_idleness`, :meth:`with_timestamp_assigner` and :meth:`with_watermark_alignment`, in any order.
    It can be pickled if its supplier and its assigner can.

    Attributes
    ----------
    out_of_orderness_ms : int or None
        The watermark is the largest timestamp minus this minus 1 ms. With None the generators of `generator_supplier`
        emit it; without a supplier there is no watermark before the end.
    idleness_ms : int or None
        A split without events for longer than this, in ms, does not hold the merged watermark back; with None no
        split is ever idle.
    timestamp_column : str, pyarrow.compute.Expression or None
        Column or expression with the event time, or None for the timestamp that the source assigned.
    timestamp_assigner : TimestampAssigner or None
        Assigns the event time instead, element by element.
    generator_supplier : callable or None
        Returns the generator of each split, if it is not one of the columnar path.
    alignment_parameters : WatermarkAlignmentParams or None
        Group and drift of the source's alignment, or None if it is not aligned with others.

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
    def for_bounded_out_of_orderness(max_out_of_orderness: Interval) -> WatermarkStrategy:
        """Return a strategy whose watermark trails the largest timestamp by a bound and 1 ms.

        The bound, a Duration or Time, is counted in whole milliseconds; a negative one is a ConfigurationError.
        Flink's ``BoundedOutOfOrdernessWatermarks``.
        """
        return WatermarkStrategy(bound_ms(max_out_of_orderness, "max_out_of_orderness"))

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """Return a strategy for timestamps that never go back: the watermark trails the largest by 1 ms.

        Notes
        -----
        Flink's ``AscendingTimestampsWatermarks``: a bound of 0.
        """
        return WatermarkStrategy(0)

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """Return a strategy without watermarks; everything fires at the end of the log.

        Notes
        -----
        Flink's ``NoWatermarksGenerator``.
        """
        return WatermarkStrategy(None)

    @staticmethod
    def for_percentile_out_of_orderness(
        max_out_of_orderness: Interval, percentile: float, window_size: int
    ) -> WatermarkStrategy:
        """Return a strategy whose watermark trails a percentile of the latest timestamps by a bound and 1 ms.

        Parameters and errors are those of :class:`PercentileOutOfOrdernessWatermarks`, which describes what this gains
        and what it costs. It is not in Flink.
        """
        supplier = PercentileWatermarksSupplier(max_out_of_orderness, percentile, window_size)
        return WatermarkStrategy(None, generator_supplier=supplier)

    @staticmethod
    def for_generator(generator_supplier: WatermarkGeneratorSupplier) -> WatermarkStrategy:
        """Return a strategy with a watermark generator written in Python.

        Parameters
        ----------
        generator_supplier : callable
            Called without arguments, once per split; must return a new WatermarkGenerator each time, as one that two
            splits shared would make events late at random. A subclass of WatermarkGenerator whose constructor needs no
            arguments is such a callable.

        Raises
        ------
        ConfigurationError
            If it cannot be called.

        Notes
        -----
        Flink's ``WatermarkStrategy.forGenerator``, which PyFlink leaves out. A replay reads the times once more and
        calls the generator at each tick and for each event, with some 0.3 µs of overhead per event. On Spark each split
        is processed by one task, and the supplier is sent to it like any user code. Watermarks that do not advance have
        no effect.

        Each watermark that advances, and each change of idleness, takes 32 bytes where the timeline is built (on Spark,
        the driver): in memory up to 256 MiB, beyond that in a temporary file. Each step of the timeline, at which the
        merged watermark advances, takes two to four bytes there and on each executor if it is at a tick, and up to
        eight if an event made it. A generator that emits at every event may make about as many steps as there are
        events; a periodic one makes at most one per tick.

        A job that stops with a checkpoint, or is restored from one, needs the state of its generators:
        `WatermarkGenerator.snapshot_state` and `restore_state`.

        Examples
        --------
        >>> from flinkcore.common.watermark_generators import AscendingTimestampsWatermarks
        >>> strategy = WatermarkStrategy.for_generator(AscendingTimestampsWatermarks)
        """
        if not callable(generator_supplier):
            raise ArgumentTypeError(
                "for_generator takes a class or function that makes a WatermarkGenerator, since each split needs "
                f"one of its own, not {generator_supplier!r}"
            )
        return WatermarkStrategy(None, generator_supplier=generator_supplier)

    def with_idleness(self, idle_timeout: Interval) -> WatermarkStrategy:
        """Return this strategy with idleness detection.

        Parameters
        ----------
        idle_timeout : Time, Duration, datetime.timedelta or int (ms)
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
    ) -> WatermarkStrategy:
        """Return this strategy with event time taken from a column, an expression or an assigner.

        Parameters
        ----------
        timestamp_assigner : str, pyarrow.compute.Expression or TimestampAssigner
            Name of a column, or an expression; of an Arrow timestamp or date type, integer milliseconds since the
            epoch, or ISO 8601 text. If integers are seconds: ``pyarrow.compute.field("ts") * 1000``. Or an assigner,
            which is called for each element. A later call replaces an earlier one.

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
            raise ArgumentTypeError(
                "with_timestamp_assigner takes the name of a column or a pyarrow expression, such as 'ts' or "
                "pyarrow.compute.field('ts'), or an instance of a subclass of TimestampAssigner, "
                f"not {timestamp_assigner!r}"
            )
        return replace(self, timestamp_column=timestamp_assigner, timestamp_assigner=None)

    def with_watermark_alignment(
        self,
        watermark_group: str,
        max_allowed_watermark_drift: Interval,
        update_interval: Interval | None = None,
    ) -> WatermarkStrategy:
        """Return this strategy with watermark alignment: splits that are too far ahead of others pause.

        Parameters
        ----------
        watermark_group : str
            Sources of the same group wait for each other.
        max_allowed_watermark_drift : Time, Duration, datetime.timedelta or int (ms)
            Largest lead of a watermark over the group's smallest before reading pauses; not negative.
        update_interval : Time, Duration, datetime.timedelta or int (ms), optional
            Interval at which the group's smallest watermark is computed; at least 1 ms. Default: 1 s.

        Raises
        ------
        ConfigurationError
            If the group has no name, the drift is negative or the interval is not above zero.

        Notes
        -----
        Flink's ``WatermarksWithWatermarkAlignment``. In a replay a log is one source, whose splits are aligned with
        each other on the replay clock: a split that is too far ahead is paused, its events of that time are read when
        it is resumed, and ``report.paused_spans(split)`` returns when that was. The drift thus bounds the number of
        open windows and the memory; it may also change which events are late. Not supported with generators of
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

    def create_timestamp_assigner(self, clock: RelativeClock, split: str | None = None) -> TimestampAssigner:
        """Return the assigner of event time that the runtime calls.

        Parameters
        ----------
        clock : callable
            Returns the processing time of the job, in ms since the epoch.
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
                "Python have no columns. Pass with_timestamp_assigner a TimestampAssigner"
            )
        if self.timestamp_assigner is None:
            return RecordTimestampAssigner()
        if isinstance(self.timestamp_assigner, ClockedTimestampAssigner):
            self.timestamp_assigner.set_clock(clock)
        return CheckedTimestampAssigner(self.timestamp_assigner, split)

    def create_watermark_generator(
        self, clock: RelativeClock, split: str | None = None, held: HeldGenerators | None = None
    ) -> WatermarkGenerator[Any]:
        """Return a new generator for one split.

        Parameters
        ----------
        clock : callable
            Returns the time in ms that idleness is measured by; it may start anywhere.
        split : str or None
            Named in error messages.
        held : HeldGenerators or None
            Generators of the other splits of the source; that of a supplier is added to them.

        Raises
        ------
        ConfigurationError
            If the supplier returns something else, or a generator that another split holds.
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


def __getattr__(name: str) -> NoReturn:
    """Report what to use instead of names that PyFlink has here and flinkcore does not."""
    refuse_name(__name__, name)
