"""Rows of a table in memory that rows of a stream find by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.batch_bytes import pieces
from flinkcore._internal.arrow.column_ops import (
    Decode,
    Filter,
    Select,
    expression_columns,
    output_schema,
    shown_names,
)
from flinkcore._internal.arrow.expressions import Expression, RowExpansion, is_expression
from flinkcore._internal.arrow.joined_batches import empty_batch, joined
from flinkcore._internal.arrow.nested_fields import unknown_name
from flinkcore._internal.arrow.plain_columns import decoded_type
from flinkcore._native.arrow import CheckedStream, checked_batch
from flinkcore._native.key_dictionary import KeyDictionary
from flinkcore.datastream.graph.column_arguments import refuse_repeated
from flinkcore.errors import ArgumentTypeError, ConfigurationError, SchemaError

_SAME_VALUES: Final = ({pa.string(), pa.large_string()}, {pa.binary(), pa.large_binary()})
"""Pairs of types of equal values, whose offsets differ."""


@dataclass(frozen=True, eq=False)
class TableLookup(RowExpansion):
    """The rows of a table that have the keys of each row; picklable.

    Attributes
    ----------
    table : str
        Name of the table.
    keys : pyarrow.RecordBatch
        Key columns of its rows.
    found : pyarrow.RecordBatch
        Columns of its rows that are added.
    n_rows : int
        Number of its rows, which batches without columns lose as they are pickled.
    by : tuple of str
        Columns of the rows that equal the key columns.
    before : Expression or None
        Condition on a row, without which it finds nothing.
    after : Expression or None
        Condition on a row and what it has found.
    keeps_rows : bool
        Whether a row without matches is kept once, with nulls.
    suffix : str or None
        Added to names of found columns that rows have, too, once these are known; None if no name is in both.
    """

    table: str
    keys: pa.RecordBatch
    found: pa.RecordBatch
    n_rows: int
    by: tuple[str, ...]
    before: Expression | None
    after: Expression | None
    keeps_rows: bool
    suffix: str | None = None

    @property
    def required_columns(self) -> frozenset[str]:
        added = set(self.found.schema.names)
        read = [expression_columns(each) for each in (self.before, self.after) if each is not None]
        return frozenset(self.by).union(*(each or () for each in read)) - added

    def bound_to(self, schema: pa.Schema) -> TableLookup:
        if self.suffix is None:
            return self
        keys = self._keys_as_in(schema)
        names = [name + (self.suffix if name in schema.names else "") for name in self.found.schema.names]
        for name in names:
            if names.count(name) > 1 or name in schema.names:
                raise ConfigurationError(
                    f"join_lookup: two columns of the results are named {name!r}; give another suffix= than "
                    f"{self.suffix!r}, or rename one"
                )
        bound = replace(self, keys=keys, found=self.found.rename_columns(names), suffix=None)
        if self.after is not None:
            bound._require_condition_over(pa.schema([*schema, *bound.found.schema]))
        return bound

    def _keys_as_in(self, schema: pa.Schema) -> pa.RecordBatch:
        """Return the key columns with the types of those of the rows, which may have other offsets."""
        keys = self.keys
        for place, (name, field) in enumerate(zip(self.by, self.keys.schema, strict=True)):
            if name not in schema.names:
                raise SchemaError(
                    f"join_lookup(on=...): there is no column {name!r}; columns: {shown_names(schema)}."
                    f"{unknown_name(schema, name)}",
                    unknown=name,
                )
            kind = decoded_type(schema.field(name).type)
            if kind != field.type and {kind, field.type} not in _SAME_VALUES:
                raise SchemaError(
                    f"join_lookup: the column {name!r} is {kind} and the column {field.name!r} of the table is "
                    f"{field.type}, so that no key is equal to another. Cast one of them"
                )
            keys = keys.set_column(place, field.with_type(kind), keys.column(place).cast(kind))
        return keys

    def _require_condition_over(self, pairs: pa.Schema) -> None:
        assert self.after is not None
        unknown = sorted((expression_columns(self.after) or frozenset()) - set(pairs.names))
        if unknown:
            raise SchemaError(
                f"join_lookup(where=...) has the column {unknown[0]!r}, which neither the rows nor the table have; "
                f"columns: {shown_names(pairs)}",
                unknown=unknown[0],
            )
        found = output_schema((Select((), (("where", self.after),)),), pairs).field("where").type
        if not pa.types.is_boolean(found):
            raise SchemaError(f"join_lookup(where={self.after}) gives {found} instead of true or false")

    @property
    def fields(self) -> list[pa.Field]:
        return list(self.found.schema)

    def expand(self, batch: pa.RecordBatch, most_bytes: int) -> Iterator[tuple[Int64s, list[pa.Array]]]:
        rows, keys = self._looked_up(batch)
        begins, lengths = self._index.find(len(rows), keys)
        for start, stop in self._ranges(batch.num_rows, rows, lengths, most_bytes):
            first, last = np.searchsorted(rows, (start, stop))
            own, places = self._index.pairs(rows[first:last], begins[first:last], lengths[first:last])
            columns = [column.take(pa.array(places)) for column in self.found.columns]
            if self.after is not None:
                own, columns = self._matching(batch, own, columns)
            if self.keeps_rows:
                own, columns = with_empty(own, columns, start, stop)
            yield own, columns

    def _ranges(
        self, n_rows: int, rows: Int64s, lengths: Int64s, most_bytes: int
    ) -> Iterator[tuple[int, int]]:
        """Yield ranges of rows; those that look something up find so many rows of the table each."""
        if not self.n_rows or self._index.has_one_row_each:
            yield 0, n_rows
            return
        ends = np.zeros(n_rows + 1, np.int64)
        ends[rows + 1] = lengths
        ends = np.cumsum(ends) * (self.found.nbytes // self.n_rows + 8)  # and the number of the row
        yield from pieces(0, n_rows, lambda start, stop: int(ends[stop] - ends[start]) > most_bytes)

    def _matching(
        self, batch: pa.RecordBatch, rows: Int64s, columns: list[pa.Array]
    ) -> tuple[Int64s, list[pa.Array]]:
        """Return the pairs that meet the condition on both rows."""
        assert self.after is not None
        read = expression_columns(self.after)
        own_names = [name for name in batch.schema.names if read is None or name in read]
        pairs = {name: batch.column(name).take(pa.array(rows)) for name in own_names}
        pairs |= dict(zip(self.found.schema.names, columns, strict=True))
        kept = _kept(self.after, pa.RecordBatch.from_arrays(list(pairs.values()), list(pairs)))
        return rows[kept], [column.take(pa.array(kept)) for column in columns]

    def _looked_up(self, batch: pa.RecordBatch) -> tuple[Int64s, pa.RecordBatch]:
        """Return the numbers of the rows that may find something, and their keys."""
        looks_up = np.ones(batch.num_rows, np.bool_)
        if self.before is not None:
            looks_up[:] = False
            looks_up[_kept(self.before, batch)] = True
        keys = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(map(batch.column, self.by), self.keys.schema, strict=True)
        ]
        for key in keys:
            looks_up &= key.is_valid().to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(looks_up)
        if len(rows) < batch.num_rows:
            keys = [key.take(pa.array(rows)) for key in keys]
        return rows, pa.RecordBatch.from_arrays(keys, self.keys.schema.names)

    @cached_property
    def _index(self) -> _Index:
        return _Index(self.keys, self.n_rows)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_index"}

    def __str__(self) -> str:
        kept = ", or once without any" if self.keeps_rows else ""
        conditions = "".join(f", if {each}" for each in (self.before, self.after) if each is not None)
        names = ", ".join(self.found.schema.names)
        return (
            f"each of {self.n_rows} rows of {self.table} with the keys {', '.join(self.by)} as {names}"
            f"{kept}{conditions}"
        )


class _Index:
    """Rows of a table by their keys.

    Parameters
    ----------
    keys : pyarrow.RecordBatch
        Rows with a null are not found.
    n_rows : int
        Number of rows, which all match if they have no key columns.
    """

    def __init__(self, keys: pa.RecordBatch, n_rows: int) -> None:
        self._dictionary: KeyDictionary | None = None
        if not keys.num_columns:
            self._rows, begins = np.arange(n_rows), np.array([0, n_rows])
        else:
            is_valid = np.ones(keys.num_rows, np.bool_)
            for column in keys.columns:
                is_valid &= column.is_valid().to_numpy(zero_copy_only=False)
            rows = np.flatnonzero(is_valid)
            self._dictionary = KeyDictionary(keys.schema, keys.schema.names, 128)
            ids = self._dictionary.ids(keys.take(pa.array(rows))).astype(np.int64)
            order = np.argsort(ids, kind="stable")
            self._rows = rows[order]
            begins = np.searchsorted(ids[order], np.arange(len(self._dictionary) + 1))
        self._begins = np.append(
            begins, begins[-1]
        )  # keys that are not there have the last number, and no rows

    @property
    def has_one_row_each(self) -> bool:
        """Return whether no key has several rows."""
        return len(self._rows) == len(self._begins) - 2

    def find(self, n_rows: int, keys: pa.RecordBatch) -> tuple[Int64s, Int64s]:
        """Return for each of some rows, which have these keys, where its rows of the table begin, and their number."""
        ids = np.zeros(n_rows, np.int64)
        if self._dictionary is not None:
            ids = self._dictionary.find(keys).astype(np.int64)
        n_keys = len(self._begins) - 2
        if self.has_one_row_each:
            return ids, (ids < n_keys).astype(np.int64)
        ids = np.minimum(ids, n_keys)
        begins = self._begins[ids]
        return begins, self._begins[ids + 1] - begins

    def pairs(self, rows: Int64s, begins: Int64s, lengths: Int64s) -> tuple[Int64s, Int64s]:
        """Return the pairs of rows with the rows of the table that they have found."""
        if self.has_one_row_each:
            found = lengths > 0
            return (rows, self._rows[begins]) if found.all() else (rows[found], self._rows[begins[found]])
        firsts = np.cumsum(lengths) - lengths
        places = np.arange(lengths.sum()) + np.repeat(begins - firsts, lengths)
        return np.repeat(rows, lengths), self._rows[places]


def table_rows(
    table: Any,
    on: str | Sequence[str] | Mapping[str, str],
    how: str,
    where: Expression | None,
    suffix: str,
) -> TableLookup:
    """Return the rows of a table that rows find; parameters as of :meth:`LogStream.join_lookup`.

    Raises
    ------
    ConfigurationError
        If an argument is another one.
    SchemaError
        If the table does not have a key column.
    """
    if how not in ("inner", "left"):
        raise ConfigurationError(
            f"join_lookup(how=...) is 'inner' or 'left', not {how!r}: rows of the table come only with rows that find "
            "them"
        )
    if where is not None and not is_expression(where):
        raise ArgumentTypeError(
            f"join_lookup(where=...) takes a condition on columns of both rows, such as pyarrow.compute.field("
            f"'price') > pyarrow.compute.field('limit'), not {where!r}"
        )
    if not isinstance(suffix, str) or not suffix:
        raise ArgumentTypeError(f"join_lookup(suffix=...) is a text that is not empty, not {suffix!r}")
    rows = _imported(table)
    keys = _key_names(on)
    for name in keys.values():
        if name not in rows.schema.names:
            raise SchemaError(
                f"join_lookup(on=...): the table has no column {name!r}; columns: {shown_names(rows.schema)}."
                f"{unknown_name(rows.schema, name)}",
                unknown=name,
            )
    return TableLookup(
        "a table",
        rows.select(list(keys.values())),
        rows,
        rows.num_rows,
        tuple(keys),
        None,
        where,
        how == "left",
        suffix,
    )


def _key_names(on: str | Sequence[str] | Mapping[str, str]) -> Mapping[str, str]:
    """Return columns of the rows, and those of the table that equal them."""
    keys = on if isinstance(on, Mapping) else {}
    if not isinstance(on, Mapping):
        names = (on,) if isinstance(on, str) else tuple(on) if isinstance(on, list | tuple) else ()
        if all(isinstance(name, str) for name in names):
            refuse_repeated(names, "join_lookup(on=...)")
            keys = {name: name for name in names}
    if not keys or not all(isinstance(name, str) and name for pair in keys.items() for name in pair):
        raise ArgumentTypeError(
            "join_lookup(on=...) is the name of a column, a list of names, or a mapping from columns of the rows to "
            f"columns of the table, such as {{'auction': 'id'}}, not {on!r}"
        )
    return keys


def _imported(data: Any) -> pa.RecordBatch:
    """Return Arrow data as one batch of plain columns; data that pyarrow has not made is checked."""
    if isinstance(data, pa.Table | pa.RecordBatch):
        batches, schema = data.to_batches() if isinstance(data, pa.Table) else [data], data.schema
    elif hasattr(data, "__arrow_c_stream__"):
        stream = CheckedStream(data)
        batches, schema = list(map(pa.record_batch, stream)), pa.schema(stream)
    elif hasattr(data, "__arrow_c_array__"):
        batches = [pa.record_batch(checked_batch(data))]
        schema = batches[0].schema
    else:
        raise ArgumentTypeError(
            "join_lookup takes a table in memory, such as a pyarrow.Table or a frame of pandas or Polars, not "
            f"{data!r}. Read a file by pyarrow.parquet.read_table(path); a stream is for join_temporal or join_regular"
        )
    refuse_repeated(tuple(schema.names), "the table of join_lookup")
    whole, _ = Decode().apply(joined([empty_batch(schema), *batches]))
    return whole


def _kept(condition: Expression, batch: pa.RecordBatch) -> Int64s:
    """Return the numbers of the rows that meet a condition."""
    columns = expression_columns(condition)
    read = batch if not columns else batch.select(sorted(columns))
    _, kept = Filter(condition).apply(read)
    return np.arange(batch.num_rows) if kept is None else kept.astype(np.int64)


def with_empty(rows: Int64s, columns: list[pa.Array], start: int, stop: int) -> tuple[Int64s, list[pa.Array]]:
    """Return the rows that a range of rows is expanded to and, once and with nulls, those that are not expanded."""
    counts = np.bincount(rows - start, minlength=stop - start)
    if counts.all():
        return rows, columns
    of_all = np.repeat(np.arange(start, stop), np.maximum(counts, 1))
    is_empty = np.repeat(counts == 0, np.maximum(counts, 1))
    taken = pa.array(np.cumsum(~is_empty) - 1, mask=is_empty)
    return of_all, [column.take(taken) for column in columns]
