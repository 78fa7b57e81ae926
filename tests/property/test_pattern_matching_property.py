"""The search for patterns against a model of Flink's NFA: conditions on rows and runs, restored anywhere."""

from typing import Any

import numpy as np
import pyarrow as pa
from equipment.example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from models.patterns import Condition, NoRowToSkipTo, PatternModel, rows_read

from flinkcore._native.pattern_matching import PatternMatcher
from flinkcore._native.timers import TimerHeap
from flinkcore.columnar.relational.pattern_states import states_of
from flinkcore.datastream.graph.row_patterns import PatternVariable, RowPattern, Skip
from flinkcore.errors import UnsupportedOperationError
from flinkcore.time_plane.timeline import Timeline

END = 2**63 - 1
GROUPS = np.array([3, 0, 1], np.int32)
"""Key groups of the keys 0 to 2."""

quantifiers = st.sampled_from(
    [(1, 1), (0, 1), (1, None), (0, None), (2, 2), (1, 3), (0, 2), (2, None), (2, 3)]
)


@st.composite
def patterns(draw: st.DrawFn) -> RowPattern:
    """Patterns that Flink takes."""
    while True:
        bounds = draw(st.lists(quantifiers, min_size=1, max_size=4))
        variables = tuple(
            PatternVariable(name, *each, is_greedy=draw(st.booleans()) or each == (0, 1))
            for name, each in zip("ABCD", bounds, strict=False)
        )
        skip = draw(st.sampled_from(Skip))
        names = [each.name for each in variables]
        to = draw(st.sampled_from(names)) if skip in (Skip.TO_FIRST, Skip.TO_LAST) else None
        pattern = RowPattern(variables, skip, to, draw(st.none() | st.integers(1, 6)))
        try:
            pattern.check()
        except UnsupportedOperationError:
            continue
        return pattern


