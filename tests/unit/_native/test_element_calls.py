"""The native calls that each element of a job goes through."""

import copy
import pickle
from typing import Any

import pytest
from jobs.timed_elements import ValueIsTime

from flinkcore._native.element_calls import (
    ArrivalClock,
    CallContext,
    ConversionUnless,
    CurrentKeyValues,
    ExtractedTimestamps,
    FilterCall,
    KeyedCall,
    LargestTimestamp,
    MapCall,
    OpenPaneCall,
    ReduceCall,
    ResultCollector,
    StreamRecord,
    TimestampCall,
    emit_elements,
)
from flinkcore.common import Duration, OutputTag
from flinkcore.common.timestamp_assigner import CheckedTimestampAssigner
from flinkcore.common.watermark_generators import BoundedOutOfOrdernessWatermarks
from flinkcore.errors import LifecycleError, UserCodeError
from flinkcore.operators.keys.key_context import KeyContext

Record = StreamRecord[Any]


def key_context() -> KeyContext:
    return KeyContext(1, key_group_of=lambda key: 0)


def unexpected(*arguments: Any) -> Exception:
    raise AssertionError(arguments)


def failed(*arguments: Any) -> Exception:
    return LookupError(*arguments[:-1])


class Values(CurrentKeyValues):
    """Values in a list, which notes what has no room."""

    def __init__(self, key_context: KeyContext) -> None:
        self.beyond: list[tuple[int, Any]] = []
        self.cleared = 0

    def no_current_key(self) -> Exception:
        return LifecycleError("no key")

    def make_room(self, key_id: int, value: Any) -> None:
        self.beyond.append((key_id, value))

    def clear(self) -> None:
        self.cleared += 1


# ---- records and contexts ----


def test_records_are_compared_shown_and_sent_by_value_and_timestamp() -> None:
    record = StreamRecord("a", 3)
    assert record == StreamRecord("a", 3)
    assert record not in (StreamRecord("a"), StreamRecord("b", 3), ("a", 3))
    assert repr(record) == "StreamRecord(value='a', timestamp=3)"
    assert pickle.loads(pickle.dumps(record)) == copy.copy(record) == copy.deepcopy(record) == record
    match record:
        case StreamRecord(value, timestamp):
            assert (value, timestamp) == ("a", 3)


def test_records_change_and_so_have_no_hash() -> None:
    record = StreamRecord(value="a")
    record.value, record.timestamp = "b", 5
    assert record == StreamRecord("b", timestamp=5)
    with pytest.raises(TypeError, match="unhashable"):
        hash(record)


def test_a_context_has_the_time_of_its_subject_during_the_call_only() -> None:
    context = CallContext("timers")
    assert context.timer_service() == "timers"
    with pytest.raises(LifecycleError, match=r"timestamp\(\) is asked of a context outside"):
        context.timestamp()
    context.subject = StreamRecord("a")
    assert context.timestamp() == -(2**63)


# ---- times ----


class Timestamps(ExtractedTimestamps):
    def failed(self, value: Any, record_timestamp: int, failure: Exception) -> Exception:
        return failure if isinstance(failure, KeyError) else LookupError(value, record_timestamp)

    def converted(self, timestamp: Any, value: Any, record_timestamp: int) -> int:
        return -1


def test_timestamps_are_ints_of_64_bits_or_are_converted() -> None:
    extracted = Timestamps(lambda value, before: value)
    for value in (0, 2**63 - 1, -(2**63)):
        assert extracted.extract_timestamp(value, 7) == value
    for value in (2**63, True, 1.0, None):
        assert extracted.extract_timestamp(value, 7) == -1


def test_errors_of_assigners_are_told_but_for_those_that_say_it_themselves() -> None:
    failure: Exception = ValueError("broken")

    def extract(value: Any, before: int) -> int:
        raise failure

    extracted = Timestamps(extract)
    with pytest.raises(LookupError) as caught:
        extracted.extract_timestamp("a", 7)
    assert caught.value.args == ("a", 7)
    assert caught.value.__cause__ is failure
    failure = KeyError("its own")
    with pytest.raises(KeyError) as told:
        extracted.extract_timestamp("a", 7)
    assert told.value.__cause__ is None


