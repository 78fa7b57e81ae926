"""Windows with a key or some hundreds, opened, filled and closed by turns, against a dictionary of sums."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from equipment.example_counts import examples
from equipment.timelines import steps_with_watermarks
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore._native.aggregates import Accumulators
from flinkcore._native.arrow import RecordBatch
from flinkcore._native.keys import KeyEncoder
from flinkcore._native.time_windows import sliced_windows, time_windows
from flinkcore._native.triggered_windows import triggered_windows
from flinkcore._native.window_operator import WindowKernel, WindowOperator
from flinkcore.columnar.stages.window_state import restore_windows, windows_to_table
from flinkcore.datastream.graph.key_columns import KeyColumns

SPECS = [("count", None, None), ("sum", "v", None), ("max", "v", None)]
SLIDE = 10
KERNELS = ("tumbling", "sliding", "sliced", "cumulate", "count", "continuous", "withdrawn")
ROUNDS = st.lists(
    st.tuples(
        st.integers(1, 4),  # windows from the earliest open one on
        st.one_of(st.integers(1, 12), st.integers(200, 300)),  # keys
        st.integers(0, 3),  # windows by which the watermark rises afterwards
    ),
    min_size=1,
    max_size=6,
)


def kernel_of(name: str) -> WindowKernel:
    if name == "tumbling":
        return time_windows(size=SLIDE, slide=SLIDE, allowed_lateness=0)
    if name == "sliding":
        return time_windows(size=3 * SLIDE, slide=SLIDE, allowed_lateness=0)
    if name in ("sliced", "cumulate"):
        cumulative = name == "cumulate"
        return sliced_windows(
            size=3 * SLIDE, slide=SLIDE, offset=0, allowed_lateness=0, cumulative=cumulative
        )
    every = {"count": 1 << 40, "continuous": SLIDE, "withdrawn": 4}[name]
    trigger = ("count" if name == "count" else "continuous_event_time", every)
    return triggered_windows(
        size=SLIDE, slide=SLIDE, allowed_lateness=0, trigger=trigger[0], every=trigger[1]
    )


def windows_of(name: str, timestamp: int) -> list[tuple[int, int]]:
    start = timestamp - timestamp % SLIDE
    if name in ("sliding", "sliced"):
        return [(start - before * SLIDE, start - before * SLIDE + 3 * SLIDE) for before in range(3)]
    if name == "cumulate":
        first = timestamp - timestamp % (3 * SLIDE)
        return [(first, end) for end in range(first + SLIDE, first + 4 * SLIDE, SLIDE) if timestamp < end]
    return [(start, start + SLIDE)]


class Job:
    """An operator, which may be restored from its own checkpoint, and the sums that it must give."""

    def __init__(self, name: str, kind: str, watermarks: list[int], row_limit: int) -> None:
        self.name, self.kind, self.row_limit = name, kind, row_limit
        self.watermarks = watermarks
        self.schema = pa.schema([("key", pa.string() if kind == "string" else pa.int64()), ("v", pa.int64())])
        self.encoder = KeyEncoder(self.schema, ["key"])
        self.expected: dict[tuple[Any, ...], tuple[int, int, int]] = {}
        self.found: dict[tuple[Any, ...], tuple[int, int, int]] = {}
        self.begin(0)

    def begin(self, steps_done: int) -> None:
        self.accumulators = Accumulators(self.schema, SPECS)
        self.operator = WindowOperator(
            kernel_of(self.name),
            keys=KeyEncoder(self.schema, ["key"]),
            accumulators=self.accumulators,
            key_names=["key"],
            aggregate_names=["n", "total", "top"],
            timeline=steps_with_watermarks(self.watermarks),
            row_limit=self.row_limit,
            byte_limit=1 << 30,
            retracting=self.name == "withdrawn",
            steps_done=steps_done,
        )

    def add(self, keys: list[int], timestamps: list[int], steps: int) -> None:
        names: list[Any] = (
            [f"{key % 3}" * (key % 40) + f"-{key}" for key in keys] if self.kind == "string" else keys
        )
        batch = RecordBatch(
            pa.record_batch([pa.array(names), pa.array(keys, pa.int64())], schema=self.schema)
        )
        self.encoder.encode_batch(batch)
        times, before = np.array(timestamps, np.int64), np.full(len(keys), steps, np.int64)
        taken = 0
        while taken < len(keys):
            taken = self.operator.process(batch, self.encoder, None, times, before, taken)
            self.take()
        for name, key, timestamp in zip(names, keys, timestamps, strict=True):
            for bounds in windows_of(self.name, timestamp):
                n, total, top = self.expected.get((name, *bounds), (0, 0, key))
                self.expected[(name, *bounds)] = (n + 1, total + key, max(top, key))
        self.operator._check()
        self.accumulators._check()

    def take(self) -> None:
        for row in pa.record_batch(self.operator.take()).to_pylist():
            at = (row["key"], row["window_start"], row["window_end"])
            kind = row.get("row_kind", "+I")
            values = (row["n"], row["total"], row["top"])
            if kind == "-U":
                assert self.found.pop(at) == values
            else:
                assert at not in self.found
                self.found[at] = values

    def advance(self, steps: int) -> None:
        while not self.operator.advance(steps):
            self.take()
        self.take()
        self.operator._check()

    def restore(self, steps: int) -> None:
        table = windows_to_table(self.operator, self.accumulators, ["key"], 8)
        self.begin(steps)
        restore_windows(self.operator, self.accumulators, KeyColumns(("key",)), table)
        self.operator._check()

    def finish(self) -> None:
        while not self.operator.finish():
            self.take()
        self.take()
        self.operator._check()


@pytest.mark.parametrize("kind", ["int64", "string"])
@pytest.mark.parametrize("name", KERNELS)
@settings(deadline=None, max_examples=examples(20))
@given(
    rounds=ROUNDS,
    seed=st.integers(0, 1 << 30),
    row_limit=st.sampled_from([1, 100, 1 << 30]),
    restored=st.sets(st.integers(0, 5)),
)
def test_windows_of_any_number_of_keys_add_up_what_comes_and_give_back_what_they_held(
    name: str,
    kind: str,
    rounds: list[tuple[int, int, int]],
    seed: int,
    row_limit: int,
    restored: set[int],
) -> None:
    generator = np.random.default_rng(seed)
    earliest = np.cumsum([0, *(rise for _, _, rise in rounds)])
    watermarks = [int(each) * SLIDE - 1 for each in earliest[1:]]
    job = Job(name, kind, [*watermarks, 2**63 - 1], row_limit)
    for number, (n_windows, n_keys, _) in enumerate(rounds):
        n = n_keys * n_windows * 2 if n_keys < 20 else n_keys * n_windows
        keys = generator.integers(0, n_keys, n)
        timestamps = (earliest[number] + generator.integers(0, n_windows, n)) * SLIDE + generator.integers(
            0, SLIDE, n
        )
        job.add(keys.tolist(), timestamps.tolist(), number)
        job.advance(number + 1)
        if number in restored:
            job.restore(number + 1)
    job.finish()
    if name == "count":  # nothing has fired
        assert job.found == {}
    else:
        assert job.found == job.expected
