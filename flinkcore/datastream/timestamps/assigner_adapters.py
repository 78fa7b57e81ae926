"""Adapters of legacy assigners to watermark generators and watermark strategies."""

import copy
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from flinkcore._internal.arrow.expressions import is_expression
from flinkcore.common.watermark_generators import WatermarkGenerator, WatermarkOutput
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.timestamps.assigners import (
    AscendingTimestampExtractor,
    AssignerWithPeriodicWatermarks,
    AssignerWithPunctuatedWatermarks,
    BoundedOutOfOrdernessTimestampExtractor,
    ColumnTimestampExtractor,
    IgnoringHandler,
)
from flinkcore.errors import ArgumentTypeError, ConfigurationError, in_words


class _Adapter(WatermarkGenerator[Any]):
    """The state of a generator is that of its assigner."""

    _assigner: AssignerWithPeriodicWatermarks | AssignerWithPunctuatedWatermarks

    def snapshot_state(self) -> Any:
        return self._assigner.snapshot_state()

    def restore_state(self, state: Any) -> None:
        self._assigner.restore_state(state)


class AssignerWithPeriodicWatermarksAdapter(_Adapter):
    """Asks a periodic assigner for its watermark at each periodic call.

    Parameters
    ----------
    assigner : AssignerWithPeriodicWatermarks
        The same object must extract the timestamps, since it learns of the elements by that.

    Notes
    -----
    Flink 1.20's ``AssignerWithPeriodicWatermarksAdapter``.
    """

    _assigner: AssignerWithPeriodicWatermarks

    def __init__(self, assigner: AssignerWithPeriodicWatermarks) -> None:
        self._assigner = assigner

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        pass

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        watermark = self._assigner.get_current_watermark()
        if watermark is not None:
            output.emit_watermark(watermark)


class AssignerWithPunctuatedWatermarksAdapter(_Adapter):
    """Asks a punctuated assigner for a watermark at each event.

    Parameters
    ----------
    assigner : AssignerWithPunctuatedWatermarks

    Notes
    -----
    Flink 1.20's ``AssignerWithPunctuatedWatermarksAdapter``.
    """

    changes_at_events_only = True

    _assigner: AssignerWithPunctuatedWatermarks

    def __init__(self, assigner: AssignerWithPunctuatedWatermarks) -> None:
        self._assigner = assigner

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        watermark = self._assigner.check_and_get_next_watermark(event, event_timestamp)
        if watermark is not None:
            output.emit_watermark(watermark)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


class ColumnTimestampExtractorAdapter(AssignerWithPeriodicWatermarksAdapter):
    """The watermarks of an extractor in a replay, which reads the timestamps from a column.

    Parameters
    ----------
    extractor : ColumnTimestampExtractor
        Extractor of one split.
    """

    def __init__(self, extractor: ColumnTimestampExtractor) -> None:
        super().__init__(extractor)
        self._extractor = extractor

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        self._extractor.note_timestamp(event_timestamp)


StrategyOrAssigner: TypeAlias = (
    WatermarkStrategy | AssignerWithPeriodicWatermarks | AssignerWithPunctuatedWatermarks
)
"""The argument of ``assign_timestamps_and_watermarks``."""


def as_watermark_strategy(given: StrategyOrAssigner) -> WatermarkStrategy:
    """Return a strategy as it is, and a legacy assigner as a strategy; raise ConfigurationError for anything else.

    The timestamps and the watermarks of such a strategy come from one object with state: use a copy
    (``copy.deepcopy``) of it for each split, as the timestamps-and-watermarks operator does.

    Notes
    -----
    The ``Strategy`` classes within Flink 1.20's adapters.
    """
    if isinstance(given, WatermarkStrategy):
        return given
    if isinstance(given, AssignerWithPeriodicWatermarks | AssignerWithPunctuatedWatermarks):
        return WatermarkStrategy.for_generator(_AdapterSupplier(given)).with_timestamp_assigner(given)
    raise ArgumentTypeError(
        "assign_timestamps_and_watermarks takes a strategy such as WatermarkStrategy."
        f"for_bounded_out_of_orderness(Duration.of_seconds(4)), not {given!r}"
    )


def over_columns(strategy: WatermarkStrategy) -> WatermarkStrategy:
    """Return the strategy of a bounded or ascending extractor as one that reads a column; any other as it is.

    The extractor's method is called once, with an element whose fields are columns: it must return one of them, or an
    arithmetic expression of them.

    Raises
    ------
    ConfigurationError
        If it does not.
    """
    extractor = strategy.timestamp_assigner
    if not isinstance(extractor, ColumnTimestampExtractor):
        return strategy
    name = type(extractor).__qualname__
    try:
        column = extractor.extract_column_timestamp(_Columns())
    except Exception as failure:
        raise _no_column(name, in_words(failure)) from failure
    if not is_expression(column):
        raise _no_column(name, f"it gave {column!r}")
    over_column = replace(strategy, timestamp_column=column, timestamp_assigner=None)
    if isinstance(extractor, BoundedOutOfOrdernessTimestampExtractor):
        # The watermark of a strategy is 1 ms behind that of the extractor.
        bound_ms = extractor.get_max_out_of_orderness_in_millis() - 1
    else:
        assert isinstance(extractor, AscendingTimestampExtractor)
        bound_ms = 0 if isinstance(extractor.violation_handler, IgnoringHandler) else -1
    if bound_ms >= 0:
        return replace(over_column, out_of_orderness_ms=bound_ms, generator_supplier=None)
    return replace(over_column, generator_supplier=_ExtractorSupplier(extractor))


def _no_column(name: str, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"a replay over columns reads the timestamps of {name} from a column, but its method cannot be one ({reason}). "
        "Let it return a field such as element['ts'], or an arithmetic expression of fields, or take a "
        "WatermarkStrategy with_timestamp_assigner('ts')"
    )


class _Columns:
    """An element whose fields are columns."""

    def __getitem__(self, name: str) -> Any:
        from pyarrow.compute import field

        if not isinstance(name, str):
            raise TypeError(f"a column has a name, not {name!r}")
        return field(name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]


@dataclass(frozen=True)
class _ExtractorSupplier:
    extractor: ColumnTimestampExtractor

    def __call__(self) -> WatermarkGenerator[Any]:
        return ColumnTimestampExtractorAdapter(copy.deepcopy(self.extractor))

    def __str__(self) -> str:
        return type(self.extractor).__name__


@dataclass(frozen=True)
class _AdapterSupplier:
    assigner: AssignerWithPeriodicWatermarks | AssignerWithPunctuatedWatermarks

    def __call__(self) -> WatermarkGenerator[Any]:
        if isinstance(self.assigner, AssignerWithPeriodicWatermarks):
            return AssignerWithPeriodicWatermarksAdapter(self.assigner)
        return AssignerWithPunctuatedWatermarksAdapter(self.assigner)

    def __str__(self) -> str:
        return type(self.assigner).__name__
