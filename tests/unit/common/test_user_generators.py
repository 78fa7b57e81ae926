"""Assigners and generators that users write: what happens where they raise or give nonsense."""

import numpy as np
import pytest
from equipment.recorders import WatermarkOutputRecorder

from flinkcore.common import (
    MAX_TIMESTAMP,
    TimestampAssigner,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from flinkcore.errors import ConfigurationError, DataError, UserCodeError


class Scripted(WatermarkGenerator[object]):
    """Emits each event; raises, or returns instead of emitting, what is an exception."""

    periodic: object = None

    def on_event(self, event: object, event_timestamp: int, output: WatermarkOutput) -> None:
        if isinstance(event, Exception):
            raise event
        output.emit_watermark(event)  # type: ignore[arg-type]

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        if isinstance(self.periodic, Exception):
            raise self.periodic
        output.mark_idle()
        output.mark_active()


class Given(TimestampAssigner):
    """Gives the element; raises it if it is an exception."""

    def extract_timestamp(self, value: object, record_timestamp: int) -> int:
        if isinstance(value, Exception):
            raise value
        return value  # type: ignore[return-value]


def generator_of(supplier: object, split: str | None = "clicks-7") -> WatermarkGenerator[object]:
    strategy = WatermarkStrategy.for_generator(supplier)  # type: ignore[arg-type]
    return strategy.create_watermark_generator(lambda: 0, split)


def assigner(split: str | None = "clicks-7") -> TimestampAssigner:
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(Given())
    return strategy.create_timestamp_assigner(lambda: 0, split)


def test_an_error_of_a_generator_names_split_and_timestamp_and_keeps_its_cause() -> None:
    cause = KeyError("user")
    with pytest.raises(
        UserCodeError,
        match=r"^Scripted.on_event of split 'clicks-7' failed at the event with timestamp 42: KeyError",
    ) as raised:
        generator_of(Scripted).on_event(cause, 42, WatermarkOutputRecorder())
    assert raised.value.__cause__ is cause


def test_an_error_of_a_periodic_call_names_the_split() -> None:
    generator = Scripted()
    generator.periodic = ValueError("no")
    with pytest.raises(UserCodeError, match="on_periodic_emit of split 'clicks-7' failed: ValueError: no"):
        generator_of(lambda: generator).on_periodic_emit(WatermarkOutputRecorder())


def test_without_splits_none_is_named() -> None:
    with pytest.raises(UserCodeError, match=r"^Scripted.on_event failed at the event with timestamp 1"):
        generator_of(Scripted, None).on_event(ValueError(), 1, WatermarkOutputRecorder())


def put_out_everything(generator: WatermarkGenerator[object], output: WatermarkOutput) -> None:
    generator.on_event(Watermark(5), 5, output)
    generator.on_periodic_emit(output)


@pytest.mark.parametrize("call", [["watermark", 5], ["status", "idle"], ["status", "active"]])
def test_an_error_of_what_receives_the_watermark_is_not_blamed_on_the_generator(call: list[object]) -> None:
    failure = DataError("downstream")

    class Failing(WatermarkOutputRecorder):
        def add(self, kind: str, **fields: object) -> None:
            if [kind, *fields.values()] == call:
                raise failure

    generator = generator_of(Scripted)
    with pytest.raises(DataError) as raised:
        put_out_everything(generator, Failing())
    assert raised.value is failure


@pytest.mark.parametrize(
    "watermark",
    [None, 5, Watermark(2**63), Watermark(-(2**63) - 1), Watermark(0.5), Watermark(True)],  # type: ignore[arg-type]
)
def test_what_is_no_watermark_is_refused(watermark: object) -> None:
    output = WatermarkOutputRecorder()
    with pytest.raises(
        UserCodeError, match=r"^Scripted of split 'clicks-7' emitted .*: a watermark is a Watermark"
    ):
        generator_of(Scripted).on_event(watermark, 0, output)
    assert output.take() == []


def test_a_watermark_of_a_numpy_integer_becomes_one_of_an_int() -> None:
    output = WatermarkOutputRecorder()
    generator_of(Scripted).on_event(Watermark(np.int64(5)), 0, output)  # type: ignore[arg-type]
    ((_, timestamp),) = output.take()
    assert (timestamp, type(timestamp)) == (5, int)


def test_calls_go_to_the_output_of_the_call() -> None:
    generator = generator_of(Scripted)
    first, second = WatermarkOutputRecorder(), WatermarkOutputRecorder()
    generator.on_event(Watermark(1), 1, first)
    generator.on_event(Watermark(2), 2, second)
    generator.on_periodic_emit(first)
    assert first.take() == [("watermark", 1), ("status", "idle"), ("status", "active")]
    assert second.take() == [("watermark", 2)]


def test_each_split_gets_a_generator_of_its_own() -> None:
    made: list[Scripted] = []

    def supplier() -> Scripted:
        made.append(Scripted())
        return made[-1]

    strategy = WatermarkStrategy.for_generator(supplier)
    assert made == []
    for split in ("a", "b"):
        strategy.create_watermark_generator(lambda: 0, split)
    assert len(made) == 2


def test_a_supplier_that_fails_or_makes_something_else_is_named() -> None:
    def broken() -> Scripted:
        raise OSError("gone")

    with pytest.raises(
        UserCodeError, match=r"broken made no watermark generator for split 'clicks-7': OSError: gone"
    ):
        generator_of(broken)
    with pytest.raises(UserCodeError, match=r"TypeError: .*for_generator takes is called without arguments"):
        generator_of(lambda context: Scripted())
    with pytest.raises(
        ConfigurationError, match=r"dict made {} for split 'clicks-7': for_generator takes what makes"
    ):
        generator_of(dict)
    with pytest.raises(ConfigurationError, match="since each split needs one of its own"):
        generator_of(Scripted())


def test_an_error_of_an_assigner_names_the_element_and_keeps_its_cause() -> None:
    cause = ValueError("no time in it")
    with pytest.raises(
        UserCodeError,
        match=r"^Given.extract_timestamp of split 'clicks-7' failed at the element ValueError\('no time in it'\) "
        r"\(record timestamp 7\): ValueError: no time in it",
    ) as raised:
        assigner().extract_timestamp(cause, 7)
    assert raised.value.__cause__ is cause


@pytest.mark.parametrize("timestamp", [None, 1.5, "5", True, 2**63, -(2**63) - 1, np.float64(5)])
def test_what_is_no_timestamp_is_refused(timestamp: object) -> None:
    with pytest.raises(DataError, match=r"of split 'clicks-7' gave .*: an event time is an int of 64 bits"):
        assigner().extract_timestamp(timestamp, 7)


@pytest.mark.parametrize("timestamp", [-(2**63), MAX_TIMESTAMP, np.int32(5)])
def test_any_integer_of_64_bits_is_a_timestamp(timestamp: int) -> None:
    extracted = assigner(None).extract_timestamp(timestamp, 7)
    assert (extracted, type(extracted)) == (timestamp, int)
