"""Errors for calls that only another kind of stream has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

from flinkcore._internal.python.missing_features import refuse_stream_method
from flinkcore.datastream.data_stream import DataStream
from flinkcore.datastream.graph.element_transformations import (
    ChoiceTransformation,
    ElementProcessTransformation,
    MapTransformation,
)
from flinkcore.datastream.graph.transformations import EventLogSource, Transformation
from flinkcore.datastream.keyed_stream import KeyedStream
from flinkcore.datastream.logs.keyed_log_stream import KeyedLogStream
from flinkcore.datastream.logs.log_stream import LogStream
from flinkcore.datastream.logs.windowed_log_streams import WindowedLogStream
from flinkcore.errors import ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.stream import Stream
    from flinkcore.datastream.windowed_streams import WindowsOfStream

_OF_KEYS: Final = frozenset(
    ("window", "count_window", "interval_join", "reduce", "sum", "min", "max", "min_by", "max_by")
)
"""Calls of keyed streams alone."""

_VERBS: Final = frozenset(
    (
        *("deduplicate", "top", "over", "aggregate"),
        *("join_interval", "join_window", "join_temporal", "join_regular"),
    )
)
"""Calls of keyed streams of logs alone."""

_WITHOUT_KEYS: Final = {
    "window": ", or take window_all(...)",
    "count_window": ", or take count_window_all(...)",
}
"""Hints at the same call on streams without keys, by its name on keyed ones."""

_OF_RESULTS: Final = frozenset(
    (
        *("execute", "to_arrow", "to_batches", "to_pandas", "to_polars", "show", "to_dataframe"),
        *("write_parquet", "write_delta", "write_iceberg"),
    )
)
"""Calls that run a job over logs."""

_OVER_COLUMNS: Final[dict[type[Transformation], str]] = {
    MapTransformation: "with_columns(x=...) or select(x=...) with expressions, such as pyarrow.compute.field('y') * 2",
    ChoiceTransformation: "filter(...) with an expression, such as pyarrow.compute.field('price') > 100",
    ElementProcessTransformation: "process(function, schema) with the pyarrow.schema of its results",
}
"""What to call over the columns of a log instead of steps of single elements."""


class WrongStreamError(ConfigurationError, AttributeError):
    """A call on a stream that only another kind of stream has."""


def refuse_call(stream: Stream, name: str) -> NoReturn:
    """Raise for a name that a stream does not have.

    Raises
    ------
    WrongStreamError
        If another kind of stream has it; the message says how to get one.
    MissingMethodError
        If tables of Spark, Polars or pandas have it; the message says what to use instead.
    AttributeError
        If it is neither.
    """
    kind = type(stream).__name__
    if not name.startswith("_"):
        is_of_log = not isinstance(stream, DataStream)
        if is_of_log and name in _VERBS:
            between = (
                ", with window(...) in between for rows of windows"
                if hasattr(WindowedLogStream, name)
                else ""
            )
            raise WrongStreamError(
                f"{name} needs a keyed stream: call key_by('column') right before it{between}"
            )
        over_columns = not is_of_log and name in _VERBS and name != "aggregate"
        if hasattr(WindowedLogStream, name) and not hasattr(KeyedStream, name) and not over_columns:
            raise WrongStreamError(
                f"{name} needs windows: call window(TumblingEventTimeWindows.of(Time.hours(1))), or another, right "
                "before it, after key_by('column')"
            )
        if name in _OF_KEYS and not isinstance(stream, KeyedStream | KeyedLogStream):
            raise WrongStreamError(
                f"{name} needs a keyed stream: call key_by('column') right before it, after filter, select and "
                f"with_columns, which give streams without keys{_WITHOUT_KEYS.get(name, '')}"
            )
        if not is_of_log and hasattr(KeyedLogStream, name):
            owner = "LogStream" if hasattr(LogStream, name) else "KeyedLogStream"
            raise WrongStreamError(f"{kind} has no {name}, which {owner} has: {_why_elements(stream, name)}")
        if is_of_log and hasattr(KeyedStream, name):
            raise WrongStreamError(
                f"{kind} has no {name}, which DataStream has: call elements() first, which gives the rows as single "
                "elements"
            )
    refuse_stream_method(stream, name)


def refuse_call_of_windows(windows: WindowsOfStream[Any], name: str) -> NoReturn:
    """Raise for a name that windows do not have; errors as of :func:`refuse_call`."""
    if not name.startswith("_"):
        if hasattr(WindowedLogStream, name):
            raise WrongStreamError(
                f"{type(windows).__name__} has no {name}, which WindowedLogStream has: aggregates over columns are "
                "those of the stream of a log, with key_by('column')"
            )
        if hasattr(KeyedLogStream, name) or hasattr(KeyedStream, name):
            aggregate = "aggregate(function)"
            if isinstance(windows._stream, LogStream):
                written = {"sum": "sum_('column')", "min": "min_('column')", "max": "max_('column')"}
                aggregate = f"aggregate(n={written.get(name, 'count()')})"
            raise WrongStreamError(
                f"{name} is of the results of windows: call {aggregate}, or reduce, apply or process, right before it"
            )
    refuse_stream_method(windows, name)


def refuse_column_aggregates(windows: WindowsOfStream[Any]) -> NoReturn:
    """Raise for aggregates of columns that windows over single elements were given."""
    raise WrongStreamError(
        "aggregates of columns, such as count(), need windows over the columns of a log: "
        f"{_why_elements(windows._stream, 'aggregate')}"
    )


def refuse_call_of_frames(name: str) -> NoReturn:
    """Raise for a name that frames of rows do not have.

    Raises
    ------
    WrongStreamError
        If streams have it.
    AttributeError
        If they do not.
    """
    if hasattr(KeyedLogStream, name):
        raise WrongStreamError(
            f"{name} is of rows with aggregates over their frames: call aggregate(n=count()) after over(...) first"
        )
    raise AttributeError(f"'OverLogStream' object has no attribute {name!r}")


def _why_elements(stream: Stream, name: str) -> str:
    """Return why a stream has single elements, and what to do for a call over columns."""
    steps = list(stream._transformation.in_order())
    by = next((step for step in steps if step.needs_rows), None)
    if by is None and isinstance(stream, KeyedStream):
        return (
            "this stream is keyed by a function, or comes from elements(): call key_by('column') on the stream of "
            "the log, with names of columns"
        )
    if by is None:
        return "elements() has made single elements of the rows; call it before that"
    is_over_log = any(isinstance(step, EventLogSource) for step in steps)
    take = "call it before that step" if is_over_log else "begin with env.from_event_log(...)"
    if name in _OF_RESULTS:
        take = "take the elements by execute_and_collect(), or give them to a sink and call the environment's execute()"
    instead = next((call for kind, call in _OVER_COLUMNS.items() if isinstance(by, kind)), None)
    or_else = f". Or let it run over the columns of the log: {instead}" if is_over_log and instead else ""
    return f"the job runs element by element, because of the step {str(by)!r}: {take}{or_else}"
