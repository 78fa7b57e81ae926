"""WatermarkOutputMultiplexer: immediate and deferred outputs, combined."""

import pytest
from equipment.recorders import WatermarkOutputRecorder

from flinkcore.common import Watermark, WatermarkOutput
from flinkcore.elements.sources.watermark_output_multiplexer import WatermarkOutputMultiplexer
from flinkcore.errors import LifecycleError

IDLE = ("status", "idle")


class Multiplexed:
    """A multiplexer, and what it has put out since last asked."""

    def __init__(self) -> None:
        self.output = WatermarkOutputRecorder()
        self.multiplexer = WatermarkOutputMultiplexer(self.output)
        self.count = 0

    def immediate(self) -> WatermarkOutput:
        return self.multiplexer.get_immediate_output(self.registered())

    def deferred(self) -> WatermarkOutput:
        return self.multiplexer.get_deferred_output(self.registered())

    def registered(self) -> str:
        self.count += 1
        self.multiplexer.register_new_output(f"split-{self.count}")
        return f"split-{self.count}"

    def take(self) -> list[tuple[object, ...]]:
        return self.output.take()

    def periodic(self) -> list[tuple[object, ...]]:
        self.multiplexer.on_periodic_emit()
        return self.output.take()


@pytest.fixture
def multiplexed() -> Multiplexed:
    return Multiplexed()


def test_without_outputs_nothing_is_put_out(multiplexed: Multiplexed) -> None:
    assert multiplexed.periodic() == []


def test_a_single_immediate_watermark_is_emitted_at_once_and_only_if_it_advances(
    multiplexed: Multiplexed,
) -> None:
    output = multiplexed.immediate()
    output.emit_watermark(Watermark(0))
    assert multiplexed.take() == [("watermark", 0)]
    output.emit_watermark(Watermark(-1))
    output.emit_watermark(Watermark(0))
    assert multiplexed.take() == []


def test_a_single_deferred_watermark_is_emitted_at_the_next_periodic_call(multiplexed: Multiplexed) -> None:
    multiplexed.deferred().emit_watermark(Watermark(0))
    assert multiplexed.take() == []
    assert multiplexed.periodic() == [("watermark", 0)]
    assert multiplexed.periodic() == []


def test_the_smallest_watermark_of_immediate_and_deferred_outputs_counts(multiplexed: Multiplexed) -> None:
    immediate, deferred = multiplexed.immediate(), multiplexed.deferred()
    immediate.emit_watermark(Watermark(5))
    deferred.emit_watermark(Watermark(2))
    assert multiplexed.take() == []
    assert multiplexed.periodic() == [("watermark", 2)]
    deferred.emit_watermark(Watermark(7))
    immediate.emit_watermark(Watermark(6))
    assert multiplexed.take() == [("watermark", 6)]


def test_an_idle_output_does_not_hold_back_the_others(multiplexed: Multiplexed) -> None:
    slow, fast = multiplexed.immediate(), multiplexed.immediate()
    fast.emit_watermark(Watermark(5))
    slow.mark_idle()
    assert multiplexed.take() == [("watermark", 5)]


def test_a_watermark_makes_an_idle_output_active_again_at_the_next_update(multiplexed: Multiplexed) -> None:
    first, second = multiplexed.immediate(), multiplexed.immediate()
    first.emit_watermark(Watermark(5))
    second.mark_idle()
    second.emit_watermark(Watermark(4))
    first.emit_watermark(Watermark(9))
    assert multiplexed.take() == [("watermark", 5)], (
        "4 holds 9 back, and the combined watermark never goes back"
    )
    second.emit_watermark(Watermark(6))
    assert multiplexed.take() == [("watermark", 6)]


def test_when_the_last_output_turns_idle_the_largest_watermark_of_all_comes_first(
    multiplexed: Multiplexed,
) -> None:
    first, second = multiplexed.immediate(), multiplexed.immediate()
    first.emit_watermark(Watermark(9))
    second.emit_watermark(Watermark(4))
    assert multiplexed.take() == [("watermark", 4)]
    first.mark_idle()
    assert multiplexed.take() == []
    second.mark_idle()
    assert multiplexed.take() == [("watermark", 9), IDLE]
    assert multiplexed.periodic() == [IDLE], "idleness is stated anew at each update"


def test_the_largest_watermark_is_not_that_of_an_output_which_has_gone(multiplexed: Multiplexed) -> None:
    gone, left = multiplexed.registered(), multiplexed.immediate()
    multiplexed.multiplexer.get_immediate_output(gone).emit_watermark(Watermark(9))
    left.emit_watermark(Watermark(4))
    multiplexed.take()
    assert multiplexed.multiplexer.unregister_output(gone)
    left.mark_idle()
    assert multiplexed.take() == [IDLE]


