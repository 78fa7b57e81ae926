"""Rows of a join of changes expire when their time to live has passed since they were written."""

from typing import Any

import numpy as np
import pyarrow as pa

from flinkcore._native.changing_join import ChangingJoinKernel
from flinkcore._native.key_dictionary import KeyDictionary
from flinkcore.time_plane.timeline import Timeline

LATER = np.array([2**63 - 1], np.int64)
DELETE = 3
"""Flink's number of the kind -D."""

KEYS = pa.record_batch({"key": pa.array([0, 1], pa.int64())})


def join(ttl_ms: tuple[int, int], how: str = "inner") -> ChangingJoinKernel:
    keys = KeyDictionary(KEYS, ["key"])
    keys.ids(KEYS)
    return ChangingJoinKernel(
        keys,
        Timeline.of(LATER, LATER).steps,
        how=how,
        has_condition=False,
        has_kinds=True,
        replaces=(False, False),
        steps_done=0,
        result_limit=1 << 16,
        ttl_ms=ttl_ms,
    )


def process(
    kernel: ChangingJoinKernel, *events: tuple[int, int, int, int], kinds: list[int] | None = None
) -> list[Any]:
    """Take in events of arrival, side, number of the row and content, and return the pairs and lone rows."""
    arrivals, sides, rows, contents = map(np.array, zip(*events, strict=True))
    n, results, taken = len(events), [], 0
    words = np.stack((contents, contents), axis=1).astype(np.uint64)
    columns: list[Any] = [np.zeros(n, np.uint32), np.zeros(n, np.int32), sides.astype(np.int8), rows]
    of_kinds = None if kinds is None else np.array(kinds, np.uint8)
    columns += [np.zeros(n, np.int64), np.zeros(n, np.int64), None, of_kinds, words, arrivals]
    while taken < n:
        taken = kernel.process(*columns, first=taken)
        found = kernel.take()
        results += zip(found.left.tolist(), found.right.tolist(), strict=True)
        kernel._check()
    return results


def test_a_row_of_a_large_key_is_looked_at_when_it_expires_and_not_at_each_event() -> None:
    n = 3_000
    kernel = join((n // 2, n // 2))
    process(kernel, *((time, 0, time, time) for time in range(n)))
    assert kernel.live_count == n // 2
    assert kernel.expiry_checks == n // 2


def test_a_row_that_is_written_again_is_looked_at_once_in_its_time_to_live() -> None:
    # A match writes the row of an outer side.
    n, ttl_ms = 1_000, 100
    kernel = join((ttl_ms, 1), "left")
    results = process(kernel, (0, 0, 0, 0), *((time, 1, time, time) for time in range(1, n)))
    assert results.count((0, -1)) == 2  # it comes, and is withdrawn for its first match
    assert len(results) == n + 1
    # The second look is after results that wait have been taken, with which it is written.
    assert kernel.expiry_checks <= n + 2 * n // ttl_ms


def test_equal_rows_expire_together_after_the_last_was_written() -> None:
    kernel = join((10, 0))
    assert process(kernel, (0, 0, 0, 7), (6, 0, 1, 7), (15, 1, 0, 1)) == [(0, 0), (1, 0)]
    assert process(kernel, (16, 1, 1, 2)) == []
    assert kernel.live_count == 2  # the right rows, which do not expire


def restored(before: ChangingJoinKernel, kernel: ChangingJoinKernel) -> ChangingJoinKernel:
    for name, table in before.snapshot().items():
        rows = {each: table[each] for each in ("row", "right_row") if each in table}
        others = {each: values for each, values in table.items() if each not in ("key", *rows)}
        kernel.restore(name, np.ascontiguousarray(table["key"]), rows, pa.record_batch(others))
    return kernel


def test_a_row_that_is_withdrawn_once_it_has_expired_leaves_another_with_fewer_matches_than_none() -> None:
    before = join((10, 1), "left")
    process(before, (0, 1, 0, 0), (5, 0, 0, 0))
    assert process(before, (6, 1, 1, 0), kinds=[DELETE]) == [(0, 1)]
    assert before.snapshot()["left"]["matches"].tolist() == [-1]
    after = restored(before, join((10, 1), "left"))
    assert process(after, (7, 1, 2, 0)) == [(0, 2)]  # without the padded row, as if it had matches
    assert after.snapshot()["left"]["matches"].tolist() == [0]


def test_rows_expire_after_a_restore_by_the_time_at_which_they_were_written() -> None:
    before = join((10, 10))
    process(before, (0, 0, 0, 0), (5, 0, 1, 1))
    kernel = restored(before, join((10, 10)))
    assert process(kernel, (10, 1, 0, 0)) == [(1, 0)]
    kernel.forget_expired(15)
    assert kernel.live_rows(0).tolist() == []
    assert kernel.live_rows(1).tolist() == [0]
