"""The search for a pattern in the rows of each key, over the key groups of one partition.

Rows wait in `PendingRows` until they have come up in the order of time, and then go to the `PatternMatcher`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int64s
from flinkcore._native.key_dictionary import KeyDictionary
from flinkcore._native.pattern_matching import PatternMatcher
from flinkcore._native.pending_rows import PendingRows
from flinkcore._native.relational import KernelResults
from flinkcore.columnar.operator_plans.pattern_match import PatternMatch
from flinkcore.columnar.operator_plans.row_ranking import RowRanking, SortWords
from flinkcore.columnar.relational.immediate_kernel import NO_RESULTS
from flinkcore.columnar.relational.kernel import RelationalKernel
from flinkcore.columnar.relational.numbered_rows import NumberedRows
from flinkcore.columnar.relational.pattern_states import states_of
from flinkcore.columnar.relational.pattern_values import PatternValues
from flinkcore.columnar.stages.relational_stage import RelationalStage
from flinkcore.datastream.graph.row_patterns import ALL_ROWS
from flinkcore.errors import DataError

_OF_ORDER: Final = frozenset(("pending",))
_END: Final = (1 << 63) - 1


class MatchKernel:
    """A `RelationalKernel`: the order in which rows come up, and the search for matches in it.

    Parameters
    ----------
    order : PendingRows
    matcher : PatternMatcher
    keys : KeyDictionary
    kept : NumberedRows
    operator : PatternMatch
    conditions : dict of int to PatternValues
        Those that the matcher asks for, by number of the variable.
    of_rows : dict of int to PatternValues
        Those that read nothing but the row.
    ranking : RowRanking or None
        Order of rows of equal timestamps.
    """

    def __init__(
        self,
        order: PendingRows,
        matcher: PatternMatcher,
        keys: KeyDictionary,
        kept: NumberedRows,
        operator: PatternMatch,
        conditions: Mapping[int, PatternValues],
        of_rows: Mapping[int, PatternValues],
        ranking: RowRanking | None,
    ) -> None:
        self._order, self.matcher, self._keys, self._kept = order, matcher, keys, kept
        self._operator, self._conditions, self._of_rows = operator, conditions, of_rows
        self._ranking = ranking
        self.counts = order.counts
        self.in_order: Int64s = np.empty(0, np.int64)

    def process(
        self,
        key_ids: npt.NDArray[np.uint32],
        key_groups: npt.NDArray[np.int32],
        inputs: npt.NDArray[np.int8] | None,
        rows: Int64s,
        timestamps: Int64s,
        steps: Int64s,
        first: int = 0,
    ) -> int:
        taken = self._order.process(key_ids, key_groups, inputs, rows, timestamps, steps, first)
        self._search(int(steps[-1]) if taken == len(steps) else None)
        return taken

    def advance(self, steps_before: int) -> bool:
        done = self._order.advance(steps_before)
        self._search(steps_before if done else None)
        return done

    def finish(self) -> bool:
        done = self._order.finish()
        self._search(_END if done else None)
        return done

    def _search(self, steps: int | None) -> None:
        """Search the rows that have come up, and end the runs that so many steps end, if no more rows come before."""
        due = self._order.take()
        if len(due.left):
            order = self._by_columns(due)
            ids, left = due.key_ids[order], due.left[order]
            self.matcher.begin(
                ids,
                self._keys.key_group(ids),
                left,
                due.timestamps[order],
                due.steps[order],
                self._bits(left),
            )
            while self.matcher.run():
                for variable, values in self._conditions.items():
                    asked = self.matcher.asked(variable)
                    if asked is not None:
                        n, looked, members, counts = asked
                        (found,) = values(self._kept, np.zeros(n, np.int64), looked, members, counts)
                        self.matcher.answer(variable, _truth(found))
            self._require_rows_to_skip_to()
        if steps is not None:
            self.matcher.settle(steps)
            self._require_rows_to_skip_to()

    def _bits(self, rows: Int64s) -> npt.NDArray[np.uint64]:
        """Return which conditions that read nothing but the row are true."""
        bits = np.zeros(len(rows), np.uint64)
        for variable, values in self._of_rows.items():
            looked = np.repeat(rows[:, None], len(values.places), axis=1)
            (found,) = values(self._kept, rows, looked, np.empty(0, np.int64), None)
            bits |= _truth(found).astype(np.uint64) << np.uint64(variable)
        return bits

    def _by_columns(self, due: KernelResults) -> Int64s:
        """Return the order of rows, of which those of a key and timestamp lie together, by further columns, too."""
        n = len(due.left)
        if self._ranking is None:
            return np.arange(n)
        is_first = np.ones(n, np.bool_)
        is_first[1:] = (due.key_ids[1:] != due.key_ids[:-1]) | (due.timestamps[1:] != due.timestamps[:-1])
        if is_first.all():
            return np.arange(n)
        names = [key.column for key in self._ranking.keys]
        words = self._ranking.of(self._kept.take(due.left, list(dict.fromkeys(names))))
        return np.lexsort((*_sort_columns(words), np.cumsum(is_first)))

    def _require_rows_to_skip_to(self) -> None:
        failure = self.matcher.failure
        if failure is None:
            return
        reason, row = failure
        name, call = self._operator.pattern.skip_to, self._operator.pattern.skip.value.upper()
        what = f"has no row of {name}" if reason == "no row" else f"begins with the row of {name} to skip to"
        shown = ", ".join(f"{name} = {value!r}" for name, value in _plain(self._kept.take(np.array([row]))))
        raise DataError(
            f"AFTER MATCH SKIP {call} {name}: the match that begins with the row {shown} {what}, so that it would be "
            "found for ever; Flink fails, too. Write SKIP TO NEXT ROW or SKIP PAST LAST ROW"
        )

    @property
    def is_full(self) -> bool:
        return self._order.is_full or self.matcher.n_emitted > 0

    def take(self) -> KernelResults:
        """Return the matches in total order; `in_order` then has their places among those that the matcher has read."""
        if not self.matcher.n_emitted:
            return NO_RESULTS
        rows, steps, fired, timestamps, numbers, key_ids, groups = self.matcher.take()
        self.in_order = order = np.lexsort((numbers, groups, fired, steps))
        return NO_RESULTS._replace(
            left=rows[order],
            events=np.full(len(order), -1),
            steps=steps[order],
            fired=fired[order],
            key_ids=key_ids[order],
            timestamps=timestamps[order],
        )

    @property
    def current_watermark(self) -> int:
        return self._order.current_watermark

    def memory_bytes(self) -> int:
        return self._order.memory_bytes() + self.matcher.memory_bytes()

    @property
    def live_count(self) -> int:
        return self._order.live_count + self.matcher.live_count

    def live_rows(self) -> Int64s:
        return np.concatenate([self._order.live_rows(), self.matcher.live_rows()])

    def renumber(self, rows: Int64s) -> None:
        waiting = self._order.live_count
        self._order.renumber(rows[:waiting])
        self.matcher.renumber(rows[waiting:])

    def snapshot(self) -> Mapping[str, Mapping[str, Any]]:
        return {"pending": self._order.snapshot()["pending"], **self.matcher.snapshot()}

    def restore(self, table: str, keys: Int64s, rows: dict[str, Any], columns: pa.RecordBatch) -> None:
        part = self._order if table in _OF_ORDER else self.matcher
        part.restore(table, keys, self._keys.key_group(keys.astype(np.uint32)), rows, columns)


class MatchStage(RelationalStage):
    """Returns a row for each match of a pattern."""

    _kernel: MatchKernel

    def _made_kernel(self, operator: PatternMatch, steps_done: int, result_limit: int) -> RelationalKernel:
        (events,) = self._context.plan.input_schemas
        names, pattern = operator.pattern.names, operator.pattern
        self._values = PatternValues([each.value for each in operator.measures], events)
        conditions: dict[int, PatternValues] = {}
        of_rows: dict[int, PatternValues] = {}
        for number, (name, condition) in enumerate(zip(names, operator.conditions, strict=True)):
            if condition is not None:
                chosen = of_rows if condition.depends_on_row_alone(name) else conditions
                chosen[number] = PatternValues([condition], events)
        matcher = PatternMatcher(
            self._timers,
            self._timeline.steps,
            steps_done=steps_done,
            states=_numbered_states(operator),
            n_variables=len(names),
            skip=pattern.skip.value,
            skip_variable=-1 if pattern.skip_to is None else names.index(pattern.skip_to),
            within_ms=pattern.within_ms or 0,
            known=sum(1 << number for number in of_rows),
            always=sum(1 << number for number, each in enumerate(operator.conditions) if each is None),
            readers=[_reader(conditions.get(number), names) for number in range(len(names))]
            + [_reader(self._values, names)],
        )
        order = PendingRows(
            self._timeline.steps,
            max_parallelism=self._context.plan.max_parallelism,
            key_groups=self._key_group_range,
            steps_done=steps_done,
            result_limit=result_limit,
            bounded=False,
        )
        ranking = operator.ranking(events) if operator.order_by else None
        return MatchKernel(order, matcher, self._keys, self._kept[0], operator, conditions, of_rows, ranking)

    def _taken_values(self, results: KernelResults) -> list[pa.Array]:
        """Return the measures of the matches."""
        order = self._kernel.in_order
        times = np.empty_like(results.timestamps)
        times[order] = results.timestamps
        found = self._values(self._kept[0], times, *self._kernel.matcher.take_read())
        return [column.take(pa.array(order)) for column in found]

    def _result_columns(self, results: KernelResults, values: list[pa.Array]) -> list[pa.Array]:
        """Return the columns of the key, and the measures."""
        return [*self._kept[0].take(results.left, list(self._context.plan.keys)).columns, *values]


def _numbered_states(operator: PatternMatch) -> list[list[tuple[int, int, list[tuple[int, bool]]]]]:
    states = states_of(operator.pattern)
    numbers = {id(state): number for number, state in enumerate(states)}
    return [
        [
            (numbers[id(way.target)], -1 if way.variable is None else way.variable, way.tests)
            for way in state.transitions
        ]
        for state in states
    ]


def _reader(
    values: PatternValues | None, names: tuple[str, ...]
) -> tuple[list[tuple[int, bool, int]], list[int]]:
    """Return what expressions read, by numbers of variables."""
    if values is None:
        return [], []
    numbers = {ALL_ROWS: -1} | {name: number for number, name in enumerate(names)}
    places = [(numbers[each.variable], each.is_first, each.offset) for each in values.places]
    return places, [numbers[name] for name in values.variables]


def _truth(values: pa.Array) -> npt.NDArray[np.uint8]:
    """Return where a condition is true; null is not."""
    filled = values.fill_null(False) if values.null_count else values
    truth: npt.NDArray[np.bool_] = filled.to_numpy(zero_copy_only=False)
    return truth.astype(np.uint8)


def _sort_columns(words: SortWords) -> list[npt.NDArray[Any]]:
    """Return sort keys as columns, the least significant first."""
    columns: list[npt.NDArray[Any]] = list(words.words.T[::-1])
    if words.tail_ends is None or words.tails is None:
        return columns
    offsets = pa.py_buffer(np.ascontiguousarray(words.tail_ends))
    n = len(words.words)
    tails = pa.Array.from_buffers(pa.large_binary(), n, [None, offsets, pa.py_buffer(words.tails)])
    encoded = tails.dictionary_encode()
    places = np.empty(len(encoded.dictionary), np.int64)
    places[encoded.dictionary.sort_indices().to_numpy()] = np.arange(len(places))
    return [places[encoded.indices.to_numpy()], *columns]


def _plain(row: pa.RecordBatch) -> list[tuple[str, Any]]:
    return [(name, column[0].as_py()) for name, column in zip(row.schema.names, row.columns, strict=True)]
