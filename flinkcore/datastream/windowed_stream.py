"""Keyed streams cut into windows."""

from copy import copy
from typing import TYPE_CHECKING, Any, Final

from flinkcore.common.output_tag import OutputTag
from flinkcore.common.time import Duration, Time, interval_or_ms
from flinkcore.datastream.aggregates import Aggregate
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.transformations import PartitionTransformation, WindowTransformation
from flinkcore.datastream.window import MergingWindowAssigner, Trigger, WindowAssigner
from flinkcore.errors import ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.keyed_stream import KeyedStream

WINDOW_RESULT_COLUMNS: Final = ("window_start", "window_end", "late_firing", "watermark")
"""Columns of every window result beside the keys and the aggregates."""


class WindowedStream:
    """A keyed stream cut into windows, to be aggregated.

    Notes
    -----
    Follows ``pyflink.datastream.WindowedStream``. Deliberate difference: each call returns a new object and leaves
    the old one as it was.
    """

    def __init__(self, stream: "KeyedStream", window_assigner: WindowAssigner[Any, Any]) -> None:
        self._stream = stream
        self._window_assigner = window_assigner
        self._trigger: Trigger[Any, Any] | None = None
        self._allowed_lateness_ms = 0
        self._late_tag: OutputTag | None = None

    def _with(self, **settings: Any) -> "WindowedStream":
        changed = copy(self)
        for name, value in settings.items():
            setattr(changed, f"_{name}", value)
        return changed

    def trigger(self, trigger: Trigger[Any, Any]) -> "WindowedStream":
        """Return this with windows that fire when a trigger says so, instead of their own.

        Parameters
        ----------
        trigger : Trigger
            From :mod:`flinkcore.datastream.window`. Over columns run EventTimeTrigger, CountTrigger and
            ContinuousEventTimeTrigger, also within a PurgingTrigger.

        Raises
        ------
        ConfigurationError
            If it is no trigger, or the windows merge and it does not support that.

        Examples
        --------
        >>> windowed.trigger(PurgingTrigger.of(CountTrigger.of(100)))  # doctest: +SKIP
        """
        if not isinstance(trigger, Trigger):
            raise ConfigurationError(f"trigger takes one such as CountTrigger.of(10), not {trigger!r}")
        if isinstance(self._window_assigner, MergingWindowAssigner) and not trigger.can_merge():
            raise ConfigurationError(
                f"{type(self._window_assigner).__name__} makes windows that merge, but {type(trigger).__name__} does "
                "not support merging"
            )
        return self._with(trigger=trigger)

    def allowed_lateness(self, time_ms: int | Time | Duration) -> "WindowedStream":
        """Return this with windows that stay open for late rows.

        Parameters
        ----------
        time_ms : int, Time or Duration
            Not negative; a number is milliseconds. A row that comes into a fired window fires it again, at
            once.

        Raises
        ------
        ConfigurationError
            If it is negative.
        """
        lateness_ms = interval_or_ms(time_ms, "allowed_lateness")
        if lateness_ms < 0:
            raise ConfigurationError(f"allowed_lateness cannot be negative, it is {lateness_ms} ms")
        return self._with(allowed_lateness_ms=lateness_ms)

    def side_output_late_data(self, output_tag: OutputTag) -> "WindowedStream":
        """Return this with rows that are too late for all their windows sent to a side output.

        Parameters
        ----------
        output_tag : OutputTag

        Raises
        ------
        ConfigurationError
            If it is not an output tag.
        """
        if not isinstance(output_tag, OutputTag):
            raise ConfigurationError(
                f"side_output_late_data takes an OutputTag, such as OutputTag('late'), not {output_tag!r}"
            )
        return self._with(late_tag=output_tag)

    def aggregate(self, **aggregates: Aggregate) -> DataStream:
        """Return a stream with one row per firing of a window.

        Parameters
        ----------
        **aggregates : Aggregate
            Output columns, from :mod:`flinkcore.datastream.aggregates`.

        Returns
        -------
        DataStream
            Columns: the keys, ``window_start``, ``window_end`` (null of windows without bounds), the aggregates in
            the order given, ``late_firing`` (bool: fired by a row, when the watermark had passed the window's end) and
            ``watermark`` (int64 ms: in force at the firing).

        Raises
        ------
        ConfigurationError
            If there is no aggregate, one is something else, or its name is taken by another output column.

        Examples
        --------
        >>> from flinkcore.datastream.aggregates import count, sum_
        >>> windowed.aggregate(clicks=count(), spent=sum_("price"))  # doctest: +SKIP
        """
        if not aggregates:
            raise ConfigurationError("aggregate needs at least one: aggregate(n=count())")
        keys = self._stream._key_columns
        for key in keys:
            if key in WINDOW_RESULT_COLUMNS:
                raise ConfigurationError(
                    f"the key column {key!r} has the name of a result column; rename it before key_by, with "
                    f"with_columns(new_name=pyarrow.compute.field({key!r}))"
                )
        for name, aggregate in aggregates.items():
            if not isinstance(aggregate, Aggregate):
                raise ConfigurationError(
                    f"aggregate({name}=...) takes an aggregate such as count() or sum_('price'), "
                    f"not {aggregate!r}"
                )
            if name in keys or name in WINDOW_RESULT_COLUMNS:
                raise ConfigurationError(
                    f"an aggregate cannot be named {name!r}: results already have the columns "
                    f"{', '.join((*keys, *WINDOW_RESULT_COLUMNS))}"
                )
        keyed = PartitionTransformation(self._stream._transformation, keys)
        return DataStream(
            self._stream._environment,
            WindowTransformation(
                keyed,
                self._window_assigner,
                self._allowed_lateness_ms,
                self._late_tag,
                tuple(aggregates.items()),
                self._trigger,
            ),
        )
