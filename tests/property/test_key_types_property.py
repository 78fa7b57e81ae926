"""Keys of every type: jobs that are cut and resumed, and the same keys as rows and as columns."""

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from equipment.memory_disk import MEMORY
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jobs.keyed_logs import (
    JOBS,
    KEYS,
    Row,
    batches_of_function,
    results_of,
    rows_of_function,
    table_of,
    windows_of_function,
    windows_over_columns,
)

KINDS = st.one_of(
    st.sampled_from(sorted(KEYS)).map(lambda kind: [kind]),
    st.lists(st.sampled_from(sorted(KEYS)), min_size=2, max_size=3),
)
ROWS = st.lists(st.tuples(st.tuples(*[st.integers(0, 11)] * 3), st.integers(0, 60)), min_size=1, max_size=30)


def all_values(kind: str) -> list[Row]:
    return [((value, 0, 0), 0) for value in [*range(len(KEYS[kind])), *range(len(KEYS[kind]))]]


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.__name__)
@settings(deadline=None, max_examples=5)
@given(
    kinds=KINDS,
    rows=ROWS,
    cuts=st.lists(st.integers(0, 30), min_size=1, max_size=2),
    parallelism=st.permutations([1, 2, 5]),
)
@example(["double"], all_values("double"), [9], [1, 2, 5])
@example(["float", "int"], all_values("float"), [9], [2, 1, 5])
@example(["nested"], all_values("nested"), [5], [1, 2, 5])
@example(["timestamp_ns_None"], all_values("timestamp_ns_None"), [5], [1, 2, 5])
@example(["uint64"], all_values("uint64"), [5], [1, 2, 5])
def test_a_job_goes_on_with_its_keys(
    job: Any, kinds: list[str], rows: list[Row], cuts: list[int], parallelism: list[int]
) -> None:
    whole = results_of(job, kinds, table_of(kinds, rows, 0), parallelism[-1])
    bounds = [0, *sorted(cut % (len(rows) + 1) for cut in cuts), len(rows)]
    parts = whole.__class__()
    with TemporaryDirectory(dir=MEMORY) as folder:
        for number, (start, stop) in enumerate(pairwise(bounds)):
            checkpoints: dict[str, Any] = {}
            if number > 0:
                checkpoints["restore_from"] = Path(folder, str(number - 1))
            if number < len(cuts):
                checkpoints["stop_with_checkpoint"] = Path(folder, str(number))
            table = table_of(kinds, rows[start:stop], start)
            parts += results_of(job, kinds, table, parallelism[number], **checkpoints)
    assert parts == whole


@settings(deadline=None, max_examples=12)
@given(kinds=KINDS, rows=ROWS, parallelism=st.sampled_from([1, 3]))
def test_rows_and_columns_have_the_same_keys(kinds: list[str], rows: list[Row], parallelism: int) -> None:
    table = table_of(kinds, rows, 0)
    for as_rows, as_columns in (
        (rows_of_function, batches_of_function),
        (windows_of_function, windows_over_columns),
    ):
        assert results_of(as_rows, kinds, table, parallelism) == results_of(
            as_columns, kinds, table, parallelism
        )


@pytest.mark.parametrize("kind", sorted(KEYS))
def test_a_row_function_and_a_batch_function_have_the_keys_of_a_type(kind: str) -> None:
    table = table_of([kind], all_values(kind), 0)
    found = results_of(rows_of_function, [kind], table, 2)
    assert found == results_of(batches_of_function, [kind], table, 2)
    assert {value[0] for _, value in found if value[0] > 0} >= {2}
