"""Comparison of what a live job has written with what its replay gives: each difference with its explanation."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.nested_fields import unknown_name, with_field_columns
from flinkcore._internal.python.user_warnings import warn_user
from flinkcore._internal.show.html import html_lines
from flinkcore.analysis.point_in_time import WITHDRAWN
from flinkcore.analysis.result_tables import (
    NO_KEY,
    as_table,
    cast_to,
    check_names,
    differences,
    ids_of_keys,
    names_each_row,
    names_of,
    with_room_for,
)
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.errors import ConfigurationError, DataError, SchemaError

ONLY_IN_SINK: Final = "only in the sink"
ONLY_IN_REPLAY: Final = "only in the replay"
"""Kinds of differences, and why columns are not compared."""

KINDS: Final = {
    "another value": "of a result that both sides have",
    "fired before": "one side has a firing before what the other has last",
    "fired again": "one side has a further firing behind what both have",
    "late": "only in the replay, fired by late events",
    ONLY_IN_SINK: "the replay gives no such result",
    ONLY_IN_REPLAY: "the sink has no such result",
}
"""Kinds of differences, and what they are."""

HOW: Final = ("late_firing", "watermark", "emitted_at")
"""Columns that say how a result came, not what it is."""

SINK: Final = "of the sink (expected)"
REPLAY: Final = "of the replay (found)"
"""Names of both sides in messages."""

_OWN: Final = ("difference", "columns", "expected", "found", "by")

EXAMPLES: Final = 2
"""Number of differences of each kind that are shown."""

MOST_PAIRS: Final = 1 << 22
"""So many pairs of rows of one key are compared at most."""


@dataclass(frozen=True)
class ResultComparison:
    """Columns and tolerances of a comparison; picklable.

    Attributes
    ----------
    keys, rel_tol, abs_tol
        As of `compare`.
    columns : tuple of str
        Those that are compared.
    left_out : tuple of (str, str)
        Columns that are neither keys nor compared, and why.
    upserts : bool
    types : pyarrow.Schema
        Types of keys and compared columns, to which both sides are cast.
    shown : pyarrow.Schema
        Further columns of the replay's rows, which differences show.
    """

    keys: tuple[str, ...]
    columns: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]
    upserts: bool
    rel_tol: float
    abs_tol: float
    types: pa.Schema
    shown: pa.Schema

    @classmethod
    def of(
        cls,
        expected: pa.Schema,
        found: pa.Schema,
        *,
        keys: str | Sequence[str],
        columns: str | Sequence[str] | None,
        upserts: bool,
        rel_tol: float,
        abs_tol: float,
    ) -> ResultComparison:
        """Check the parameters of `compare` against the columns of both sides.

        Raises
        ------
        ConfigurationError
            If a column is missing or comes twice, a key has the name of a column of differences, no column is left to
            compare, or a tolerance is negative.
        SchemaError
            If a column has types that cannot be compared.
        """
        key_names = names_of(keys, "keys")
        compared = (
            [name for name in found.names if name in expected.names and name not in (*key_names, *HOW)]
            if columns is None
            else names_of(columns, "columns")
        )
        for side, schema in ((SINK, expected), (REPLAY, found)):
            check_names(schema.names, f"rows {side}")
            missing = [name for name in (*key_names, *compared) if name not in schema.names]
            if missing:
                similar = unknown_name(schema, missing[0])
                raise ConfigurationError(
                    f"the rows {side} have no column {missing[0]!r}; they have {', '.join(schema.names)}"
                    f"{'.' if similar else ''}{similar}"
                )
        taken = [name for name in key_names if name.lower() in _OWN]  # Spark takes no notice of case
        if taken:
            raise ConfigurationError(
                f"differences have columns {', '.join(_OWN)} of their own. Rename the key {taken[0]!r} on both sides"
            )
        if not compared:
            raise ConfigurationError(
                "there is nothing to compare: the rows have no column in common but the keys"
            )
        if not (rel_tol >= 0 and abs_tol >= 0):
            raise ConfigurationError(f"tolerances cannot be negative: rel_tol={rel_tol}, abs_tol={abs_tol}")
        types = [
            pa.field(name, _common_type(name, expected.field(name).type, found.field(name).type))
            for name in (*key_names, *compared)
        ]
        shown = [
            found.field(name).with_nullable(True)
            for name in (*HOW, ROW_KIND)
            if name in found.names and name not in compared
        ]
        left_out = _left_out(expected.names, found.names, (*key_names, *compared))
        unseen = [
            name
            for name, why in left_out
            if why == ONLY_IN_SINK and not any(key.startswith(f"{name}.") for key in key_names)
        ]
        if columns is None and unseen:
            warn_user(
                f"the replay has no column {', '.join(map(repr, unseen))}, so what the sink has there is not compared: "
                "rename one of both if they are the same, or name what is compared in columns=[...]"
            )
        return cls(
            key_names,
            tuple(compared),
            left_out,
            upserts,
            rel_tol,
            abs_tol,
            pa.schema(types),
            pa.schema(shown),
        )

    @property
    def numbers(self) -> tuple[str, ...]:
        """Compared columns that have a difference."""
        return tuple(
            name
            for name in self.columns
            if pa.types.is_integer(kind := self.types.field(name).type)
            or pa.types.is_floating(kind)
            or pa.types.is_decimal(kind)
        )

    def schema(self) -> pa.Schema:
        """Return the columns of differences."""
        values = [self.types.field(name).with_nullable(True) for name in self.columns]
        return pa.schema(
            [
                *(self.types.field(name).with_nullable(True) for name in self.keys),
                pa.field("difference", pa.string(), nullable=False),
                ("columns", pa.list_(pa.string())),
                ("expected", pa.struct(values)),
                ("found", pa.struct([*values, *self.shown])),
                ("by", pa.struct([(name, pa.float64()) for name in self.numbers])),
            ]
        )

    def differences(self, expected: pa.Table, found: pa.Table) -> pa.Table:
        """Return the differences of rows; all rows of a key are there.

        Raises
        ------
        DataError
            If a value does not fit the type in which it is compared, or so many rows have one key that it names none.
        """
        return _Differences(self, expected, found).to_arrow()


def compare(
    expected: Any,
    found: Any,
    *,
    keys: str | Sequence[str],
    columns: str | Sequence[str] | None = None,
    upserts: bool | None = None,
    rel_tol: float = 1e-9,
    abs_tol: float = 0.0,
) -> Comparison:
    """Compare the rows that a live job has written with those of its replay, and explain each difference.

    For DataFrames there is :func:`flinkcore.spark.compare`.

    Parameters
    ----------
    expected : pyarrow.Table, or what Arrow makes one of
        Rows of the live job's sink. Where several have one key, they lie in the order in which they were written.
    found : result of a job, pyarrow.Table, or what Arrow makes one of
        Rows of the replay; those of a key lie in the order in which they were emitted. The columns `late_firing` and
        `row_kind` of windows, if there are such, are used: rows that are withdrawn count as not given, unless the sink
        has a column `row_kind`, too, and is a log of changes itself.
    keys : str or sequence of str
        Columns that name a result, such as the key and the start of the window. Null is a key like any other.
    columns : str or sequence of str, optional
        Columns to compare; by default all that both sides have except the keys and `late_firing`, `watermark` and
        `emitted_at`.
    upserts : bool, optional
        Whether the sink keeps the last row of a key only; by default it does if no key comes twice in it.
    rel_tol, abs_tol : float
        Floats are equal as of ``math.isclose``; NaN equals NaN. All else is equal or not; nested values are compared as
        a whole, without tolerances, and a NaN within one equals none.

    Returns
    -------
    Comparison

    Raises
    ------
    ConfigurationError
        If a column is missing or comes twice, a key has the name of a column of differences, no column is left,
        or a tolerance is negative.
    SchemaError
        If a column has types that cannot be compared.
    DataError
        If a value does not fit the type in which it is compared, or the keys do not name a result.

    Examples
    --------
    >>> compare(sink, replay, keys=["user", "window_start"])  # doctest: +SKIP
    """
    named = [*names_of(keys, "keys"), *(() if columns is None else names_of(columns, "columns"))]
    sink = with_field_columns(as_table(expected, "expected"), named)
    replay = with_field_columns(as_table(found, "found"), named)
    if upserts is None:
        key_names = [name for name in names_of(keys, "keys") if name in sink.column_names]
        upserts = names_each_row(sink, key_names) if key_names else True
    comparison = ResultComparison.of(
        sink.schema,
        replay.schema,
        keys=keys,
        columns=columns,
        upserts=upserts,
        rel_tol=rel_tol,
        abs_tol=abs_tol,
    )
    return ArrowComparison(comparison, comparison.differences(sink, replay), sink.num_rows, replay.num_rows)


class Comparison(ABC):
    """Differences between the rows of a sink and of a replay.

    Parameters
    ----------
    comparison : ResultComparison
        Columns and tolerances of the comparison.
    counts : mapping of str to int
        Differences by kind.
    equal : int
        Rows of the sink that are as the replay has them.
    expected_rows, found_rows : int
        Rows of both sides.

    Attributes
    ----------
    counts, equal, expected_rows, found_rows
        As given.
    keys, columns : tuple of str
        By which rows were compared, and what of them.
    left_out : dict of str to str
        Columns of either side that were not compared, and why.
    upserts : bool
        Whether the sink was taken to keep the last row of a key only.
    """

    def __init__(
        self,
        comparison: ResultComparison,
        counts: Mapping[str, int],
        equal: int,
        expected_rows: int,
        found_rows: int,
    ) -> None:
        self.counts = {kind: counts[kind] for kind in KINDS if counts.get(kind)}
        self.equal = equal
        self.expected_rows = expected_rows
        self.found_rows = found_rows
        self.keys = comparison.keys
        self.columns = comparison.columns
        self.left_out = dict(comparison.left_out)
        self.upserts = comparison.upserts

    @property
    def is_equal(self) -> bool:
        """Return whether both sides are equal."""
        return not self.counts

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """Return the differences, a row for each.

        Columns: the keys; `difference`, its kind; `columns`, those that differ, null where only one side has the row;
        `expected`, a struct of the values of the sink, and `found`, of the replay, null where that side has none; `by`,
        found less expected, for numbers: exact for integers and decimals, and then rounded to a float.
        """

    @abstractmethod
    def _examples(self, kind: str) -> list[dict[str, Any]]:
        """Some differences of a kind."""

    def __repr__(self) -> str:
        kept = "keeps the last row of a key" if self.upserts else "keeps all rows"
        number = sum(self.counts.values())
        lines = [
            f"{_rows(self.expected_rows)} of a sink that {kept}, {_rows(self.found_rows)} of the replay: "
            f"{self.equal:,} equal, {number:,} difference{'s' * (number != 1)}",
            f"compared by {', '.join(self.keys)}: {', '.join(self.columns)}",
        ]
        if self.left_out:
            lines.append(f"not compared: {'; '.join(self._why_left_out())}")
        for kind, number in self.counts.items():
            lines.append(f"  {number:>9,} {kind}: {KINDS[kind]}")
            lines += [f"            {_shown(row)}" for row in self._examples(kind)[:EXAMPLES]]
        return "\n".join(lines)

    def _why_left_out(self) -> Iterator[str]:
        for why in dict.fromkeys(self.left_out.values()):
            yield f"{', '.join(name for name, reason in self.left_out.items() if reason == why)} ({why})"

    def _repr_html_(self) -> str:
        return html_lines(repr(self))


class ArrowComparison(Comparison):
    """Differences of tables.

    Parameters
    ----------
    comparison : ResultComparison
    differences : pyarrow.Table
    expected_rows, found_rows
        As of `Comparison`.
    """

    def __init__(
        self, comparison: ResultComparison, differences: pa.Table, expected_rows: int, found_rows: int
    ) -> None:
        unequal = len(differences) - differences.column("expected").null_count
        counts = Counter(differences.column("difference").to_pylist())
        super().__init__(comparison, counts, expected_rows - unequal, expected_rows, found_rows)
        self._differences = differences

    def to_arrow(self) -> pa.Table:
        return self._differences

    def _examples(self, kind: str) -> list[dict[str, Any]]:
        of_kind = self._differences.filter(pc.equal(self._differences.column("difference"), kind))
        examples: list[dict[str, Any]] = of_kind.slice(0, EXAMPLES).to_pylist()
        return examples


def _left_out(
    expected: Sequence[str], found: Sequence[str], taken: Collection[str]
) -> tuple[tuple[str, str], ...]:
    """Return the columns of both sides that are not taken, and why."""

    def why(name: str) -> str:
        if name in HOW:
            return "how a result came"
        if name == ROW_KIND and name not in expected:
            return "whether a result is withdrawn"
        if name in expected and name in found:
            return "not named"
        return ONLY_IN_SINK if name in expected else ONLY_IN_REPLAY

    return tuple((name, why(name)) for name in dict.fromkeys((*expected, *found)) if name not in taken)


def _rows(number: int) -> str:
    return f"{number:,} row{'s' * (number != 1)}"


def _shown(row: Mapping[str, Any]) -> str:
    """Return an example: the key, and what differs."""
    names = list(row)
    key = ", ".join(f"{name}={row[name]}" for name in names[: names.index("difference")])
    both = {"sink": row["expected"], "replay": row["found"]}
    sides = {side: values for side, values in both.items() if values is not None}
    names = row["columns"] or [
        name for each in sides.values() for name in each if name not in (*HOW, ROW_KIND)
    ]
    values = (f"{side} {', '.join(f'{name} {each[name]}' for name in names)}" for side, each in sides.items())
    return f"{key}: {'; '.join(values)}"


class _Differences:
    """Pairs the rows of both sides, and says what is left."""

    def __init__(self, comparison: ResultComparison, expected: pa.Table, found: pa.Table) -> None:
        self._comparison = comparison
        if ROW_KIND in found.column_names and ROW_KIND not in comparison.columns:
            found = self._not_withdrawn(found)
        names = [*comparison.keys, *comparison.columns]
        self._shown = found.select(comparison.shown.names)
        self._is_late = (
            pc.fill_null(found.column("late_firing").cast(pa.bool_()), False).to_numpy()
            if "late_firing" in found.column_names
            else np.zeros(len(found), np.bool_)
        )
        self._expected, self._found = (
            cast_to(side.select(names), comparison.types, name)
            for side, name in ((expected, f"rows {SINK}"), (found, f"rows {REPLAY}"))
        )
        ids = ids_of_keys((f"rows {SINK}", self._expected), (f"rows {REPLAY}", self._found), comparison.keys)
        # Null is a key here, too.
        self._ids = tuple(
            np.where(side == NO_KEY, len(self._expected) + len(self._found), side) for side in ids
        )
        self._orders = tuple(np.argsort(side, kind="stable") for side in self._ids)
        self._rows: list[tuple[Int64s, Int64s, Any]] = []

    def _not_withdrawn(self, found: pa.Table) -> pa.Table:
        """Return the rows that were given; where the last row of a key is withdrawn, none of it is left."""
        withdrawn = pc.is_in(found.column(ROW_KIND), pa.array(WITHDRAWN)).to_numpy()
        if not withdrawn.any():
            return found
        stands = ~withdrawn
        if self._comparison.upserts:
            keys = found.select(list(self._comparison.keys))
            ids, _ = ids_of_keys((f"rows {REPLAY}", keys), (f"rows {REPLAY}", keys), self._comparison.keys)
            last = _last_of_each(ids)
            stands &= ~np.isin(ids, ids[last[withdrawn[last]]])
        return found.filter(pa.array(stands))

    def to_arrow(self) -> pa.Table:
        """Return the differences, in the order of their keys."""
        partner = self._partners()
        if self._comparison.upserts:
            self._explain_last(partner)
        else:
            self._explain_all(partner)
        schema = self._comparison.schema()
        if not self._rows:
            return schema.empty_table()
        table = pa.concat_tables([self._table(*rows) for rows in self._rows])
        ids = np.concatenate(
            [
                self._ids[0][expected] if expected[0] >= 0 else self._ids[1][found]
                for expected, found, _ in self._rows
            ]
        )
        return table.take(pa.array(np.argsort(ids, kind="stable")))

    # ---- which rows are the same ----

    def _partners(self) -> Int64s:
        """For each row expected the row found that equals it, in the order of both; -1: none."""
        partner = np.full(len(self._expected), -1)
        taken = np.zeros(len(self._found), np.bool_)
        for expected, found in self._pairs():
            equal = np.ones(len(expected), np.bool_)
            for name in self._comparison.columns:
                equal &= self._are_equal(name, expected, found)
            expected, found = expected[equal], found[equal]
            alone = (np.bincount(expected)[expected] == 1) & (np.bincount(found)[found] == 1) & ~taken[found]
            partner[expected[alone]] = found[alone]
            taken[found[alone]] = True
            for row, other in zip(expected[~alone].tolist(), found[~alone].tolist(), strict=True):
                if partner[row] < 0 and not taken[other]:
                    partner[row] = other
                    taken[other] = True
        return partner

    def _pairs(self) -> Iterator[tuple[Int64s, Int64s]]:
        """Yield all pairs of rows of one key, some at a time; a sink of last rows prefers the last firing."""
        order, other = self._orders
        ids, others = self._ids[0][order], self._ids[1][other]
        first, last = np.searchsorted(others, ids, "left"), np.searchsorted(others, ids, "right")
        rows_of_key = np.searchsorted(ids, ids, "right") - np.searchsorted(ids, ids, "left")
        many = np.flatnonzero(rows_of_key * (last - first) > MOST_PAIRS)
        if len(many):
            keys = self._expected.select(list(self._comparison.keys)).slice(int(order[many[0]]), 1)
            raise DataError(
                f"{rows_of_key[many[0]]:,} rows of the sink and {(last - first)[many[0]]:,} of the replay have the key "
                f"{keys.to_pylist()[0]}. Name columns as keys that tell results apart, such as the start of the window"
            )
        n_pairs = np.cumsum(last - first)
        start = 0
        while start < len(order):
            before = int(n_pairs[start - 1]) if start else 0
            stop = int(np.searchsorted(n_pairs, before + MOST_PAIRS, "right"))
            counts = (last - first)[start:stop]
            begins = np.cumsum(counts) - counts
            place = np.arange(int(counts.sum())) - np.repeat(begins, counts)
            if self._comparison.upserts:
                place = np.repeat(counts, counts) - 1 - place
            yield (
                np.repeat(order[start:stop], counts),
                other[np.repeat(first[start:stop], counts) + place],
            )
            start = stop

    def _are_equal(self, name: str, expected: Int64s, found: Int64s) -> npt.NDArray[np.bool_]:
        first, second = (
            side.column(name).take(pa.array(rows))
            for side, rows in ((self._expected, expected), (self._found, found))
        )
        kind = self._comparison.types.field(name).type
        if pa.types.is_nested(kind) or pa.types.is_null(kind) or pa.types.is_interval(kind):
            tolerances = self._comparison.rel_tol, self._comparison.abs_tol
            pairs = zip(first.to_pylist(), second.to_pylist(), strict=True)
            return np.array([_are_alike(a, b, *tolerances) for a, b in pairs], np.bool_)
        valid = first.is_valid().to_numpy(), second.is_valid().to_numpy()
        if pa.types.is_floating(kind):
            values = [pc.fill_null(side, 0.0).to_numpy().astype(np.float64) for side in (first, second)]
            equal = _are_close(values[0], values[1], self._comparison.rel_tol, self._comparison.abs_tol)
        else:
            equal = pc.fill_null(pc.equal(first, second), True).to_numpy()
        return np.where(valid[0] & valid[1], equal, valid[0] == valid[1])

    # ---- what is left ----

    def _explain_last(self, partner: Int64s) -> None:
        """Compare the rows of a sink that keeps the last row of a key with the last firings."""
        last_of_id = self._last_rows(1, np.arange(len(self._found)))
        last, final = last_of_id[last_of_id >= 0], last_of_id[self._ids[0]]
        self._add(ONLY_IN_SINK, np.flatnonzero(final < 0), None)
        fired_before = np.flatnonzero((partner >= 0) & (partner != final))
        self._add("fired before", fired_before, final[fired_before])
        another = np.flatnonzero((partner < 0) & (final >= 0))
        self._add("another value", another, final[another])
        only_found = last[~np.isin(self._ids[1][last], self._ids[0])]
        on_time = np.unique(self._ids[1][~self._is_late])
        is_late = ~np.isin(self._ids[1][only_found], on_time)
        self._add("late", None, only_found[is_late])
        self._add(ONLY_IN_REPLAY, None, only_found[~is_late])

    def _explain_all(self, partner: Int64s) -> None:
        """Pair the rest of a key's rows on both sides in order and add surplus rows, for a sink of all rows."""
        rest = np.flatnonzero(partner < 0)
        has_partner = np.zeros(len(self._found), np.bool_)
        has_partner[partner[partner >= 0]] = True
        other_rest = np.flatnonzero(~has_partner)
        expected, found = _in_turn(self._ids[0][rest], self._ids[1][other_rest])
        self._add("another value", rest[expected], other_rest[found])
        more = np.setdiff1d(rest, rest[expected])
        only_expected = ~np.isin(self._ids[0][more], self._ids[1])
        self._add(ONLY_IN_SINK, more[only_expected], None)
        self._add_firings(more[~only_expected], None, 0, np.setdiff1d(np.arange(len(partner)), more))
        more = np.setdiff1d(other_rest, other_rest[found])
        only_found = ~np.isin(self._ids[1][more], self._ids[0])
        late = self._is_late[more]
        self._add("late", None, more[late])
        self._add(ONLY_IN_REPLAY, None, more[only_found & ~late])
        rest_of_both = more[~only_found & ~late]
        self._add_firings(None, rest_of_both, 1, np.setdiff1d(np.arange(len(has_partner)), more))

    def _add_firings(self, expected: Int64s | None, found: Int64s | None, side: int, common: Int64s) -> None:
        """Add the firings of one side that come before or after those that both sides have of the key."""
        rows = expected if expected is not None else found
        assert rows is not None
        is_before = self._last_rows(side, common)[self._ids[side][rows]] > rows
        for kind, chosen in (("fired before", rows[is_before]), ("fired again", rows[~is_before])):
            self._add(kind, *((chosen, None) if expected is not None else (None, chosen)))

    def _last_rows(self, side: int, rows: Int64s) -> Int64s:
        """Return the last of some ascending rows of a side, by id; -1 for ids without rows."""
        last = np.full(len(self._expected) + len(self._found) + 1, -1)
        last[self._ids[side][rows]] = rows
        return last

    def _add(self, kind: str, expected: Int64s | None, found: Int64s | None) -> None:
        rows = expected if expected is not None else found
        assert rows is not None
        if len(rows):
            none = np.full(len(rows), -1)
            self._rows.append(
                (none if expected is None else expected, none if found is None else found, kind)
            )

    # ---- differences as rows ----

    def _table(self, expected: Int64s, found: Int64s, kind: str) -> pa.Table:
        comparison, n_rows = self._comparison, len(expected)
        by_side = expected if expected[0] >= 0 else found
        whole = self._expected if expected[0] >= 0 else self._found
        keys = [_combined(whole.column(name).take(pa.array(by_side))) for name in comparison.keys]
        schema = comparison.schema()
        sides = []
        for name, table, rows in (("expected", self._expected, expected), ("found", self._found, found)):
            kind_of_side = schema.field(name).type
            if rows[0] < 0:
                sides.append(pa.nulls(n_rows, kind_of_side))
                continue
            columns = [table.column(column) for column in comparison.columns]
            if name == "found":
                columns += [self._shown.column(column) for column in comparison.shown.names]
            values = [_combined(column.take(pa.array(rows))) for column in columns]
            sides.append(pa.StructArray.from_arrays(values, fields=list(kind_of_side)))
        if expected[0] < 0 or found[0] < 0:
            names, by = (
                pa.nulls(n_rows, schema.field("columns").type),
                pa.nulls(n_rows, schema.field("by").type),
            )
        else:
            names, by = self._changes(expected, found)
        arrays = [*keys, pa.array([kind] * n_rows), names, *sides, by]
        return pa.Table.from_arrays(arrays, schema=schema)

    def _changes(self, expected: Int64s, found: Int64s) -> tuple[pa.Array, pa.Array]:
        """Return the columns that differ, and by how much."""
        comparison = self._comparison
        differ = {name: ~self._are_equal(name, expected, found) for name in comparison.columns}
        names = [
            [name for name, at in zip(differ, row, strict=True) if at]
            for row in zip(*(column.tolist() for column in differ.values()), strict=True)
        ]
        by = []
        for name in comparison.numbers:
            first, second = (
                side.column(name).take(pa.array(rows))
                for side, rows in ((self._expected, expected), (self._found, found))
            )
            by.append(_combined(differences(first, second).cast(pa.float64())))
        kind = comparison.schema().field("by").type
        numbers = (
            pa.StructArray.from_arrays(by, fields=list(kind)) if by else pa.array([{}] * len(expected), kind)
        )
        return pa.array(names, pa.list_(pa.string())), numbers


