"""The search for a pattern in the rows of each key, over the key groups of one partition.

Rows wait in `PendingRows` until they have come up in the order of time, and then go to the `PatternMatcher`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from flinkcore.columnar.operator_plans.pattern_values import PatternValues
from flinkcore.columnar.operator_plans.row_ranking import RowRanking
from flinkcore.columnar.relational.immediate_kernel import NO_RESULTS
from flinkcore.columnar.relational.kernel import RelationalKernel
from flinkcore.columnar.relational.numbered_rows import NumberedRows
from flinkcore.columnar.relational.pattern_states import states_of
from flinkcore.columnar.stages.order_of_rows import order_with_columns
from flinkcore.columnar.stages.relational_stage import RelationalStage
from flinkcore.datastream.graph.row_patterns import ALL_ROWS, NativeStep
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
    numbers : NativeNumbers
        Columns that the matcher reads.
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
        numbers: NativeNumbers,
    ) -> None:
        self._order, self.matcher, self._keys, self._kept = order, matcher, keys, kept
        self._operator, self._conditions, self._of_rows = operator, conditions, of_rows
        self._ranking, self.numbers = ranking, numbers
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
        taken = self._order.process(key_ids, key_groups, inputs, rows, timestamps, steps, first=first)
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
            order = order_with_columns(due, self._ranking, self._kept)
            ids, left = due.key_ids[order], due.left[order]
            self.matcher.begin(
                ids,
                self._keys.key_group(ids),
                left,
                due.timestamps[order],
                due.steps[order],
                self._bits(left),
                *self.numbers.of(self._kept.take(left, self.numbers.columns), len(left)),
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


class NativeNumbers:
    """The columns that native conditions read, as words of 64 bits.

    Parameters
    ----------
    conditions : sequence of sequence of NativeStep
    """

    def __init__(self, conditions: Sequence[Sequence[NativeStep]]) -> None:
        read = (step.column for steps in conditions for step in steps if step.column is not None)
        self.columns: list[str] = list(dict.fromkeys(read))

    def of(self, rows: pa.RecordBatch, n: int) -> tuple[Int64s, npt.NDArray[np.uint64]]:
        """Return the values of n rows, shape (n, number of columns), and bits of those that are null."""
        words, nulls = np.zeros((n, len(self.columns)), np.int64), np.zeros(n, np.uint64)
        for number, name in enumerate(self.columns):
            column = rows.column(name)
            if column.null_count:
                is_null = column.is_null().to_numpy(zero_copy_only=False)
                nulls |= is_null.astype(np.uint64) << np.uint64(number)
            words[:, number] = _words(column)
        return words, nulls


def _words(column: pa.Array) -> Int64s:
    """Return numbers and times as integers of 64 bits, and doubles as they are in memory."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.view(pa.int64())
    elif pa.types.is_date32(kind):
        column = column.view(pa.int32())
    values = (column.fill_null(0) if column.null_count else column).to_numpy(zero_copy_only=False)
    words: Int64s = values.view(np.int64) if pa.types.is_floating(kind) else values.astype(np.int64)
    return words


def _program(
    steps: Sequence[NativeStep], numbers: NativeNumbers, names: tuple[str, ...]
) -> list[tuple[str, int, bool, int, int, int]]:
    """Return the steps of a condition, with numbers of variables and columns."""
    variables = _variable_numbers(names)
    return [
        (
            step.op,
            -1 if step.row is None else variables[step.row.variable],
            step.row is not None and step.row.is_first,
            -1 if step.column is None else numbers.columns.index(step.column),
            step.bits,
            step.value if step.row is None else step.row.offset,
        )
        for step in steps
    ]


def _variable_numbers(names: tuple[str, ...]) -> dict[str, int]:
    return {ALL_ROWS: -1} | {name: number for number, name in enumerate(names)}


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
        natives = [
            condition.native or () if condition is not None and number in conditions else ()
            for number, condition in enumerate(operator.conditions)
        ]
        numbers = NativeNumbers(natives)
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
            programs=[_program(each, numbers, names) for each in natives],
            n_columns=len(numbers.columns),
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
        return MatchKernel(
            order, matcher, self._keys, self._kept[0], operator, conditions, of_rows, ranking, numbers
        )

    def _restored_columns(
        self, rows: pa.RecordBatch, columns: pa.RecordBatch
    ) -> Mapping[str, npt.NDArray[Any] | None]:
        numbers, nulls = self._kernel.numbers.of(rows, rows.num_rows)
        return {"numbers": numbers, "nulls": nulls}

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
    numbers = _variable_numbers(names)
    places = [(numbers[each.variable], each.is_first, each.offset) for each in values.places]
    return places, [numbers[name] for name in values.variables]


def _truth(values: pa.Array) -> npt.NDArray[np.uint8]:
    """Return where a condition is true; null is not."""
    filled = values.fill_null(False) if values.null_count else values
    truth: npt.NDArray[np.bool_] = filled.to_numpy(zero_copy_only=False)
    return truth.astype(np.uint8)


def _plain(row: pa.RecordBatch) -> list[tuple[str, Any]]:
    return [(name, column[0].as_py()) for name, column in zip(row.schema.names, row.columns, strict=True)]
