"""Packed steps of a timeline, against plain arrays; blocks are tiny, so that searches cross many of them."""

import pickle
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from hypothesis import example, given
from hypothesis import strategies as st

from flinkcore._native.packed_steps import PackedSteps, StepPacker, StepReader

Int64s = npt.NDArray[np.int64]

MIN, MAX = -(2**63), 2**63 - 1
AFTER_ALL = 2**31 - 1
TICK = AFTER_ALL, 0

BLOCK_STEPS = st.sampled_from([1, 2, 3, 7, 1024])


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps as plain columns."""

    clock_ms: Int64s
    watermark_ms: Int64s
    split: Int64s
    position: Int64s

    def packed(self, block_steps: int, parts: int = 1) -> PackedSteps:
        packer = StepPacker(block_steps=block_steps)
        for part in np.array_split(np.arange(len(self.clock_ms)), parts):
            packer.add(self.clock_ms[part], self.watermark_ms[part], self.split[part], self.position[part])
        assert len(packer) == len(self.clock_ms)
        return packer.finish()

    def places(self) -> list[tuple[int, int, int]]:
        return list(zip(self.clock_ms.tolist(), self.split.tolist(), self.position.tolist(), strict=True))


def at_clocks(*clock_ms: int) -> Steps:
    """Steps of ticks, with watermarks below their clocks."""
    clocks = np.array(clock_ms, np.int64)
    return Steps(clocks, clocks - 1, np.full_like(clocks, AFTER_ALL), np.zeros_like(clocks))


@st.composite
def steps(draw: st.DrawFn) -> Steps:
    """Draw steps of ticks or events, dense, sparse or at the ends of 64 bits, with or without the end of the log."""
    number = {
        "dense": st.integers(0, 30),
        "sparse": st.integers(-(10**12), 10**12),
        "extreme": st.integers(MIN, MAX - 1) | st.sampled_from([MIN, MIN + 1, MAX - 1]),
        "steady": st.integers(0, 50).map(lambda number: 200 * number),
    }[draw(st.sampled_from(["dense", "sparse", "extreme", "steady"]))]
    event = st.tuples(st.integers(0, 3) | st.just(AFTER_ALL - 1), st.integers(0, 5) | st.just(MAX))
    cause = draw(st.sampled_from([st.just(TICK), event, st.just(TICK) | event]))
    places = sorted((clock, *draw(cause)) for clock in draw(st.lists(number, max_size=40)))
    watermarks = sorted(draw(st.lists(number, min_size=len(places), max_size=len(places))))
    if draw(st.booleans()):
        places.append((MAX, *TICK))
        watermarks.append(MAX)
    columns = [np.array([place[at] for place in places], np.int64) for at in range(3)]
    return Steps(columns[0], np.array(watermarks, np.int64), *columns[1:])


@given(steps=steps(), block_steps=BLOCK_STEPS, parts=st.integers(1, 3))
@example(at_clocks(*[200] * 12, 400, 601, 2**52), 1024, 1)
@example(at_clocks(*range(0, 4000, 200), 4003), 1024, 1)
@example(at_clocks(*(3 * 2**56 + 2**57 * step for step in range(-40, 20))), 1024, 1)
def test_blocks_unpack_to_what_was_packed(steps: Steps, block_steps: int, parts: int) -> None:
    packed = steps.packed(block_steps, parts)
    packed._check()
    for each in (packed, pickle.loads(pickle.dumps(packed))):
        assert len(each) == len(steps.clock_ms)
        assert bytes(each.buffer) == bytes(packed.buffer)
        blocks = [each.block(number) for number in range(each.n_blocks)]
        for at, column in enumerate((steps.clock_ms, steps.watermark_ms, steps.split, steps.position)):
            assert [value for block in blocks for value in block[at].tolist()] == column.tolist()
    assert packed.has_steps_of_events == bool((steps.split != AFTER_ALL).any())


@given(steps=steps(), block_steps=BLOCK_STEPS, data=st.data())
def test_steps_before_places_are_those_of_a_search_in_arrays(
    steps: Steps, block_steps: int, data: st.DataObject
) -> None:
    packed, all_places = steps.packed(block_steps), steps.places()
    near = [(clock + by, split, position) for clock, split, position in all_places for by in (-1, 0, 1)]
    place = st.tuples(st.integers(-(10**12), 10**12), st.sampled_from([0, 2, AFTER_ALL]), st.integers(0, 5))
    known = [each for each in near if MIN <= each[0] <= MAX]
    asked = data.draw(st.lists(place | st.sampled_from(known) if known else place, max_size=30))
    if data.draw(st.booleans()):
        asked.sort()
    arrivals, splits, positions = (np.array([each[at] for each in asked], np.int64) for at in range(3))
    expected = [sum(step < each for step in all_places) for each in asked]
    columns = arrivals, splits.astype(np.int32), positions
    assert packed.steps_before(*columns).tolist() == expected
    rows = np.array(data.draw(st.permutations(range(len(asked)))), np.uint32)
    assert packed.steps_before(*columns, rows).tolist() == expected
    some = rows[: len(rows) // 2]
    kept = [count if row in set(some.tolist()) else 0 for row, count in enumerate(expected)]
    assert packed.steps_before(*columns, some).tolist() == kept
    reader = StepReader(packed)
    assert [reader.steps_before(*each) for each in asked] == expected


@given(steps=steps(), block_steps=BLOCK_STEPS, data=st.data())
def test_watermarks_are_looked_up_and_searched_as_in_arrays(
    steps: Steps, block_steps: int, data: st.DataObject
) -> None:
    packed, n = steps.packed(block_steps), len(steps.clock_ms)
    after = [MIN, *steps.watermark_ms.tolist()]
    numbers = data.draw(st.lists(st.integers(0, n), max_size=30))
    assert packed.watermarks_after(np.array(numbers, np.int64)).tolist() == [after[each] for each in numbers]
    reader = StepReader(packed)
    assert [reader.watermark_after(each) for each in numbers] == [after[each] for each in numbers]
    at = [each for each in numbers if each < n]
    clocks = [int(steps.clock_ms[each]) for each in at]
    assert packed.clocks_at(np.array(at, np.int64)).tolist() == clocks
    assert [reader.clock(each) for each in at] == clocks

    near = [watermark + by for watermark in after for by in (-1, 0, 1) if MIN <= watermark + by <= MAX]
    asked = data.draw(st.lists(st.integers(MIN, MAX) | st.sampled_from(near), max_size=30))
    up_to = np.searchsorted(steps.watermark_ms, asked, side="right").tolist()
    order = np.argsort(np.array(asked, np.int64)).astype(np.uint32)
    assert packed.steps_up_to(np.array(asked, np.int64)).tolist() == up_to
    assert packed.steps_up_to(np.array(asked, np.int64), order).tolist() == up_to
    assert [reader.steps_below(each) for each in asked] == np.searchsorted(steps.watermark_ms, asked).tolist()