class Native:
    """The kernel with what it has found, of keys whose rows have their place as number."""

    def __init__(self, pattern: RowPattern, of_rows: set[int], timeline: Timeline, steps: int = 0) -> None:
        self.pattern, self.of_rows, self.timeline = pattern, of_rows, timeline
        states = states_of(pattern)
        numbers = {id(state): number for number, state in enumerate(states)}
        n = len(pattern.variables)
        whole: tuple[list[Any], list[int]] = ([], list(range(n)))
        self.timers = TimerHeap(4, (0, 3))
        self.kernel = PatternMatcher(
            self.timers,
            timeline.steps,
            steps_done=steps,
            states=[
                [
                    (numbers[id(way.target)], -1 if way.variable is None else way.variable, way.tests)
                    for way in state.transitions
                ]
                for state in states
            ],
            n_variables=n,
            skip=pattern.skip.value,
            skip_variable=-1 if pattern.skip_to is None else pattern.names.index(pattern.skip_to),
            within_ms=pattern.within_ms or 0,
            known=sum(1 << number for number in of_rows),
            always=0,
            readers=[([(-1, True, 0), (-1, False, 0)], list(range(n)))] * n + [whole],
        )
        self.found: list[tuple[int, int, int, list[list[int]]]] = []

    def take(self) -> None:
        _, steps, _, times, orders, keys, groups = self.kernel.take()
        looked, members, counts = self.kernel.take_read()
        assert looked is None
        assert counts is not None
        assert groups.tolist() == GROUPS[keys].tolist()
        rows = iter(members.tolist())
        read = [[[next(rows) % 1000 for _ in range(n)] for n in each] for each in counts.tolist()]
        for at in np.lexsort((orders, steps)).tolist():
            self.found.append((int(keys[at]), int(steps[at]), int(times[at]), read[at]))

    def process(self, rows: list[tuple[int, int, int]], step: int, conditions: list[Condition]) -> None:
        """Search rows (key, number, time), with the conditions of their variables."""
        keys = np.array([key for key, _, _ in rows], np.uint32)
        bits = [
            sum(1 << variable for variable in self.of_rows if conditions[variable]([], number))
            for _, number, _ in rows
        ]
        self.kernel.begin(
            keys,
            GROUPS[keys],
            np.array([number + 1000 * key for key, number, _ in rows], np.int64),
            np.array([time for _, _, time in rows], np.int64),
            np.full(len(rows), step),
            np.array(bits, np.uint64),
        )
        while self.kernel.run():
            for variable in range(len(conditions)):
                asked = self.kernel.asked(variable)
                if asked is None:
                    continue
                n, looked, members, counts = asked
                assert looked is not None
                assert counts is not None
                of_run = iter(members.tolist())
                answers = []
                for each, (_, row) in zip(counts.tolist(), looked.tolist(), strict=True):
                    taken = [
                        (next(of_run) % 1000, taker)
                        for taker, n_rows in enumerate(each)
                        for _ in range(n_rows)
                    ]
                    taken.remove((row % 1000, variable))
                    answers.append(conditions[variable](taken, row % 1000))
                assert len(answers) == n
                self.kernel.answer(variable, np.array(answers, np.uint8))
        if self.kernel.failure is not None:
            raise NoRowToSkipTo(self.kernel.failure[0])
        self.kernel._check()

    def restored(self, steps: int) -> "Native":
        """Another kernel that goes on from here, with other numbers of rows."""
        other = Native(self.pattern, self.of_rows, self.timeline, steps)
        other.found = self.found
        for name, table in self.kernel.snapshot().items():
            columns = dict(table)
            keys = columns.pop("key")
            rows = {"row": columns.pop("row") + 3000} if "row" in columns else {}
            # In two parts, as a state that spills.
            for part in (slice(0, len(keys) // 2), slice(len(keys) // 2, None)):
                batch = pa.record_batch({each: values[part] for each, values in columns.items()})
                of_part = {each: values[part] for each, values in rows.items()}
                other.kernel.restore(name, keys[part].copy(), GROUPS[keys[part]], of_part, batch)
        timers = pa.record_batch(self.timers.snapshot())
        other.timers.restore(timers)
        other.kernel._check()
        assert other.kernel.live_count == self.kernel.live_count
        other.kernel.renumber(other.kernel.live_rows() - 3000)
        assert other.kernel.live_rows().tolist() == self.kernel.live_rows().tolist()
        return other


@settings(deadline=None, max_examples=examples(300))
@given(pattern=patterns(), data=st.data())
def test_matches_are_those_of_flink(pattern: RowPattern, data: st.DataObject) -> None:
    n = len(pattern.variables)
    seed = data.draw(st.integers(0, 2**32), label="seed of the conditions")
    shares = data.draw(st.lists(st.sampled_from([2, 5, 8, 10]), min_size=n, max_size=n), label="shares")
    of_rows = data.draw(st.sets(st.integers(0, n - 1)), label="conditions of rows alone")

    def condition(variable: int) -> Condition:
        def of_run(rows: list[tuple[int, int]], number: int) -> bool:
            of_the_run = 0 if variable in of_rows else len(rows) + sum(taker for _, taker in rows)
            return hash((seed, variable, number, of_the_run)) % 10 < shares[variable]

        return of_run

    conditions = [condition(variable) for variable in range(n)]
    steps = data.draw(
        st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=8), max_size=5)
    )
    raised = [10 * (step + 1) for step in range(len(steps))]
    timeline = Timeline.of(np.array([*range(len(raised)), END], np.int64), np.array([*raised, END], np.int64))
    native = Native(pattern, of_rows, timeline)
    models = [PatternModel(pattern, conditions) for _ in range(3)]
    expected: list[tuple[int, int, int, list[list[int]]]] = []
    counts = [0, 0, 0]
    failure = None
    for step, drawn in enumerate(steps):
        rows = sorted(((key, 10 * step + time + 1) for key, time in drawn), key=lambda each: each[1])
        events = []
        for key, time in rows:
            events.append((key, counts[key], time))
            counts[key] += 1
        try:
            for key, _, time in events:
                expected += [(key, step, time, rows_read(found, n)) for found in models[key].row(time)]
            for key, model in enumerate(models):
                expected += [
                    (key, step, raised[step], rows_read(found, n)) for found in model.advance(raised[step])
                ]
        except NoRowToSkipTo as error:
            failure = str(error)
        cut = data.draw(st.integers(0, len(events)), label="rows of the first batch")
        try:
            for part in (events[:cut], events[cut:]):
                if part:
                    native.process(part, step, conditions)
                    native.take()
            native.kernel.settle(step + 1)
        except NoRowToSkipTo:
            assert failure is not None
            return
        assert failure is None
        assert native.kernel.failure is None
        native.take()
        if data.draw(st.booleans(), label="goes on elsewhere"):
            native = native.restored(step + 1)
    native.kernel.settle(END)
    native.take()
    for key, model in enumerate(models):
        try:
            expected += [(key, len(raised), END, rows_read(found, n)) for found in model.advance(END)]
        except NoRowToSkipTo:
            assert native.kernel.failure is not None
            return
    assert native.kernel.failure is None
    for key in range(3):
        of_key = [found for found in native.found if found[0] == key]
        assert of_key == [found for found in expected if found[0] == key]
    if pattern.within_ms is not None:
        assert native.kernel.live_count == 0
