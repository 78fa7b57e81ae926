"""Memory that kernels report for the state that they hold."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from equipment.timelines import packed_steps

from flinkcore._native.aggregates import Accumulators
from flinkcore._native.arrow import RecordBatch
from flinkcore._native.count_windows import count_windows, sliced_count_windows
from flinkcore._native.key_dictionary import KeyDictionary
from flinkcore._native.key_lists import KeyLists
from flinkcore._native.key_timers import BatchCuts, KeyTimers
from flinkcore._native.keys import KeyEncoder
from flinkcore._native.session_windows import session_windows
from flinkcore._native.time_windows import sliced_windows, time_windows
from flinkcore._native.triggered_windows import triggered_windows
from flinkcore._native.window_operator import WindowOperator

HOUR = 3_600_000
KEYS = 20_000

KERNELS = {
    "time": lambda: time_windows(allowed_lateness=0, size=HOUR, slide=HOUR, offset=0),
    "sliced": lambda: sliced_windows(size=2 * HOUR, slide=HOUR, offset=0, allowed_lateness=0),
    "triggered": lambda: triggered_windows(
        allowed_lateness=0, trigger="continuous_event_time", every=1000, size=HOUR, slide=HOUR, offset=0
    ),
    "session": lambda: session_windows(gap=HOUR, allowed_lateness=0),
    "count": lambda: count_windows(size=3, slide=3, full_only=True),
    "sliced count": lambda: sliced_count_windows(size=4, slide=2, full_only=True),
}


@pytest.mark.parametrize("keys", ["integers", "texts"])
@pytest.mark.parametrize("kind", KERNELS)
def test_windows_take_memory_for_their_keys(kind: str, keys: str) -> None:
    numbers = np.arange(KEYS)
    values: Any = numbers if keys == "integers" else [f"a key of {n:010}" for n in numbers]
    batch = pa.record_batch({"user": values})
    encoder = KeyEncoder(batch.schema, ["user"])
    operator = WindowOperator(
        KERNELS[kind](),
        keys=KeyEncoder(batch.schema, ["user"]),
        accumulators=Accumulators(batch.schema, [("count", None, None, None)]),
        key_names=["user"],
        aggregate_names=["n"],
        timeline=packed_steps((), ()),
        row_limit=1 << 20,
        byte_limit=1 << 30,
    )
    before = operator.memory_bytes()
    encoder.encode_batch(batch)
    zeros = np.zeros(KEYS, np.int64)
    operator.process(RecordBatch(batch), encoder, None, zeros, zeros)
    least = 16 if keys == "integers" else 30
    assert least * KEYS < operator.memory_bytes() - before < 400 * KEYS


def test_keys_and_timers_of_batch_functions_take_memory() -> None:
    numbers = np.arange(KEYS)
    dictionary = KeyDictionary(pa.schema({"user": pa.int64()}), ["user"])
    event_time, processing_time, lists = KeyTimers(), KeyTimers(), KeyLists()
    cuts = BatchCuts(event_time, processing_time)
    before = [each.memory_bytes() for each in (dictionary, event_time, cuts, lists)]
    dictionary.ids(pa.record_batch({"user": numbers}))
    cuts.grow(KEYS)
    lists.grow(KEYS)
    event_time.register(numbers, numbers)
    event_time.register(numbers, numbers + 1)
    lists.add(numbers)
    after = [each.memory_bytes() for each in (dictionary, event_time, cuts, lists)]
    for less, more in zip(before, after, strict=True):
        assert 16 * KEYS < more - less < 400 * KEYS
