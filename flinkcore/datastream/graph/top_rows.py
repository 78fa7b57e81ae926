"""The arguments of `top` and `deduplicate`, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias, TypeVar

from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.graph.column_arguments import require_boolean
from flinkcore.datastream.graph.declared_type import require_output_tag
from flinkcore.datastream.graph.transformations import TopTransformation, Transformation
from flinkcore.datastream.window import WindowAssigner
from flinkcore.errors import ArgumentTypeError, ConfigurationError

Rank: TypeAlias = Literal["row_number", "rank", "dense_rank"]

RANKS: Final = ("row_number", "rank", "dense_rank")

MOST_ROWS: Final = 2**31 - 1

Each = TypeVar("Each")


def top_step(
    input: Transformation,
    n: int,
    by: str | Sequence[str],
    *,
    descending: bool | Sequence[bool],
    nulls_last: bool | Sequence[bool] | None,
    rank: Rank,
    rank_column: str | None,
    skip: int,
    changes: bool = False,
    window: WindowAssigner[Any, Any] | None = None,
    window_end: str | None = None,
    unique_key: tuple[str, ...] | None = None,
    limit_column: str | None = None,
    late_to: OutputTag | None = None,
) -> TopTransformation:
    """Return the step of `top`; parameters as of :meth:`KeyedLogStream.top`.

    `unique_key` has columns by which a row that comes replaces an earlier one of its key, if rows only ever rise.
    `limit_column` has the last rank of each key, in its first row, in place of `n`.

    Raises
    ------
    ConfigurationError
        If an argument is another one.
    """
    if isinstance(n, bool) or not isinstance(n, int) or isinstance(skip, bool) or not isinstance(skip, int):
        raise ArgumentTypeError(f"top takes numbers of rows, not n={n!r}, skip={skip!r}")
    if n < 1 or skip < 0 or n + skip > MOST_ROWS:
        raise ConfigurationError(
            f"top(n={n}, skip={skip}): n is at least 1, skip is not negative, and both together are at most "
            f"{MOST_ROWS:,}"
        )
    columns = [by] if isinstance(by, str) else by
    if not isinstance(columns, list | tuple) or not columns or not all(isinstance(c, str) for c in columns):
        raise ArgumentTypeError(
            f"top(by=...) takes a column or a list of columns, not {by!r}: compute an expression first, with "
            "with_columns(name=...)"
        )
    for column in columns:
        if columns.count(column) > 1:
            raise ConfigurationError(f"top(by=...) names column {column!r} twice")
    if rank not in RANKS:
        raise ConfigurationError(f"top(rank=...) is {', '.join(map(repr, RANKS))}, not {rank!r}")
    for name, value in (("rank_column", rank_column), ("window_end", window_end)):
        if value is not None and (not isinstance(value, str) or not value):
            raise ArgumentTypeError(f"top({name}=...) is the name of a column, or None, not {value!r}")
    require_boolean(changes, "top(changes=...)")
    if changes and (window is not None or window_end is not None):
        raise ConfigurationError(
            "top of windows has final rows, when a window fires: changes=True is for keys without windows"
        )
    if late_to is not None:
        require_output_tag(late_to, "top(late_to=...)")
        if window is None and window_end is None:
            raise ConfigurationError(
                "top(late_to=...): rows are late only for windows. Leave it out, or name the window of each row with "
                "window_end="
            )
    return TopTransformation(
        input,
        "top",
        n + skip,
        tuple(columns),
        _of_each("descending", descending, len(columns)),
        _of_each("nulls_last", nulls_last, len(columns)),
        skip,
        rank=rank,
        rank_column=rank_column,
        changes=changes,
        window=window,
        window_end=window_end,
        unique_key=unique_key,
        limit_column=limit_column,
        late_tag=late_to,
    )


def require_dedup_arguments(
    keep: str, by: str, changes: bool = False, late_to: OutputTag | None = None
) -> None:
    """Raise a ConfigurationError if an argument of `deduplicate` is another one."""
    require_boolean(changes, "deduplicate(changes=...)")
    if late_to is not None:
        require_output_tag(late_to, "deduplicate(late_to=...)")
        if (keep, by, changes) != ("first", "event_time", False):
            raise ConfigurationError(
                "deduplicate(late_to=...): only the first row by event time waits for the watermark, so that rows are "
                "late. Leave it out, or take keep='first', by='event_time' without changes"
            )
    for name, value, choices in (
        ("keep", keep, ("first", "last")),
        ("by", by, ("event_time", "arrival")),
    ):
        if value not in choices:
            raise ConfigurationError(
                f"deduplicate({name}=...) is {' or '.join(map(repr, choices))}, not {value!r}"
            )


def _of_each(name: str, given: Each | Sequence[Each], n: int) -> tuple[Each, ...]:
    """Return what is given once for all columns, or for each."""
    values: tuple[Any, ...] = tuple(given) if isinstance(given, list | tuple) else (given,) * n
    takes_null = name == "nulls_last"
    if len(values) != n or not all(
        isinstance(each, bool) or (each is None and takes_null) for each in values
    ):
        raise ConfigurationError(
            f"top({name}=...) is true or false, or a list with one for each of the {n} columns of by=, not {given!r}"
        )
    return values