def _last_of_each(ids: Int64s) -> Int64s:
    """Return the last row of each id."""
    last = np.full(int(ids.max(initial=-1)) + 2, -1)
    last[ids] = np.arange(len(ids))
    return last[last >= 0]


def _in_turn(ids: Int64s, others: Int64s) -> tuple[Int64s, Int64s]:
    """Places in both of the first of each id, the second of each, and so on."""
    turns = []
    for side in (ids, others):
        order = np.argsort(side, kind="stable")
        in_order = side[order]
        turn = np.empty(len(side), np.int64)
        turn[order] = np.arange(len(side)) - np.searchsorted(in_order, in_order, "left")
        turns.append(turn)
    most = int(max(turn.max(initial=0) for turn in turns)) + 1
    _, first, second = np.intersect1d(ids * most + turns[0], others * most + turns[1], return_indices=True)
    return first, second


def _are_close(
    first: npt.NDArray[np.float64], second: npt.NDArray[np.float64], rel_tol: float, abs_tol: float
) -> npt.NDArray[np.bool_]:
    """As `math.isclose`, but NaN equals NaN."""
    with np.errstate(invalid="ignore", over="ignore"):
        close = np.abs(first - second) <= np.maximum(
            rel_tol * np.maximum(np.abs(first), np.abs(second)), abs_tol
        )
    finite = np.isfinite(first) & np.isfinite(second)
    equal: npt.NDArray[np.bool_] = (first == second) | (close & finite) | (np.isnan(first) & np.isnan(second))
    return equal