def test_it_is_never_marked_active_but_by_a_watermark(multiplexed: Multiplexed) -> None:
    output = multiplexed.immediate()
    output.mark_idle()
    output.mark_active()
    output.emit_watermark(Watermark(3))
    assert multiplexed.take() == [IDLE, ("watermark", 3)]


def test_a_new_output_holds_the_watermark_back(multiplexed: Multiplexed) -> None:
    first = multiplexed.immediate()
    first.emit_watermark(Watermark(5))
    second = multiplexed.immediate()
    first.emit_watermark(Watermark(8))
    assert multiplexed.take() == [("watermark", 5)]
    second.emit_watermark(Watermark(3))
    assert multiplexed.take() == []
    second.emit_watermark(Watermark(7))
    assert multiplexed.take() == [("watermark", 7)]


def test_an_output_that_is_unregistered_lets_go_at_the_next_update(multiplexed: Multiplexed) -> None:
    multiplexed.immediate().emit_watermark(Watermark(5))
    slow = multiplexed.registered()
    assert multiplexed.multiplexer.unregister_output(slow)
    assert not multiplexed.multiplexer.unregister_output(slow)
    assert multiplexed.take() == [("watermark", 5)]
    slow = multiplexed.registered()
    multiplexed.multiplexer.get_immediate_output("split-1").emit_watermark(Watermark(8))
    multiplexed.multiplexer.unregister_output(slow)
    assert multiplexed.take() == []
    assert multiplexed.periodic() == [("watermark", 8)]


def test_the_output_of_an_unregistered_id_no_longer_counts(multiplexed: Multiplexed) -> None:
    stale = multiplexed.immediate()
    multiplexed.multiplexer.unregister_output("split-1")
    multiplexed.multiplexer.register_new_output("split-1")
    multiplexed.multiplexer.get_deferred_output("split-1").emit_watermark(Watermark(3))
    stale.emit_watermark(Watermark(99))
    stale.mark_idle()
    assert multiplexed.take() == [("watermark", 3)]


def test_an_id_is_registered_once_and_needed_for_an_output(multiplexed: Multiplexed) -> None:
    multiplexed.multiplexer.register_new_output("a")
    with pytest.raises(LifecycleError, match="there is an output of the id 'a' already"):
        multiplexed.multiplexer.register_new_output("a")
    for get in (multiplexed.multiplexer.get_immediate_output, multiplexed.multiplexer.get_deferred_output):
        with pytest.raises(LifecycleError, match="no output of the id 'b' is registered"):
            get("b")


def test_a_listener_hears_of_its_output_before_the_combined_watermark(multiplexed: Multiplexed) -> None:
    class Listener:
        def on_watermark_update(self, watermark: int) -> None:
            multiplexed.output.add("split_watermark", ts=watermark)

        def on_idle_update(self, idle: bool) -> None:
            multiplexed.output.add("split_idle", idle=idle)

    multiplexed.multiplexer.register_new_output("a", Listener())
    output = multiplexed.multiplexer.get_immediate_output("a")
    output.emit_watermark(Watermark(5))
    output.emit_watermark(Watermark(5))
    output.mark_idle()
    assert multiplexed.take() == [
        ("split_idle", False),
        ("split_watermark", 5),
        ("watermark", 5),
        ("split_idle", False),
        ("split_idle", True),
        IDLE,
    ]


def test_outputs_that_come_and_go_leave_nothing_behind(multiplexed: Multiplexed) -> None:
    slow = multiplexed.immediate()
    slow.emit_watermark(Watermark(0))
    for timestamp in range(1, 2000):
        split = multiplexed.registered()
        multiplexed.multiplexer.get_immediate_output(split).emit_watermark(Watermark(timestamp))
        multiplexed.multiplexer.unregister_output(split)
    assert len(multiplexed.multiplexer._combined._heap) < 10
    slow.emit_watermark(Watermark(5))
    assert multiplexed.take() == [("watermark", 0), ("watermark", 5)]


def test_many_outputs_that_advance_in_turn_are_merged_by_the_smallest(multiplexed: Multiplexed) -> None:
    outputs = [multiplexed.immediate() for _ in range(1000)]
    for round_start in (0, 1000, 2000):
        for place, output in enumerate(outputs):
            output.emit_watermark(Watermark(round_start + place))
    assert multiplexed.take()[-1] == ("watermark", 2000)
