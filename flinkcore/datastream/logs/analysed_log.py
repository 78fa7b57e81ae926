"""Analyses of a log and of a job over it: lateness, other strategies, the story of a key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from flinkcore.common.time import Interval
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.aggregates import Aggregate
from flinkcore.datastream.graph.key_columns import KeyColumns
from flinkcore.datastream.graph.pipeline_executor import (
    KeyStory,
    LatenessFigures,
    StrategyComparison,
    load_analysis,
)
from flinkcore.datastream.graph.transformations import (
    OperatorTransformation,
    PartitionTransformation,
    StreamGraph,
    WindowTransformation,
)
from flinkcore.datastream.logs.log_rows import LogRows
from flinkcore.errors import ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.window import WindowAssigner

T = TypeVar("T")


class AnalysedLog(LogRows):
    """Rows of a job over event logs that can be asked what made them."""

    def lateness(
        self,
        windows: WindowAssigner[Any, Any] | Iterable[WindowAssigner[Any, Any]] | None = None,
        allowed_lateness: Interval | Iterable[Interval] | None = None,
        bounds: Interval | Iterable[Interval] | None = None,
    ) -> LatenessFigures:
        """Return how many events every bound of out-of-orderness loses, and how long it makes results wait.

        Reads the times of the log here and now: those of files once, as far as they fit into 256 MiB, in which an event
        takes 3 to 4 bytes where the log is about in order; what does not fit, and on Spark all, twice. Of the job only
        the log, the steps before the key and the watermark strategy count: the strategy's own bound is one among all;
        idleness, alignment, ticks and splits are as they are. Figures are exact: those of a replay with the bound.
        Besides these 256 MiB memory depends on splits, steps of the watermark and windows, but not on the number of
        events.

        Parameters
        ----------
        windows : WindowAssigner or iterable of these, optional
            Tumbling, sliding or cumulative windows of event time, for which events may be late. By default those of the
            job, if such windows over columns are its first operator; else events may be late for the watermark only.
        allowed_lateness : Time, Duration, datetime.timedelta, int (ms) or iterable of these, optional
            Allowed lateness of each of the windows; by default that of the job's windows, else 0.
        bounds : Time, Duration, datetime.timedelta, int (ms) or iterable of these, optional
            Bounds at which late events are counted; by default some thousand from 0 up to the largest disorder, about
            a hundredth apart.

        Returns
        -------
        LatenessFigures
            The figures as tables; printed, a sentence, a picture and advice.

        Raises
        ------
        ConfigurationError
            If the strategy has no bound (generators of one's own, percentiles, no watermarks), the job has several
            logs, jobs of the environment are restored from a checkpoint, or a setting is invalid.
        SchemaError, DataError, SourceError
            As of :meth:`LogStream.execute`.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from flinkcore.common import WatermarkStrategy
        >>> from flinkcore.datastream import StreamExecutionEnvironment
        >>> rows = pa.table({"ts": [0, 9_000, 2_000, 20_000], "arrival": [0, 9_000, 10_000, 20_000]})
        >>> frontier = (
        ...     StreamExecutionEnvironment.get_execution_environment()
        ...     .from_event_log(rows, timestamp="ts", arrival="arrival")
        ...     .assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        ...     .lateness()
        ... )
        >>> frontier.bound_that_loses(0.0).to_millis()
        7000
        """
        from flinkcore.datastream.window import GlobalWindows
        from flinkcore.datastream.window.window_assigner import require_assigner

        self._refuse_restored("lateness()")
        asked = _several(windows)
        end = self._transformation
        if not any(isinstance(step, OperatorTransformation) for step in end.in_order()):
            # A replay has an operator; rows that have no place in the windows are bad rows of its log.
            first = asked[0] if asked else GlobalWindows.create_with_end_of_stream_trigger()
            under_one_key = PartitionTransformation(end, KeyColumns())
            events = ("events", Aggregate("count"))
            end = WindowTransformation(
                under_one_key, require_assigner(first, "window_all"), 0, None, (events,)
            )
        planned = self._environment.executor.planned(StreamGraph(end), self._environment.get_config())
        frontier: LatenessFigures = load_analysis("lateness")(
            planned, asked, _several(allowed_lateness), _several(bounds)
        )
        return frontier

    def what_if(
        self,
        strategies: WatermarkStrategy | Iterable[WatermarkStrategy],
        keys: str | Sequence[str] | None = None,
    ) -> StrategyComparison:
        """Return what this job would give under other watermark strategies, compared with what it gives under its own.

        One replay, here and now, runs the job under all strategies side by side: also those for which `lateness` has no
        closed form, such as generators of one's own and percentiles, and any windows, such as sessions. The results of
        all are held in memory, a row for each, however often it was given.

        Parameters
        ----------
        strategies : WatermarkStrategy or iterable of these
            Each is to take the place of the job's own.
        keys : str or sequence of str, optional
            Columns by which two results are the same one; by default the keys and bounds of the windows over columns
            whose results this stream has.

        Returns
        -------
        StrategyComparison
            The differences as tables; printed, how many results change, and by how much.

        Raises
        ------
        ConfigurationError
            If the job has not one strategy over one log, or withdraws results; if jobs of the
            environment are restored from a checkpoint, keys are to be named, or a setting is invalid.
        SchemaError, DataError, SourceError
            As of :meth:`LogStream.execute`; a DataError also if results have no timestamp, as those of processing-time
            timers.
        """
        self._refuse_restored("what_if()")
        comparison: StrategyComparison = load_analysis("what_if")(self, _several(strategies) or [], keys)
        return comparison

    def why(self, key: Any, window: Any = None) -> KeyStory:
        """Return what became of the events of one key, and what its results were made of.

        The times of the whole log are read, for the watermarks; of the rest only what can have the key.

        Parameters
        ----------
        key : object
            Its value; of a key of several columns a tuple in their order, or a mapping by name. Text stands for a value
            of any type.
        window : int, datetime, str or pair of these, optional
            A time, in ms since the epoch, or as text in ISO 8601: only the windows that it falls into. Two: the start
            and the end of one window. By default all; a process function has none to ask for.

        Returns
        -------
        KeyStory
            `print` it, or take its tables `events`, `firings` and `timers`.

        Raises
        ------
        ConfigurationError
            If the job has not one keyed operator over one stream, jobs of the environment are restored from a
            checkpoint, or the key or the window is none of it; before anything is read.
        """
        self._refuse_restored("why()")
        graph = StreamGraph(self._transformation)
        planned = self._environment.executor.planned(graph, self._environment.get_config())
        story: KeyStory = load_analysis("why")(planned, key, window)
        return story

    def _refuse_restored(self, call: str) -> None:
        """Raise a ConfigurationError if jobs of the environment go on from a checkpoint, which a call cannot judge."""
        restored = self._environment._checkpoint_settings(None, None).restore_from
        if restored is not None:
            raise ConfigurationError(
                f"{call} judges a log from its beginning, but jobs of this environment are restored from {restored}: "
                "leave execution.state-recovery.path out, and give it the whole log"
            )


def _several(given: T | Iterable[T] | None) -> list[T] | None:
    """Return one or several as a list; what reads it checks what they are."""
    if given is None:
        return None
    if isinstance(given, Iterable) and not isinstance(given, str):
        return list(given)
    return [given]
