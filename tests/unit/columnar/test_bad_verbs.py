"""Errors of verbs name what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flinkcore.common import WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.aggregates import count
from flinkcore.datastream.window import TumblingEventTimeWindows
from flinkcore.errors import FlinkcoreError

ROWS = pa.table({"id": [1, None], "ts": [1, 2]})
NO_WATERMARKS = r"event time: call assign_timestamps_and_watermarks"


def stream(has_watermarks: bool = True) -> Any:
    rows = StreamExecutionEnvironment.get_execution_environment().from_event_log(
        ROWS, timestamp="ts", integer_times=True
    )
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    return rows.assign_timestamps_and_watermarks(strategy) if has_watermarks else rows


def keyed(has_watermarks: bool = False) -> Any:
    return stream(has_watermarks).key_by("id")


def with_itself(join: str, *arguments: Any, **settings: Any) -> Any:
    rows = keyed()
    return getattr(rows, join)(rows.select("id", other=pc.field("ts")).key_by("id"), *arguments, **settings)


TENS = TumblingEventTimeWindows(10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stream().over(), r"over needs a keyed stream: call key_by\('column'\) right before it$"),
        (lambda: stream().join_regular(None), r"join_regular needs a keyed stream: call key_by"),
        (lambda: stream().top(1, "id"), r"top needs a keyed stream: .*, with window\(...\) in between"),
        (lambda: stream().aggregate(n=count()), r"aggregate needs a keyed stream: .*, with window\(...\)"),
        (lambda: stream().elements().over(3), "which KeyedLogStream has: elements"),
        (lambda: keyed().over().to_arrow(), r"call aggregate\(n=count\(\)\) after over\(...\) first"),
        (lambda: keyed().over().aggregate(count()), r"got count\(\) without a name: write aggregate\(n="),
        (lambda: keyed().aggregate(count()), r"got count\(\) without a name: write aggregate\(n="),
        (lambda: keyed().deduplicate().to_arrow(), f"^deduplicate needs {NO_WATERMARKS}"),
        (lambda: keyed().over().aggregate(n=count()).to_arrow(), f"^over needs {NO_WATERMARKS}"),
        (lambda: with_itself("join_window", TENS).to_arrow(), f"^join_window needs {NO_WATERMARKS}"),
        (lambda: with_itself("join_temporal").to_arrow(), f"^join_temporal needs {NO_WATERMARKS}"),
        (lambda: keyed().aggregate(n=count()).to_arrow(), r"take null .* by key_by\('id', null_keys=True\)"),
    ],
)
def test_a_call_that_is_not_possible_names_what_to_write(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(FlinkcoreError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: stream().key_by("id", null_keys=1), r"key_by\(null_keys=...\)"),
        (lambda: keyed().aggregate(n=count(), changes="yes"), r"aggregate\(changes=...\)"),
        (lambda: keyed().deduplicate("last", changes="no"), r"deduplicate\(changes=...\)"),
        (lambda: keyed().top(1, "ts", changes=None), r"top\(changes=...\)"),
        (lambda: keyed().top(1, "ts", descending=None), r"top\(descending=...\)"),
        (lambda: with_itself("join_regular", changes="no"), r"join_regular\(changes=...\)"),
        (lambda: with_itself("join_regular", nulls_equal=1), r"join_regular\(nulls_equal=...\)"),
        (lambda: with_itself("join_interval", 0, 1, nulls_equal=0), r"join_interval\(nulls_equal=...\)"),
        (lambda: with_itself("join_window", TENS, nulls_equal="no"), r"join_window\(nulls_equal=...\)"),
        (lambda: with_itself("join_temporal", nulls_equal=None), r"join_temporal\(nulls_equal=...\)"),
    ],
)
def test_a_switch_is_true_or_false(call: Callable[[], Any], argument: str) -> None:
    with pytest.raises(FlinkcoreError, match=f"{argument} is [Tt]rue or [Ff]alse, "):
        call()


def test_names_that_no_stream_has_are_not_of_frames() -> None:
    with pytest.raises(AttributeError, match="'OverLogStream' object has no attribute 'totally'"):
        keyed().over().totally()
