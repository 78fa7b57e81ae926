"""What the native window operator refuses."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from equipment.timelines import packed_steps, steps_with_watermarks

from flinkcore._native.aggregates import Accumulators
from flinkcore._native.arrow import RecordBatch
from flinkcore._native.keys import KeyEncoder
from flinkcore._native.session_windows import session_windows
from flinkcore._native.time_windows import sliced_windows, time_windows
from flinkcore._native.window_operator import WindowKernel, WindowOperator
from flinkcore.errors import ConfigurationError, DataError, SchemaError

SCHEMA = pa.schema([("key", pa.int64())])


def tumbling(size: int = 10, offset: int = 0) -> WindowKernel:
    return time_windows(size=size, slide=size, offset=offset, allowed_lateness=0)


def operator(kernel: WindowKernel, **settings: Any) -> WindowOperator:
    return WindowOperator(
        kernel,
        **{
            "keys": KeyEncoder(SCHEMA, ["key"]),
            "accumulators": Accumulators(SCHEMA, [("count", None, None)]),
            "key_names": ["key"],
            "aggregate_names": ["n"],
            "timeline": packed_steps([], []),
            "row_limit": 100,
            "byte_limit": 100,
            **settings,
        },
    )


def process(window_operator: WindowOperator, timestamps: list[int], first: int = 0) -> int:
    batch = pa.record_batch([pa.array([7] * len(timestamps), pa.int64())], schema=SCHEMA)
    native = RecordBatch(batch)
    keys = KeyEncoder(SCHEMA, ["key"])
    keys.encode_batch(native)
    times = np.array(timestamps, dtype=np.int64)
    return window_operator.process(native, keys, None, times, np.zeros_like(times), first)


def test_a_kernel_serves_one_operator() -> None:
    kernel = tumbling()
    operator(kernel)
    with pytest.raises(ValueError, match="kernel of its own"):
        operator(kernel)
    with pytest.raises(ValueError, match="made by time_windows"):
        operator(WindowKernel())


@pytest.mark.parametrize("kind", ["time", "session"])
@pytest.mark.parametrize(
    ("own", "other"),
    [
        ({"key": pa.string()}, {"key": pa.int64()}),
        ({"key": pa.int64()}, {"key": pa.string()}),
        ({"key": pa.int64(), "more": pa.string()}, {"key": pa.string()}),
        ({"key": pa.timestamp("ms")}, {"key": pa.timestamp("us")}),
        ({"key": pa.int64()}, {"key": pa.int64(), "more": pa.int64()}),
        (
            {"key": pa.struct([("a", pa.int64())]), "more": pa.int64()},
            {"key": pa.struct([("a", pa.int64()), ("b", pa.int64())])},
        ),
    ],
)
def test_keys_of_other_types_than_the_operators_are_refused(
    kind: str, own: dict[str, pa.DataType], other: dict[str, pa.DataType]
) -> None:
    kernel = tumbling() if kind == "time" else session_windows(gap=10, allowed_lateness=0)
    window_operator = operator(kernel, keys=KeyEncoder(pa.schema(own), list(own)), key_names=list(own))
    batch = RecordBatch(pa.record_batch({name: pa.array([None] * 3, type) for name, type in other.items()}))
    keys = KeyEncoder(pa.schema(other), list(other))
    keys.encode_batch(batch)
    times = np.zeros(3, np.int64)
    with pytest.raises(SchemaError, match="encode them with an encoder of the operator's schema"):
        window_operator.process(batch, keys, None, times, times)
    assert window_operator.counts()["events"] == 0


def test_accumulators_serve_one_operator_and_come_empty() -> None:
    accumulators = Accumulators(SCHEMA, [("count", None, None)])
    operator(tumbling(), accumulators=accumulators)
    with pytest.raises(ValueError, match="accumulators of its own"):
        operator(tumbling(), accumulators=accumulators)
    used = Accumulators(SCHEMA, [("count", None, None)])
    used.reserve(1)
    with pytest.raises(ValueError, match="which hold nothing yet"):
        operator(tumbling(), accumulators=used)


@pytest.mark.parametrize("limits", [{"row_limit": 0}, {"byte_limit": 0}, {"byte_limit": 2**30 + 1}])
def test_limits_are_positive_and_leave_room_for_one_more_result(limits: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError, match="both must be positive"):
        operator(tumbling(), **limits)


def test_steps_at_which_the_operator_gets_no_watermark_are_counted() -> None:
    window_operator = operator(tumbling(), timeline=steps_with_watermarks([3, 9, 20], [1, 3, 5]))
    process(window_operator, [1, 2])
    fired = []
    for done in range(7):
        window_operator.advance(done)
        fired.append(window_operator.rows_ready)
    assert fired == [0, 0, 0, 0, 1, 1, 1]
    assert window_operator.current_watermark == 20


@pytest.mark.parametrize(
    "kernel",
    [
        tumbling(1000, 999),
        sliced_windows(size=1000, slide=1000, offset=999, allowed_lateness=0),
        session_windows(gap=1000, allowed_lateness=2**63 - 1),
    ],
    ids=["time", "sliced", "session"],
)
def test_timestamps_at_the_ends_of_the_range_have_windows_and_those_beyond_are_refused(
    kernel: WindowKernel,
) -> None:
    lowest, highest = kernel.lowest_timestamp, kernel.highest_timestamp
    window_operator = operator(kernel)
    for beyond in {lowest - 1, highest + 1} - {-(2**63) - 1}:
        with pytest.raises(DataError, match=rf"row 1: the window of timestamp {beyond} ms would overflow"):
            process(window_operator, [lowest, beyond])
    assert window_operator.counts()["events"] == 0
    assert process(window_operator, [lowest, highest, lowest]) == 3
    assert window_operator.live_windows == 2
    window_operator._check()


def test_rows_go_on_from_a_row_that_there_is() -> None:
    window_operator = operator(tumbling())
    assert process(window_operator, [1, 2, 3], 1) == 3
    assert process(window_operator, [1, 2, 3], 3) == 3
    assert window_operator.counts()["events"] == 2
    with pytest.raises(IndexError, match="row number 4 of 3"):
        process(window_operator, [1, 2, 3], 4)
