"""Results of an operator that take more than a batch come to the next one in several steps, in total order."""

from collections.abc import Iterator
from itertools import chain
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flinkcore.columnar.local.stage_inputs import passed_on
from flinkcore.columnar.local.stage_run import StageOutputs, StageStep
from flinkcore.columnar.stages.placed_events import FIXED_COLUMNS, PlacedEvents
from flinkcore.columnar.stages.stage_output import PlacedOutput

ROWS = 30_000


def placed(arrivals: Any) -> PlacedEvents:
    zeros = np.zeros(len(arrivals), np.int64)
    order = (np.array(arrivals, np.int64), *(zeros for _ in range(FIXED_COLUMNS)))
    return PlacedEvents.of(pa.record_batch({"at": pa.array(arrivals)}), zeros, order)


class Operator:
    """Two partitions, whose results of each step are given."""

    def __init__(self, results: list[tuple[int | None, list[Any]]]) -> None:
        self._results = results
        self.context = SimpleNamespace(plan=SimpleNamespace(batch_bytes=1 << 16), last_arrival_ms=10**9)

    def run(self, steps: Iterator[Any]) -> Iterator[StageOutputs]:
        for until_ms, results in self._results:
            outputs = [[PlacedOutput(None, [], placed(each))] for each in results]
            yield StageOutputs(StageStep([], until_ms), outputs, lambda: False)


def steps_of(results: Any, *, goes_alone: bool, is_before_last: bool) -> list[tuple[list[int], int | None]]:
    """The arrivals of the results of each step, and its time; none that is earlier comes later."""
    operator: Any = Operator(results)
    found = []
    for step in passed_on(operator, iter(()), goes_alone, is_before_last):
        arrivals = chain.from_iterable(events.arrivals.tolist() for events, _ in step.ready)
        found.append((list(arrivals), step.until_ms))
    bound = 0
    for arrivals, until_ms in found:
        assert min(arrivals, default=bound) >= bound
        bound = bound if until_ms is None else max(bound, until_ms)
    return found


@pytest.mark.parametrize("is_before_last", [False, True])
def test_results_of_a_step_that_are_more_than_a_batch_come_in_several(is_before_last: bool) -> None:
    odd, even = np.arange(1, 2 * ROWS, 2), np.arange(0, 2 * ROWS, 2)
    found = steps_of([(2 * ROWS, [odd, even]), (None, [])], goes_alone=True, is_before_last=is_before_last)
    assert [at for arrivals, _ in found for at in arrivals] == list(range(2 * ROWS))
    assert sum(1 for arrivals, _ in found if arrivals) > 3


def test_results_of_one_arrival_are_in_one_step_if_others_take_them_in_order() -> None:
    at = np.repeat([1, 2, 3], ROWS)
    in_order = steps_of([(9, [at, at]), (None, [])], goes_alone=True, is_before_last=False)
    firsts = [arrivals[0] for arrivals, _ in in_order if arrivals]
    assert firsts == [1, 2, 3]
    for_the_last = steps_of([(9, [at, at]), (None, [])], goes_alone=True, is_before_last=True)
    assert sum(1 for arrivals, _ in for_the_last if arrivals) > 3


def test_results_for_several_operators_or_with_others_stay_one_step() -> None:
    at = np.arange(ROWS)
    found = steps_of([(ROWS, [at, at + 1]), (None, [])], goes_alone=False, is_before_last=True)
    assert sum(1 for arrivals, _ in found if arrivals) == 1


def test_results_of_the_end_come_in_several_steps_without_a_time() -> None:
    at = np.full(ROWS, 10**9)
    found = steps_of([(5, []), (None, [at, at])], goes_alone=False, is_before_last=False)
    given = [(len(arrivals), until_ms) for arrivals, until_ms in found if arrivals]
    assert sum(rows for rows, _ in given) == 2 * ROWS
    assert len(given) > 3
    assert {until_ms for _, until_ms in given} == {None}