def test_the_largest_timestamp_does_not_go_back() -> None:
    largest = LargestTimestamp()
    largest._max_timestamp = -(2**63)
    for timestamp, expected in ((5, 5), (3, 5), (9, 9)):
        largest.on_event(None, timestamp, None)
        assert largest._max_timestamp == expected


def test_generators_and_assigners_are_copied_and_pickled_with_all_that_they_hold() -> None:
    generator = BoundedOutOfOrdernessWatermarks(Duration.of_millis(5))
    generator.on_event(None, 100, None)
    generator.note = "kept"  # type: ignore[attr-defined]
    assigner = CheckedTimestampAssigner(ValueIsTime(), "a")
    for copied in (copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))):
        other = copied(generator)
        assert (type(other), other.snapshot_state(), other.note) == (type(generator), 100, "kept")
        other.on_event(None, 200, None)
        assert (other.snapshot_state(), generator.snapshot_state()) == (200, 100)
        assert copied(assigner).extract_timestamp(7, 0) == 7
        with pytest.raises(UserCodeError, match=r"ValueIsTime.extract_timestamp of split 'a'"):
            copied(assigner).extract_timestamp("x", 0)


class Forgetful(BoundedOutOfOrdernessWatermarks):
    def __init__(self) -> None:
        pass


def test_a_generator_that_does_not_initialise_its_base_fails() -> None:
    for forgetful in (Forgetful(), copy.copy(Forgetful())):
        with pytest.raises(AttributeError, match=r"_max_timestamp .*Forgetful.*super\(\).__init__"):
            forgetful.on_event(None, 5, None)
        with pytest.raises(AttributeError, match=r"super\(\).__init__"):
            forgetful.snapshot_state()


# ---- state ----


def test_values_of_keys_are_in_a_list_or_a_mapping() -> None:
    keys = key_context()
    values = Values(keys)
    keys.set_current_key("a")
    for held in ([1], {0: 1}):
        values.select_values(held)
        assert values.get_internal() == 1
        values.update_internal(2)
        assert held[0] == 2
    values.select_values([1])
    keys.set_current_key("b")
    assert values.get_internal() is None
    values.update_internal(3)
    assert values.beyond == [(1, 3)]


def test_values_need_a_current_key() -> None:
    values = Values(key_context())
    for call in (values.get_internal, lambda: values.update_internal(1), lambda: values.replace(1)):
        with pytest.raises(LifecycleError, match="no key"):
            call()


def test_a_value_is_replaced_if_it_is_accepted_and_removed_by_none() -> None:
    keys = key_context()
    values, refused = Values(keys), list[Any]()
    values.select_values([0])
    keys.set_current_key("a")
    values.accepts, values.refuse = lambda value: value < 5, refused.append
    values.replace(4)
    assert (values.get_internal(), refused) == (4, [])
    values.replace(6)
    assert refused == [6]
    values.replace(None)
    assert values.cleared == 1


# ---- results ----


class Full(BaseException):
    pass


class Collected(ResultCollector):
    def failed(self, method: str, subject: Any, failure: Exception) -> Exception:
        return LookupError(f"{method}: {failure}")

    def refuse_other_than_iterable(self, results: Any, method: str, subject: Any) -> None:
        if isinstance(results, str):
            raise LookupError("a text")


def test_results_go_to_the_main_output_and_to_side_outputs() -> None:
    main: list[Record] = []
    sides: list[tuple[OutputTag, Record]] = []
    late = OutputTag("late")
    results = Collected(main.append, lambda tag, record: sides.append((tag, record)), OutputTag, Full)
    results.emit(iter([1, (late, 2), (3, 4)]), 7, None, "flat_map", None)
    assert main == [StreamRecord(1, 7), StreamRecord((3, 4), 7)]
    assert sides == [(late, StreamRecord(2, -(2**63)))]
    with pytest.raises(LookupError, match="a text"):
        results.emit("ab", 7, 7, "flat_map", None)


