"""The native search for patterns: tables of its state that do not fit are refused."""

import numpy as np
import pyarrow as pa
import pytest
from equipment.timelines import packed_steps

from flinkcore._native.pattern_matching import PatternMatcher
from flinkcore._native.timers import TimerHeap
from flinkcore.errors import SchemaError

ONE = np.zeros(1, np.int64)


def matcher(timers: TimerHeap | None = None, watermarks: tuple[int, ...] = ()) -> PatternMatcher:
    return PatternMatcher(
        TimerHeap(1, (0, 0)) if timers is None else timers,
        packed_steps(np.arange(len(watermarks)), np.array(watermarks, np.int64)),
        steps_done=0,
        states=[[(1, 0, [(0, True)])], []],
        n_variables=1,
        skip="to next row",
        skip_variable=-1,
        within_ms=0,
        known=1,
        always=0,
        programs=[[]],
        n_columns=0,
        readers=[([], []), ([], [])],
    )


@pytest.mark.parametrize(("place", "is_match"), [(-1, 1), (0, 2), (-1, -1)])
def test_a_match_of_a_state_has_rows(place: int, is_match: int) -> None:
    runs = pa.record_batch({"place": [place], "state": [0], "is_match": [is_match], "rows_0": [0]})
    with pytest.raises(SchemaError, match="row 0 of the runs is a match without rows"):
        matcher().restore("runs", ONE, ONE.astype(np.int32), {}, runs)


@pytest.mark.parametrize("key", [0, 1 << 31])
def test_a_timer_of_a_key_without_rows_fires_nothing(key: int) -> None:
    timers = TimerHeap(1, (0, 0))
    timers.add(150, key, 0)
    search = matcher(timers, (200,))
    search.settle(1)
    assert (len(timers), search.n_emitted) == (0, 0)
