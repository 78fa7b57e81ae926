"""Texts of errors, and the facts that they carry."""

import pickle
from typing import Any

import pyarrow as pa
import pytest

from flinkcore.common import WatermarkStrategy
from flinkcore.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from flinkcore.errors import InternalError, UserCodeError, in_words


class Untold(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class Fail(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        raise Untold


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyError("a"), "KeyError: 'a'"),
        (KeyError(), "KeyError"),
        (Untold(), "Untold (whose text cannot be told: its __str__ raises ValueError)"),
    ],
)
def test_an_exception_is_told_by_its_type_and_text(error: Exception, words: str) -> None:
    assert in_words(error) == words


def test_a_function_that_raises_what_has_no_text_is_named() -> None:
    env = StreamExecutionEnvironment().set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    log = env.from_event_log(pa.table({"key": [1], "ts": [1]}), timestamp="ts", arrival="ts")
    stream = (
        log.assign_timestamps_and_watermarks(strategy)
        .key_by("key")
        .process(Fail(), pa.schema({"n": pa.int64()}))
    )
    with pytest.raises(
        UserCodeError, match=r"Fail\.process_element failed at the element .*: Untold \(whose"
    ):
        stream.to_arrow()


def test_a_lambda_that_raises_what_has_no_text_is_named() -> None:
    def fail(value: int) -> int:
        raise Untold

    with pytest.raises(UserCodeError, match=r"fail\.map failed at the element 1 .*: Untold \(whose"):
        list(StreamExecutionEnvironment().from_collection([1]).map(fail).execute_and_collect())


def test_a_defect_of_flinkcore_asks_for_a_report_once_however_far_it_travels() -> None:
    travelled = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(InternalError("2 of 3 events came")))))
    assert isinstance(travelled, InternalError)
    assert str(travelled).startswith("2 of 3 events came. This is a defect of flinkcore, ")
    assert str(travelled).count("please report this text") == 1