def test_a_function_that_fails_as_its_results_are_taken_is_named() -> None:
    def given() -> Any:
        yield 1
        raise ValueError("broken")

    main: list[Record] = []
    results = Collected(main.append, unexpected, OutputTag, Full)
    with pytest.raises(LookupError, match="process: broken"):
        results.emit(given(), None, None, "process", None)
    assert main == [StreamRecord(1)]


def test_results_wait_where_an_output_is_full() -> None:
    main: list[Record] = []

    def collect(record: Record) -> None:
        main.append(record)
        if len(main) == 2:
            raise Full

    results = Collected(collect, unexpected, OutputTag, Full)
    with pytest.raises(Full):
        results.emit([1, 2, 3], 0, 0, "process", None)
    waiting = results.waiting
    assert waiting is not None
    results.emit(waiting, 0, 0, "process", None)
    assert [record.value for record in main] == [1, 2, 3]
    assert results.waiting is None


def test_results_of_a_function_are_let_go_where_what_takes_them_fails() -> None:
    def collect(record: Record) -> None:
        raise LookupError("behind")

    results = Collected(collect, unexpected, OutputTag, Full)
    given = (number for number in range(3))
    with pytest.raises(LookupError, match="behind"):
        results.emit(given, 0, 0, "process", None)
    assert results.waiting is None


# ---- calls ----


def test_a_keyed_call_sets_the_key_and_shows_the_record_during_the_call() -> None:
    keys, context, seen = key_context(), CallContext(None), list[Any]()

    def method(value: Any, ctx: CallContext) -> Any:
        seen.append((value, ctx.timestamp(), keys.current_key))
        return [value] if value[1] else None

    call = KeyedCall(
        keys,
        [lambda: seen.append("clean up")],
        lambda value: value[0],
        failed,
        method,
        context,
        lambda given, record: seen.append((given, record)),
        failed,
    )
    record = StreamRecord(("a", 0), 5)
    call.process(record)
    assert seen == ["clean up", (("a", 0), 5, "a")]
    assert context.subject is None
    del seen[:]
    record.value = ("b", 1)
    call.process_of_key("c", record)
    assert seen[1:] == [(("b", 1), 5, "c"), ([("b", 1)], record)]
    with pytest.raises(LookupError, match="StreamRecord"):
        call.process(StreamRecord(None))
    assert context.subject is None


def test_the_generator_sees_an_element_after_it_is_sent_on_and_as_it_was() -> None:
    seen: list[Any] = []

    def collect(record: Record) -> None:
        seen.append(record.timestamp)
        record.value = "changed"

    call = TimestampCall(lambda value, before: before + 1, collect, lambda *event: seen.append(event), "out")
    call.process(StreamRecord("a", 3))
    call.process(StreamRecord("b"))
    assert seen == [4, ("a", 4, "out"), 1 - 2**63, ("b", 1 - 2**63, "out")]


def test_functions_of_single_elements_replace_and_choose_values() -> None:
    sent: list[Any] = []
    record = StreamRecord(3, 1)
    chosen = FilterCall(lambda value: value % 2, None, lambda each: sent.append(each.value), failed, failed)
    MapCall(lambda value: value * 3, str, chosen.process, failed, failed)
    MapCall(lambda value: value * 3, None, chosen.process, failed, failed).process(record)
    assert (sent, record) == ([9], StreamRecord(9, 1))
    MapCall(lambda value: value + 1, None, chosen.process, failed, failed).process(record)
    assert sent == [9]


def test_errors_of_functions_and_of_conversions_are_told_apart() -> None:
    def broken(value: Any) -> Any:
        raise ValueError("broken")

    record = StreamRecord(3)
    for call, told in (
        (MapCall(broken, None, unexpected, failed, unexpected), ("map", record)),
        (MapCall(lambda value: "x", broken, unexpected, unexpected, failed), ("map", "x", record)),
        (FilterCall(broken, None, unexpected, failed, unexpected), ("filter", record)),
        (FilterCall(lambda value: True, broken, unexpected, unexpected, failed), ("filter", 3, record)),
    ):
        with pytest.raises(LookupError) as caught:
            call.process(record)
        assert caught.value.args == told
        assert isinstance(caught.value.__cause__, ValueError)


