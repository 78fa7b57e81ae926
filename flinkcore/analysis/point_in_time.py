"""Point-in-time join: for each question, the row of its key that a live job would have served at that time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._internal.arrow.milliseconds import nanoseconds_within, no_time, to_milliseconds
from flinkcore._internal.arrow.nested_fields import with_field_columns
from flinkcore.analysis.result_tables import (
    NO_KEY,
    as_table,
    cast_to,
    check_names,
    ids_of_keys,
    names_of,
    with_room_for,
)
from flinkcore.common.time import Interval, interval_ms
from flinkcore.datastream.graph.columnar_windows import ROW_KIND
from flinkcore.errors import ConfigurationError, DataError, SchemaError

WITHDRAWN: Final = ("-U", "-D")
"""Kinds of rows that withdraw one."""


@dataclass(frozen=True)
class PointInTimeJoin:
    """Columns and settings of a join of questions with the features known at their time.

    Attributes
    ----------
    keys, at, emitted_at, latest_by, allow_exact_matches
        As of `as_of`.
    served : tuple of (str, str)
        Columns of the features, and their names in the answer.
    max_age_ms : int or None
    retracts : bool
        Whether the features have rows that withdraw others.
    """

    keys: tuple[str, ...]
    at: str
    emitted_at: str
    served: tuple[tuple[str, str], ...]
    latest_by: str | None
    max_age_ms: int | None
    allow_exact_matches: bool
    retracts: bool

    @classmethod
    def of(
        cls,
        questions: Sequence[str],
        features: Sequence[str],
        *,
        at: str,
        keys: str | Sequence[str],
        columns: str | Sequence[str] | None,
        emitted_at: str,
        latest_by: str | None,
        max_age: Interval | None,
        allow_exact_matches: bool,
        prefix: str,
    ) -> PointInTimeJoin:
        """Check the parameters of `as_of` against the names of the columns of both sides.

        Raises
        ------
        ConfigurationError
            If a column is missing, comes or would come twice, or the age is negative.
        """
        key_names = names_of(keys, "keys")
        asked = (*key_names, at)
        served = (
            [name for name in features if name not in key_names and name != ROW_KIND]
            if columns is None
            else names_of(columns, "columns")
        )
        read = (*key_names, emitted_at, *served, *([] if latest_by is None else [latest_by]))
        for side, has, wanted in (("questions", questions, asked), ("features", features, read)):
            check_names(has, side)
            missing = [name for name in wanted if name not in has]
            if missing:
                advice = (
                    "; results have it behind .with_emitted_at()"
                    if emitted_at in missing and side != "questions"
                    else ""
                )
                raise ConfigurationError(
                    f"the {side} have no column {missing[0]!r}; they have {', '.join(has)}{advice}"
                )
        names = tuple((name, prefix + name) for name in served)
        for _, name in names:
            if name in questions:
                raise ConfigurationError(
                    f"the questions have a column {name!r} already. Give a prefix for the columns of the features, "
                    "or name those that you want in columns"
                )
        max_age_ms = None if max_age is None else interval_ms(max_age, "max_age")
        if max_age_ms is not None and max_age_ms < 0:
            raise ConfigurationError(f"max_age cannot be negative, it is {max_age_ms} ms")
        return cls(
            key_names,
            at,
            emitted_at,
            names,
            latest_by,
            max_age_ms,
            allow_exact_matches,
            ROW_KIND in features,
        )

    def check_types(self, questions: pa.Schema, features: pa.Schema) -> pa.Schema:
        """Check the types of keys, times and order.

        Parameters
        ----------
        questions, features : pyarrow.Schema
            Schemas of both sides, with the columns that the join reads.

        Returns
        -------
        pyarrow.Schema
            Types of the keys to which both sides can be brought.

        Raises
        ------
        SchemaError
            If the keys of both sides are values of different kinds, a time is not a time, or `latest_by` has no order.
        """
        for schema, name in ((questions, self.at), (features, self.emitted_at)):
            kind = schema.field(name).type
            if not (pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
                raise SchemaError(
                    f"time column {name!r} is {kind}: a time is a timestamp, a date, or integer ms"
                )
        if self.latest_by is not None and (
            pa.types.is_nested(kind := features.field(self.latest_by).type) or pa.types.is_null(kind)
        ):
            raise SchemaError(
                f"latest_by column {self.latest_by!r} is {kind}: it takes a column of plain values, such as the end of "
                "a window"
            )
        return pa.schema(
            [
                (name, _common_key_type(name, questions.field(name).type, features.field(name).type))
                for name in self.keys
            ]
        )


def as_of(
    questions: Any,
    features: Any,
    *,
    at: str,
    keys: str | Sequence[str],
    columns: str | Sequence[str] | None = None,
    emitted_at: str = "emitted_at",
    latest_by: str | None = None,
    max_age: Interval | None = None,
    allow_exact_matches: bool = True,
    prefix: str = "",
) -> pa.Table:
    """Answer each question with the features that a live job would have served at that time.

    That is the row of the question's key that was emitted last, by then: late firings and corrections take the place
    of what was served before, and nothing counts that was not known yet. Further features are joined by a further
    call on the answer. For DataFrames there is :func:`flinkcore.spark.as_of`.

    Parameters
    ----------
    questions : pyarrow.Table, or what Arrow makes one of
        Keys and times.
    features : result of a job, pyarrow.Table, or what Arrow makes one of
        Rows with the time at which each was emitted, as ``with_emitted_at()`` gives it: a timestamp, or int64 ms. Rows
        of a key that were emitted at the same time lie in the order in which they were. Rows without a time were not
        known within their log, and answer nothing. Rows of the kinds ``-U`` and ``-D`` in a column ``row_kind``
        (:meth:`~flinkcore.datastream.WindowedLogStream.retracting` windows) withdraw what was served.
    at : str
        Column of the questions: the time for which is asked, a timestamp, a date, or integer ms; null: no answer.
    keys : str or sequence of str
        Columns that both have. A null key has no answer; a part of a composite key may be null.
    columns : str or sequence of str, optional
        Columns of the features that are wanted; by default all but the keys.
    emitted_at : str
        Column of the features: when each row was emitted.
    latest_by : str, optional
        Column of the features, such as ``window_end``: of the rows that were known, those count whose value here is
        the greatest, so that a late firing of an older window does not take the place of a newer window. A row that
        is withdrawn leaves nothing to serve until another one of the same age or newer comes.
    max_age : Duration, Time or int (ms), optional
        Largest age of a served row: rows that were emitted earlier are not served any more.
    allow_exact_matches : bool
        Whether what was emitted at the very time of the question is served.
    prefix : str
        Put before the names of the features' columns in the answer.

    Returns
    -------
    pyarrow.Table
        The questions, row by row as they came, with the columns of the features, null where nothing was known.
        Columns of dictionaries, views and extension types come as their values.

    Raises
    ------
    ConfigurationError
        If a column is missing, comes or would come twice, or the age is negative.
    SchemaError
        If the keys of both sides are values of different kinds (a text and a number, a timestamp with a zone and one
        without), a time is not a time, or `latest_by` has nested values.
    DataError
        If a time does not fit into 64 bits of milliseconds, or a key not into the type of both sides.

    Notes
    -----
    Feast's ``get_historical_features`` joins by the time of an event and its ``ttl``; this joins by the time at which
    a value became known.
    """
    answer = as_table(questions, "questions")
    asked = with_field_columns(answer, [at, *names_of(keys, "keys")])
    known = with_field_columns(
        as_table(features, "features"), columns_of_features(keys, columns, emitted_at, latest_by)
    )
    join = PointInTimeJoin.of(
        asked.column_names,
        known.column_names,
        at=at,
        keys=keys,
        columns=columns,
        emitted_at=emitted_at,
        latest_by=latest_by,
        max_age=max_age,
        allow_exact_matches=allow_exact_matches,
        prefix=prefix,
    )
    types = join.check_types(asked.schema, known.schema)
    ids = ids_of_keys(
        ("questions", cast_to(asked.select(types.names), types, "questions")),
        ("features", cast_to(known.select(types.names), types, "features")),
        join.keys,
    )
    rows = pa.array(*_served_rows(asked, known, join, *ids))
    for name, served_as in join.served:
        answer = answer.append_column(
            known.schema.field(name).with_name(served_as).with_nullable(True), known.column(name).take(rows)
        )
    return answer


def columns_of_features(
    keys: str | Sequence[str], columns: str | Sequence[str] | None, emitted_at: str, latest_by: str | None
) -> list[str]:
    """Return the columns of features that the arguments of a join name."""
    of_rows = [emitted_at] if latest_by is None else [emitted_at, latest_by]
    return [*names_of(keys, "keys"), *of_rows, *(() if columns is None else names_of(columns, "columns"))]


def _served_rows(
    asked: pa.Table, known: pa.Table, join: PointInTimeJoin, question_ids: Int64s, feature_ids: Int64s
) -> tuple[Int64s, pa.DataType, npt.NDArray[np.bool_]]:
    """Return the row of features that answers each question, the type of these numbers, and which have no answer."""
    emitted_ms, emitted_ns, is_known = _times(known, join.emitted_at)
    asked_ms, asked_ns, is_asked = _times(asked, join.at)
    rows = np.flatnonzero(is_known & (feature_ids != NO_KEY))
    order = np.lexsort((emitted_ns[rows], emitted_ms[rows], feature_ids[rows]))
    rows = rows[order]
    if join.latest_by is not None:
        rows = rows[_are_latest(feature_ids[rows], known.column(join.latest_by).take(pa.array(rows)))]
    n_rows = len(rows)
    ids = np.concatenate([feature_ids[rows], question_ids])
    ms = np.concatenate([emitted_ms[rows], asked_ms])
    ns = np.concatenate([emitted_ns[rows], asked_ns])
    is_question = np.arange(len(ids)) >= n_rows
    # A question sees features with an equal timestamp only if it sorts after them.
    order = np.lexsort((is_question == join.allow_exact_matches, ns, ms, ids))
    found = np.maximum.accumulate(np.where(is_question[order], -1, np.arange(len(ids))))
    served = np.empty(len(ids), np.int64)
    served[order] = np.where(found < 0, -1, order[found])
    served = served[n_rows:]
    has_none = (served < 0) | ~is_asked | (question_ids == NO_KEY)
    served = np.where(has_none, 0, served)
    if n_rows == 0:
        return served, pa.int64(), np.ones(len(served), np.bool_)
    has_none |= ids[served] != question_ids
    if join.max_age_ms is not None:
        # Unsigned: times may be further apart than an int64 reaches.
        age_ms = asked_ms.view(np.uint64) - ms[served].view(np.uint64)
        has_none |= (age_ms > join.max_age_ms) | ((age_ms == join.max_age_ms) & (asked_ns > ns[served]))
    served = rows[served]
    if join.retracts:
        withdrawn = pc.is_in(known.column(ROW_KIND), pa.array(WITHDRAWN)).to_numpy()
        has_none |= withdrawn[served]
    return served, pa.int64(), has_none


def _times(table: pa.Table, name: str) -> tuple[Int64s, Int64s, npt.NDArray[np.bool_]]:
    """Return a column of times in ms, what they have beyond in ns, and where they are not null."""
    column = table.column(name)
    whole, beyond = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for chunk in column.chunks:
        found, unreadable = to_milliseconds(chunk)
        if unreadable is not None:
            raise DataError(no_time(chunk[int(np.argmax(unreadable))], name), column=name)
        whole.append(found)
        beyond.append(nanoseconds_within(chunk))
    return np.concatenate(whole), np.concatenate(beyond), column.is_valid().to_numpy()


def _are_latest(ids: Int64s, values: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Return whether no earlier row of the same key, in the order of emission, has a greater value."""
    if len(ids) == 0:
        return np.empty(0, np.bool_)
    ranks = np.asarray(pc.rank(values, sort_keys="ascending", tiebreaker="dense")).astype(np.int64)
    of_keys = ids * (len(ids) + 1) + np.where(values.is_valid().to_numpy(), ranks, 0)
    latest: npt.NDArray[np.bool_] = of_keys == np.maximum.accumulate(of_keys)
    return latest


