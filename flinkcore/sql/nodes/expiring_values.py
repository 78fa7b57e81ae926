"""Distinct values of a key that expire one by one: COUNT(DISTINCT) and SUM(DISTINCT) with a time to live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from flinkcore.sql.expressions.decimals import added
from flinkcore.sql.expressions.numeric_casts import wrapped_one
from flinkcore.sql.types.logical_types import FLOATS, INTEGERS, LogicalType, Root

_LEAST_PRUNED: Final = 64
"""Entries from which on those that have expired are looked for."""

_N, _TOTAL, _ENTRIES, _NEXT_PRUNING = range(4)


@dataclass(frozen=True)
class ExpiringDistinct:
    """An aggregate of the distinct values of a key, each of which is known for a time; an `AccumulatorFunction`.

    Attributes
    ----------
    name : str
        "COUNT" or "SUM".
    given : LogicalType
        Type of the values.
    result_type : LogicalType
    ttl_ms : int
        Time to live of an entry, in ms of processing time.
    withdraws : bool
        Whether rows are withdrawn, so that entries have counts.

    Notes
    -----
    Follows the view of ``DistinctAggCodeGen``, a map with a time to live for each entry, and within it
    ``CountAggFunction``, ``SumAggFunction`` and ``SumWithRetractAggFunction``. If rows are only inserted, an entry is
    written when its value comes, and not again before it has expired. Otherwise each row writes it. A value whose
    entry has expired counts once more when it comes again, and is not taken back when it is withdrawn.
    """

    name: str
    given: LogicalType
    result_type: LogicalType
    ttl_ms: int
    withdraws: bool

    @property
    def type(self) -> pa.DataType:
        return self.result_type.with_nullable(True).arrow

    def create(self) -> Any:
        """Return the number of values, their sum, the entries by value (count and end), and when to prune these."""
        return [0, None, {}, _LEAST_PRUNED]

    def arguments(self, fields: Sequence[pa.Array]) -> list[tuple[Any, ...]]:
        (values,) = fields
        if pa.types.is_date32(values.type) or pa.types.is_time32(values.type):
            values = values.cast(pa.int32())
        elif pa.types.is_temporal(values.type):
            values = values.cast(pa.int64())
        if self.given.root in FLOATS:  # -0.0 and 0.0 are two values, and NaN is one
            return [(value, None if value is None else value.hex()) for value in values.to_pylist()]
        return [(value, value) for value in values.to_pylist()]

    def accumulate(self, accumulator: Any, arguments: tuple[Any, ...], now_ms: int) -> None:
        value, key = arguments
        if value is None:
            return
        count = self._known(accumulator, key, now_ms)
        if not self.withdraws:
            if not count:
                self._write(accumulator, key, 1, now_ms)
                self._add(accumulator, value, 1)
            return
        self._write(accumulator, key, count + 1, now_ms)
        if count == 0:
            self._add(accumulator, value, 1)

    def retract(self, accumulator: Any, arguments: tuple[Any, ...], now_ms: int) -> None:
        value, key = arguments
        if value is None:
            return
        count = self._known(accumulator, key, now_ms)
        self._write(accumulator, key, count - 1, now_ms)
        if count == 1:
            self._add(accumulator, value, -1)

    def _known(self, accumulator: Any, key: Any, now_ms: int) -> int:
        """Return the count of a value, which is 0 once its entry has expired."""
        count, end = accumulator[_ENTRIES].get(key, (0, now_ms))
        return count if now_ms < end else 0

    def _write(self, accumulator: Any, key: Any, count: int, now_ms: int) -> None:
        entries = accumulator[_ENTRIES]
        if not count:
            entries.pop(key, None)
            return
        entries[key] = count, now_ms + self.ttl_ms
        if len(entries) > accumulator[_NEXT_PRUNING]:
            left = {key: entry for key, entry in entries.items() if now_ms < entry[1]}
            accumulator[_ENTRIES], accumulator[_NEXT_PRUNING] = left, max(_LEAST_PRUNED, 2 * len(left))

    def _add(self, accumulator: Any, value: Any, sign: int) -> None:
        accumulator[_N] += sign
        if self.name == "COUNT":
            return
        accumulator[_TOTAL] = self._sum(accumulator[_TOTAL], value, sign)

    def _sum(self, total: Any, value: Any, sign: int) -> Any:
        if self.given.root is Root.DECIMAL:
            value = value if sign > 0 else value.copy_negate()
            return value if total is None else added(total, value, self.result_type)
        total = sign * value if total is None else total + sign * value
        return wrapped_one(total, self.given) if self.given.root in INTEGERS else total

    def value(self, accumulator: Any) -> Any:
        if self.name == "COUNT":
            return accumulator[_N]
        return accumulator[_TOTAL] if accumulator[_N] or not self.withdraws else None

    def column(self, values: Sequence[Any]) -> pa.Array:
        return pa.array(values, self.type)