def test_a_reduction_goes_on_from_the_value_of_its_key() -> None:
    keys, sent, begun = key_context(), list[Any](), list[Any]()
    values = Values(keys)
    values.select_values([None, None])
    call = ReduceCall(
        keys,
        values,
        lambda value: value[0],
        lambda one, other: [one[0], one[1] + other[1]],
        begun.append,
        ConversionUnless(tuple, tuple),
        lambda record: sent.append(record.value),
        failed,
        failed,
        failed,
    )
    for value in [("a", 1), ("b", 2), ("a", 3)]:
        call.process(StreamRecord(value))
    assert sent == [("a", 1), ("b", 2), ("a", 4)]
    assert begun == [("a", 1), ("b", 2)]


def test_open_panes_take_the_elements_of_their_slot_and_no_others() -> None:
    keys, elsewhere, timers = key_context(), list[Any](), list[Any]()
    sums: dict[int, int] = {}

    def process_elsewhere(key: Any, record: Record) -> bool:
        elsewhere.append((key, record.value, record.timestamp))
        return record.timestamp == 25

    call = OpenPaneCall(
        keys,
        [],
        lambda value: value % 2,
        failed,
        None,
        lambda value, total: total + value,
        False,
        lambda window, time: timers.append((window, time)),
        5,
        process_elsewhere,
        unexpected,
        failed,
    )
    call.process(StreamRecord(1, 15))
    call.open(10, 20, [("w", 19, sums)])
    for value, timestamp in [(3, 10), (4, 19), (5, 12), (7, 20), (7, 9), (7, None), (7, 2**63), (None, 12)]:
        call.process_of_key(0 if value is None else value % 2, StreamRecord(value, timestamp))
    assert sums == {0: 8, 1: 4}
    assert timers == [("w", 19), ("w", 24)] * 2
    assert elsewhere == [(1, 1, 15), (1, 7, 20), (1, 7, 9), (1, 7, None), (1, 7, 2**63), (0, None, 12)]
    call.process(StreamRecord(2, 25))
    assert sums == {0: 8, 1: 6}
    call.close()
    call.process(StreamRecord(2, 12))
    assert elsewhere[-1] == (0, 2, 12)


def test_panes_without_an_aggregation_hold_all_elements() -> None:
    held: dict[int, Any] = {}
    call = OpenPaneCall(
        key_context(),
        [],
        None,
        failed,
        None,
        None,
        False,
        lambda *timer: None,
        0,
        unexpected,
        unexpected,
        failed,
    )
    call.open(0, 9, [("w", 8, held)])
    for value in "ab":
        call.process_of_key("k", StreamRecord(value, 1))
    assert held == {0: ["a", "b"]}


def test_an_aggregation_that_gives_none_drops_its_pane() -> None:
    dropped: list[Any] = []
    call = OpenPaneCall(
        key_context(),
        [],
        None,
        failed,
        None,
        lambda contents, value: None,
        True,
        lambda *timer: None,
        0,
        unexpected,
        lambda window, key_id: dropped.append((window, key_id)),
        failed,
    )
    call.open(0, 9, [("w", 8, {})])
    for value in "ab":
        call.process_of_key("k", StreamRecord(value, 1))
    assert dropped == [("w", 0)]


# ---- arrivals ----


class Clock(ArrivalClock):
    def __init__(self) -> None:
        self.now_ms, self.next_due_ms = 0, 3
        self.fired: list[int] = []

    def fire_before(self, time_ms: int) -> None:
        self.fired.append(time_ms)
        self.next_due_ms = 100


def test_elements_go_at_their_times_after_what_is_due_before() -> None:
    clock, seen = Clock(), list[Any]()

    def process(record: Record) -> None:
        seen.append((record.value, record.timestamp, clock.now_ms, len(clock.fired)))
        record.value, record.timestamp = "changed", 9

    emit_elements(["a", "b", "c"], [2, 3, 7], clock, process)
    assert seen == [("a", None, 2, 0), ("b", None, 3, 0), ("c", None, 7, 1)]
    assert clock.fired == [7]
