"""Results of a job under other watermark strategies: all are replayed together, and their results compared."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.show.durations import shown_duration, shown_share
from flinkcore._internal.show.html import html_lines
from flinkcore.analysis.point_in_time import WITHDRAWN
from flinkcore.analysis.result_tables import differences, ids_of_keys, names_of
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream import LogStream
from flinkcore.datastream.aggregates import Aggregate
from flinkcore.datastream.graph.columnar_windows import ROW_KIND, require_output_mode
from flinkcore.datastream.graph.output_mode import OutputMode
from flinkcore.datastream.graph.transformations import (
    PartitionTransformation,
    StreamGraph,
    TimestampsAndWatermarksTransformation,
    Transformation,
    WindowTransformation,
)
from flinkcore.datastream.window import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    GlobalWindows,
    MergingWindowAssigner,
)
from flinkcore.errors import ConfigurationError

_STRATEGY: Final = "strategy"
_FIRINGS: Final = "firings"
_GIVEN: Final = "given"
_GIVEN_KIND: Final = "given_kind"
"""No column of a result has such a name: they begin with `key_`, `first_` and `last_`."""

_HOW: Final = ("late_firing", "watermark")
"""Columns of results that say how a result came, not what it is."""

_BOUNDS: Final = ("window_start", "window_end")

_WITHOUT_BOUNDS: Final = (GlobalWindows, CountTumblingWindowAssigner, CountSlidingWindowAssigner)
"""Windows whose results have no timestamp, by which the comparison could take them in."""


@dataclass(frozen=True, eq=False, repr=False)
class WhatIf:
    """Results of a job under its own watermark strategy and under others.

    Attributes
    ----------
    strategies : tuple of WatermarkStrategy
        The job's own first.
    keys : tuple of str
        Columns by which results are the same result.
    late : tuple of int
        Events late for all their windows, under each strategy.
    results : tuple of pyarrow.Table
        Under each strategy a row per result: keys, ``firings`` (how many rows it gave), and each other column as it
        came first (``first_...``) and last (``last_...``).
    withdrawn : tuple of int
        Results of sessions that were given and then became part of another session, under each strategy; they are none
        of ``results``.
    """

    strategies: tuple[WatermarkStrategy, ...]
    keys: tuple[str, ...]
    late: tuple[int, ...]
    results: tuple[pa.Table, ...]
    withdrawn: tuple[int, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the results that are compared."""
        names = self.results[0].schema.names
        return tuple(name.removeprefix("last_") for name in names if name.startswith("last_"))

    def to_arrow(self) -> pa.Table:
        """Return how the strategies differ, a row for each.

        Returns
        -------
        pyarrow.Table
            ``strategy`` in words; ``late``: events late for all their windows; ``results``: how many there are;
            ``firings``: their rows; ``refired``: results whose last row is another than their first; ``withdrawn``:
            those of sessions that became part of others after they were given. Compared with the job's own strategy,
            at the end of all firings: ``missing`` and ``additional`` results, and ``different`` ones; null is only
            equal to null, and NaN to NaN. For each column NAME of integers or floats ``NAME_difference``, the sum of
            the absolute differences of the different ones, and ``NAME_largest``, the largest, as far as both values
            are numbers: exact for integers, and then rounded to a float.
        """
        return pa.Table.from_pylist([self._row(number) for number in range(len(self.strategies))])

    def _row(self, number: int) -> dict[str, Any]:
        table = self.results[number]
        own, other = self._matches(number)
        changed = _differ(table, table, "first_", "last_", self.columns)
        matched = self.results[0].take(pa.array(own)), table.take(pa.array(other))
        differs = _differ(*matched, "last_", "last_", self.columns)
        row = {
            "strategy": str(self.strategies[number]),
            "late": self.late[number],
            "results": table.num_rows,
            "firings": int(pc.sum(table[_FIRINGS]).as_py() or 0),
            "refired": int(np.count_nonzero(changed)),
            "withdrawn": self.withdrawn[number],
            "missing": self.results[0].num_rows - len(own),
            "additional": table.num_rows - len(other),
            "different": int(np.count_nonzero(differs)),
        }
        for name in self.columns:
            first, second = (side[f"last_{name}"] for side in matched)
            if pa.types.is_integer(first.type) or pa.types.is_floating(first.type):
                by = _distances(first, second)
                row |= {
                    f"{name}_difference": float(pc.sum(by).as_py() or 0),
                    f"{name}_largest": float(pc.max(by).as_py() or 0),
                }
        return row

    def differences(self, number: int) -> pa.Table:
        """Return the results that differ from those under the job's own strategy.

        Parameters
        ----------
        number : int
            Number of the other strategy, from 1 on.

        Returns
        -------
        pyarrow.Table
            Keys; ``difference``: missing, additional or different; and each column of the results as it is in the end:
            under the job's own strategy and, as NAME_if, under the other. Null where there is no such result.

        Raises
        ------
        ConfigurationError
            If there is no such strategy.
        """
        if not 0 < number < len(self.strategies):
            raise ConfigurationError(
                f"other strategies are numbered from 1 to {len(self.strategies) - 1}, not {number}"
            )
        own_results, results = self.results[0], self.results[number]
        own, other = self._matches(number)
        differs = _differ(
            own_results.take(pa.array(own)), results.take(pa.array(other)), "last_", "last_", self.columns
        )
        missing = np.setdiff1d(np.arange(own_results.num_rows), own)
        additional = np.setdiff1d(np.arange(results.num_rows), other)
        none = np.full(max(len(missing), len(additional)), -1)
        left = _rows_of(own_results, np.concatenate((own[differs], missing, none[: len(additional)])))
        right = _rows_of(results, np.concatenate((other[differs], none[: len(missing)], additional)))
        kinds = ["different", "missing", "additional"]
        counts = [int(differs.sum()), len(missing), len(additional)]
        columns = {name: pc.coalesce(left[name], right[name]) for name in self.keys}
        columns["difference"] = pa.array(np.repeat(kinds, counts), pa.string())
        for name in self.columns:
            columns |= {name: left[f"last_{name}"], f"{name}_if": right[f"last_{name}"]}
        return pa.table(columns).sort_by([(name, "ascending") for name in self.keys])

    def _matches(self, number: int) -> tuple[Int64s, Int64s]:
        """Rows of the results under the own strategy and under another that are of the same keys."""
        ids, others = ids_of_keys(("own", self.results[0]), ("other", self.results[number]), self.keys)
        _, own, other = np.intersect1d(ids, others, assume_unique=True, return_indices=True)
        return own, other

    def __repr__(self) -> str:
        return f"WhatIf({'; '.join(map(str, self.strategies))})"

    def __str__(self) -> str:
        rows = self.to_arrow().to_pylist()
        own = rows[0]
        lines = [
            f"{_in_words(self.strategies[0])}: {own['results']:,} results, {own['late']:,} late events, "
            f"{own['refired'] + own['withdrawn']:,} results changed after they were first given"
        ]
        for strategy, row in zip(self.strategies[1:], rows[1:], strict=True):
            share = shown_share(row["different"] / max(own["results"], 1))
            lines.append(
                f"{_in_words(strategy)}: {row['late']:,} late events, "
                f"{row['refired'] + row['withdrawn']:,} results changed later; "
                f"{row['different']:,} results are different ({share}), {row['missing']:,} are missing, "
                f"{row['additional']:,} additional"
            )
            by = [
                f"{name} by {row[f'{name}_difference']:,.12g} in all, at most {row[f'{name}_largest']:,.12g}"
                for name in self.columns
                if row.get(f"{name}_difference")
            ]
            if by:
                lines.append(f"  {'; '.join(by)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html_lines(str(self))


def _in_words(strategy: WatermarkStrategy) -> str:
    return re.sub(r"\b(\d+) ms\b", lambda length: shown_duration(int(length[1])), str(strategy))


def _differ(
    first: pa.Table, second: pa.Table, first_prefix: str, second_prefix: str, columns: Sequence[str]
) -> Any:
    """Return which rows of two tables differ in a column; shape (n_rows,), bool."""
    differs = np.zeros(first.num_rows, np.bool_)
    for name in columns:
        differs |= ~_are_equal(first[f"{first_prefix}{name}"], second[f"{second_prefix}{name}"])
    return differs


def _are_equal(one: pa.ChunkedArray, other: pa.ChunkedArray) -> Any:
    if pa.types.is_nested(one.type):
        # As text, in which NaN is equal to NaN.
        pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
        return np.fromiter((repr(left) == repr(right) for left, right in pairs), np.bool_, len(one))
    equal = pc.or_(pc.fill_null(pc.equal(one, other), False), pc.and_(one.is_null(), other.is_null()))
    if pa.types.is_floating(one.type):
        both_nan = pc.and_(pc.is_nan(one), pc.is_nan(other))
        equal = pc.or_(equal, pc.fill_null(both_nan, False))
    return equal.to_numpy()


def _distances(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return how far numbers are from each other; without pairs of which one is null or NaN."""
    by = pc.abs(differences(one, other))
    return by.filter(by.is_valid() if pa.types.is_decimal(by.type) else pc.invert(pc.is_nan(by)))


def _rows_of(table: pa.Table, rows: Int64s) -> pa.Table:
    """Rows by their numbers; null where the number is -1."""
    return table.take(pa.array(rows, mask=rows < 0))


def what_if(
    stream: LogStream, strategies: Sequence[WatermarkStrategy], keys: str | Sequence[str] | None = None
) -> WhatIf:
    """Replay a job under its own watermark strategy and under others, and compare the results.

    Parameters and errors are those of :meth:`LogStream.what_if`.
    """
    end = stream._transformation
    own = [step for step in end.in_order() if isinstance(step, TimestampsAndWatermarksTransformation)]
    if len(own) != 1:
        raise ConfigurationError(
            f"what_if replaces the watermark strategy of a job, but this one has {len(own)}: take a stream of one log "
            "with assign_timestamps_and_watermarks"
        )
    given = tuple(strategies)
    if not given:
        raise ConfigurationError("what_if names no strategy to compare with: give it one or several")
    for each in given:
        if not isinstance(each, WatermarkStrategy):
            raise ConfigurationError(f"what_if takes watermark strategies, not {each!r}")
    for step in end.in_order():
        if isinstance(step, WindowTransformation) and isinstance(step.assigner, _WITHOUT_BOUNDS):
            raise ConfigurationError(
                f"what_if compares results by the times they belong to, and those of {step.assigner.in_words} belong "
                "to none: take windows of time, or sessions"
            )
    names = _keys_of(end) if keys is None else names_of(keys, "keys")
    plan = stream._environment.executor.planned(
        StreamGraph(stream._transformation), stream._environment.get_config()
    ).plan
    schema = plan.result_schema()
    for name in names:
        if name not in schema.names:
            raise ConfigurationError(
                f"keys names {name!r}, which is not a column of the results: {', '.join(schema.names)}"
            )
    if ROW_KIND in schema.names:
        raise ConfigurationError("what_if compares results, and retracting() withdraws them: leave it out")
    values = [name for name in schema.names if name not in (*names, *_HOW, end.settings.emitted_at)]
    of_all = (own[0].strategy, *given)
    if set(_BOUNDS) <= set(names):
        end = _withdrawing_sessions(end)
    kind = pc.field(ROW_KIND) if _withdraws(end) else pc.scalar(None).cast(pa.string())
    branches = [
        LogStream(stream._environment, _with_strategy(end, strategy, {})).select(
            **{_STRATEGY: pc.scalar(number), ROW_KIND: kind},
            **{_GIVEN: pc.if_else(pc.is_in(kind, pa.array(WITHDRAWN)), None, 1)},
            **{f"key_{name}": pc.field(name) for name in names},
            **{f"of_{name}": pc.field(name) for name in values},
        )
        for number, strategy in enumerate(of_all)
    ]
    aggregates = {_FIRINGS: Aggregate("count", _GIVEN), _GIVEN_KIND: Aggregate("last", ROW_KIND)}
    for name in values:
        aggregates |= {
            f"first_{name}": Aggregate("first", f"of_{name}"),
            f"last_{name}": Aggregate("last", f"of_{name}"),
        }
    compared = (
        branches[0]
        .union(*branches[1:])
        .key_by(_STRATEGY, *(f"key_{name}" for name in names))
        .window(GlobalWindows.create_with_end_of_stream_trigger())
        .aggregate(**aggregates)
    )
    config = stream._environment.get_config()
    share = config.get_late_share_warning()
    config.set_late_share_warning(1)  # what each strategy loses is the answer
    try:
        result = compared.execute(progress=False)
    finally:
        config.set_late_share_warning(share)
    table = result.to_arrow().drop_columns([*_BOUNDS, "late_firing", "watermark"])
    is_withdrawn = pc.is_in(table[_GIVEN_KIND], pa.array(WITHDRAWN))
    withdrawn = table[_STRATEGY].filter(is_withdrawn).to_pylist()
    table = table.filter(pc.invert(is_withdrawn)).drop_columns([_GIVEN_KIND])
    table = table.rename_columns([name.removeprefix("key_") for name in table.column_names])
    tables = tuple(
        table.filter(pc.field(_STRATEGY) == number).drop_columns([_STRATEGY]) for number in range(len(of_all))
    )
    per_strategy = len(plan.stages)
    late = [each.late for each in result.report.by_operator]
    return WhatIf(
        of_all,
        names,
        tuple(
            sum(late[number * per_strategy : (number + 1) * per_strategy]) for number in range(len(of_all))
        ),
        tables,
        tuple(map(withdrawn.count, range(len(of_all)))),
    )


def _withdrawing_sessions(end: Transformation) -> Transformation:
    """Windows that withdraw what they gave before they merged, where they can; all else as it is."""
    if not (isinstance(end, WindowTransformation) and isinstance(end.assigner, MergingWindowAssigner)):
        return end
    mode = OutputMode.RETRACTING
    try:
        require_output_mode(mode, end.assigner, end.trigger, end.evictor, dict(end.aggregates))
    except ConfigurationError:
        return end
    return replace(end, output_mode=mode)


def _withdraws(end: Transformation) -> bool:
    return isinstance(end, WindowTransformation) and end.output_mode is OutputMode.RETRACTING


def _keys_of(end: Transformation) -> tuple[str, ...]:
    if not isinstance(end, WindowTransformation):
        raise ConfigurationError(
            f"which results of {end} are the same result is not known: name their columns in keys=[...]"
        )
    keyed = end.input
    return (*(keyed.key.names if isinstance(keyed, PartitionTransformation) else ()), *_BOUNDS)


def _with_strategy(
    step: Transformation, strategy: WatermarkStrategy, done: dict[int, Transformation]
) -> Transformation:
    """Return the steps of a job with another watermark strategy, without ids and side outputs; its log is unchanged."""
    if not step.inputs():
        return step
    if id(step) not in done:
        changed: dict[str, Any] = {"settings": replace(step.settings, uid=None)}
        for each in fields(step):
            value = getattr(step, each.name)
            if isinstance(value, Transformation):
                changed[each.name] = _with_strategy(value, strategy, done)
            elif isinstance(value, tuple) and any(isinstance(member, Transformation) for member in value):
                changed[each.name] = tuple(_with_strategy(member, strategy, done) for member in value)
            elif each.name == "late_tag":
                changed[each.name] = None
        if isinstance(step, TimestampsAndWatermarksTransformation):
            changed["strategy"] = strategy
        done[id(step)] = replace(step, **changed)
    return done[id(step)]