def _common_key_type(name: str, questions: pa.DataType, features: pa.DataType) -> pa.DataType:
    """Return the type to which the keys of both can be brought without a change of what they are."""
    kinds = [_kind_of_key(kind) for kind in (questions, features)]
    try:
        if None in kinds or (kinds[0] != kinds[1] and "null" not in kinds) or kinds == ["null", "null"]:
            raise pa.ArrowTypeError("both have to be plain values of one kind")
        sides = with_room_for(features, questions), with_room_for(questions, features)
        schemas = [pa.schema([(name, side)]) for side in sides]
        common: pa.DataType = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except (pa.ArrowTypeError, pa.ArrowInvalid) as failure:
        raise SchemaError(
            f"the key {name!r} is {questions} in the questions and {features} in the features; cast one of them: "
            f"{failure}"
        ) from failure
    return common


def _kind_of_key(kind: pa.DataType) -> Any:
    """Return the kind of a type's values, whatever their bits, or None if they cannot be keys."""
    types = pa.types
    if types.is_struct(kind):
        parts = tuple((field.name, _kind_of_key(field.type)) for field in kind)
        return None if any(part is None for _, part in parts) else parts
    if types.is_timestamp(kind):
        return "timestamp without a zone" if kind.tz is None else "timestamp with a zone"
    of_kinds = {
        "null": types.is_null,
        "boolean": types.is_boolean,
        "integer": types.is_integer,
        "floating": types.is_floating,
        "decimal": types.is_decimal,
        "text": lambda kind: types.is_string(kind) or types.is_large_string(kind),
        "binary": lambda kind: (
            types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
        ),
        "date": types.is_date,
        "time": types.is_time,
        "duration": types.is_duration,
    }
    return next((name for name, is_kind in of_kinds.items() if is_kind(kind)), None)