def _are_alike(first: Any, second: Any, rel_tol: float, abs_tol: float) -> bool:
    """Return whether two values of one nested type are equal; numbers with fractions as :func:`_are_close`."""
    if isinstance(first, float) and isinstance(second, float):
        return math.isclose(first, second, rel_tol=rel_tol, abs_tol=abs_tol) or (
            first != first and second != second
        )
    if isinstance(first, dict) and isinstance(second, dict):
        first, second = list(first.items()), list(second.items())
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        return len(first) == len(second) and all(
            _are_alike(a, b, rel_tol, abs_tol) for a, b in zip(first, second, strict=True)
        )
    return bool(first == second)


def _combined(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


_UNITS: Final = ("s", "ms", "us", "ns")


def _common_type(name: str, expected: pa.DataType, found: pa.DataType) -> pa.DataType:
    """Return the type in which values of both are compared."""
    if expected == found:
        return found
    if pa.types.is_timestamp(expected) and pa.types.is_timestamp(found):  # without a zone they are UTC
        return pa.timestamp(max(expected.unit, found.unit, key=_UNITS.index), found.tz or expected.tz)
    try:
        sides = with_room_for(found, expected), with_room_for(expected, found)
        fields = [pa.schema([(name, kind)]) for kind in sides]
        common: pa.DataType = pa.unify_schemas(fields, promote_options="permissive").field(name).type
    except (pa.ArrowTypeError, pa.ArrowInvalid) as failure:
        is_time = pa.types.is_integer(expected) and pa.types.is_timestamp(found)
        advice = (
            ". If the sink has milliseconds, give from_event_log(..., integer_times=True)" if is_time else ""
        )
        raise SchemaError(
            f"column {name!r} is {expected} in the sink and {found} in the replay, which cannot be compared{advice}"
        ) from failure
    return common
