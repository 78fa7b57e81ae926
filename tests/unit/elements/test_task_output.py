"""Where the elements of an operator go: to all that read it, in channels, and in copies."""

from threading import Lock
from typing import Any

import pytest

from flinkcore.common import OutputTag, Row, Types, Watermark
from flinkcore.elements.tasks.task_output import (
    Edge,
    InputChannel,
    RecordWriterOutput,
    TaskOutput,
    broadcasting,
    copying,
    detaching,
    selecting,
)
from flinkcore.errors import UserCodeError
from flinkcore.operators.records.copies import detached
from flinkcore.operators.records.stream_elements import (
    LatencyMarker,
    StreamElement,
    StreamRecord,
    WatermarkStatus,
)


class Reader:
    """A subtask's input that writes down what comes."""

    def __init__(self) -> None:
        self.records: list[StreamRecord[Any]] = []
        self.others: list[tuple[StreamElement[Any], int]] = []

    def collect(self, record: StreamRecord[Any]) -> None:
        self.records.append(record)

    def process(self, element: StreamElement[Any], channel: int) -> None:
        self.others.append((element, channel))

    def channel(self, number: int) -> InputChannel:
        return InputChannel(self.collect, self.process, number, lambda: None)

    def edge(self) -> Edge:
        return Edge(self.collect, RecordWriterOutput([self.channel(0)]))

    @property
    def values(self) -> list[Any]:
        return [record.value for record in self.records]


def test_watermarks_and_statuses_go_to_all_channels_once() -> None:
    first, second = Reader(), Reader()
    output = RecordWriterOutput([first.channel(3), second.channel(1)])
    output.emit_watermark(Watermark(5))
    output.emit_watermark_status(WatermarkStatus.ACTIVE)
    output.emit_watermark_status(WatermarkStatus.IDLE)
    output.emit_watermark_status(WatermarkStatus.IDLE)
    output.emit_watermark(Watermark(6))
    output.emit_watermark_status(WatermarkStatus.ACTIVE)
    output.emit_watermark(Watermark(6))
    seen = [Watermark(5), WatermarkStatus.IDLE, WatermarkStatus.ACTIVE, Watermark(6)]
    assert first.others == [(element, 3) for element in seen]
    assert second.others == [(element, 1) for element in seen]


def test_a_latency_marker_goes_to_one_channel() -> None:
    first, second = Reader(), Reader()
    marker = LatencyMarker(1, "source", 0)
    RecordWriterOutput([first.channel(0), second.channel(0)]).emit_latency_marker(marker)
    assert first.others == [(marker, 0)]
    assert second.others == []


def test_each_reader_gets_a_record_of_its_own() -> None:
    first, second = Reader(), Reader()
    record = StreamRecord("a", 5)
    copying([first.collect, second.collect])(record)
    assert first.records == second.records == [record]
    assert first.records[0] is not record
    assert second.records[0] is record
    copying([])(record)


def test_a_broadcast_gives_each_channel_a_value_of_its_own_if_it_can_change() -> None:
    first, second = Reader(), Reader()
    value = [1]
    broadcasting([first.channel(0), second.channel(0)], values_change=True, giver="give")(StreamRecord(value))
    value.append(2)
    assert first.values == second.values == [[1]]
    first.values[0].append(3)
    assert second.values == [[1]]


def test_a_selector_chooses_the_channel() -> None:
    readers = Reader(), Reader()
    send = selecting([reader.channel(0) for reader in readers], lambda record: record.value % 2)
    for value in range(4):
        send(StreamRecord(value))
    assert [reader.values for reader in readers] == [[0, 2], [1, 3]]


def test_a_side_output_reaches_those_that_read_its_tag_and_in_its_type() -> None:
    main, side, other = Reader(), Reader(), Reader()
    tag = OutputTag("side", Types.TUPLE([Types.INT()]))
    output = TaskOutput([main.edge()], [(tag, side.edge()), (OutputTag("other"), other.edge())])
    output.collect(StreamRecord(1))
    output.collect_side(OutputTag("side"), StreamRecord([2]))
    output.collect_side(OutputTag("nobody"), StreamRecord(3))
    assert (main.values, side.values, other.values) == ([1], [(2,)], [])
    output.emit_watermark(Watermark(9))
    assert [reader.others for reader in (main, side, other)] == [[(Watermark(9), 0)]] * 3


def test_the_main_output_converts_to_the_declared_type() -> None:
    main = Reader()
    output = TaskOutput([main.edge()], conversion=Types.TUPLE([Types.DOUBLE()]).conversion())
    output.collect(StreamRecord([1], 7))
    assert main.records == [StreamRecord((1.0,), 7)]


def test_what_cannot_change_is_not_copied() -> None:
    for value in ("a", 1, 2.5, None, ("a", 1), (), b"x", len, lambda: 1, Row):
        assert detached(value, "give") is value


def test_what_can_change_is_copied_deeply() -> None:
    class Unpicklable:
        def __init__(self) -> None:
            self.parts = [1]

    row, nested, own = Row(a=1), (1, [2]), Unpicklable()
    for value in (row, nested, [1], {"a": [1]}, {1}, own):
        copy = detached(value, "give")
        assert copy is not value
        assert type(copy) is type(value)
    assert detached(nested, "give")[1] is not nested[1]
    assert detached(own, "give").parts is not own.parts
    changed = detached(row, "give")
    changed["a"] = 2
    assert row["a"] == 1


def test_what_can_be_neither_pickled_nor_copied_is_refused() -> None:
    with open(__file__) as file:
        for value in (file, (1, file), [file], Row(1, file), (n for n in ()), Lock()):
            with pytest.raises(
                UserCodeError, match=r"^give gave .*, of which the next task needs a copy, but"
            ) as raised:
                detached(value, "give")
            assert "cannot pickle" in str(raised.value)


def test_a_detaching_way_hands_on_the_record_itself() -> None:
    reader = Reader()
    record = StreamRecord([1], 4)
    detaching(reader.collect, "give")(record)
    assert reader.records[0] is record
