"""The program of a PyFlink job goes on from its savepoint, whichever mode of PyFlink wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jobs.pyflink_savepoint_job import (
    CASES,
    DESCRIPTORS,
    RECORD,
    Listing,
    WithAllKinds,
    add,
    environment,
    timed,
)

from flinkcore import savepoints
from flinkcore.common import Time, Types
from flinkcore.datastream.state import (
    ListStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from flinkcore.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from flinkcore.errors import ConfigurationError, FlinkcoreError
from flinkcore.savepoints import FlinkOperator, SavepointSource

MODES = ["process_pickled", "process_string", "thread_string"]


class AllKinds(WithAllKinds):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        sums = dict(self.sums.items())
        self.max.add(0)
        yield (
            value[0],
            self.count.value(),
            self.pickled.value(),
            list(self.seen.get()),
            sums,
            self.max.get(),
            self.avg.get(),
        )

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        if timestamp < 10**12:
            yield ctx.get_current_key(), timestamp


def source(mode: str, uid: str, descriptors: list[StateDescriptor], **arguments: Any) -> SavepointSource:
    path = CASES / f"pyflink_{mode}" / "savepoint"
    named = {each.uid for each in savepoints.open(path).operators}
    others = named & {"proc", "win_reduce", "win_list", "win_session"} - {uid}
    declared = [FlinkOperator(uid, descriptors=descriptors)]
    return SavepointSource(path, declared, sorted(others), **arguments)


def keyed(*records: tuple[str, int, int]) -> Any:
    return timed(environment(), records).key_by(lambda record: record[0], Types.STRING())


@pytest.mark.parametrize("mode", MODES)
def test_all_kinds_of_state_and_timers_go_on(mode: str) -> None:
    stream = keyed(("bob", 1, 9000), ("ada", 1, 9000)).process(AllKinds()).uid("proc")
    found = list(stream.execute_and_collect(restore_from=source(mode, "proc", DESCRIPTORS)))
    states = {each[0]: each[1:] for each in found if len(each) > 2}
    assert states == {
        "ada": (3, ["ada", 6], ["ada0", "ada3", "ada6"], {"m0": 6}, 6, 3.0),
        "bob": (3, ["bob", 7], ["bob1", "bob4", "bob7"], {"m1": 7}, 7, 4.0),
    }
    timers = sorted(each for each in found if len(each) == 2)
    keys = ["ada", "bob", "eve"]
    assert timers == sorted((keys[n % 3], 100_000 + n) for n in range(9))


@pytest.mark.parametrize("mode", MODES)
def test_windows_go_on(mode: str) -> None:
    records = ("bob", 100, 50_000), ("ada", 1, 150_000)
    hundred = keyed(*records).window(TumblingEventTimeWindows.of(Time.seconds(100)))
    reduced = [ReducingStateDescriptor("window-contents", add, RECORD)]
    stream = hundred.reduce(add, output_type=RECORD).uid("win_reduce")
    assert sorted(stream.execute_and_collect(restore_from=source(mode, "win_reduce", reduced))) == [
        ("ada", 1, 150_000),
        ("ada", 9, 6000),
        ("bob", 112, 50_000),
        ("eve", 15, 8000),
    ]
    hundred = keyed(*records).window(TumblingEventTimeWindows.of(Time.seconds(100)))
    listed: list[StateDescriptor] = [ListStateDescriptor("window-contents", RECORD)]
    lists = hundred.process(Listing(), Types.STRING()).uid("win_list")
    assert sorted(lists.execute_and_collect(restore_from=source(mode, "win_list", listed))) == [
        "[('ada', 0, 0), ('ada', 3, 3000), ('ada', 6, 6000)]",
        "[('ada', 1, 150000)]",
        "[('bob', 1, 1000), ('bob', 4, 4000), ('bob', 7, 7000), ('bob', 100, 50000)]",
        "[('eve', 2, 2000), ('eve', 5, 5000), ('eve', 8, 8000)]",
    ]


@pytest.mark.parametrize("mode", MODES[:2])
def test_sessions_of_process_mode_go_on(mode: str) -> None:
    sessions = keyed(("bob", 100, 40_000), ("ada", 1, 150_000)).window(
        EventTimeSessionWindows.with_gap(Time.seconds(50))
    )
    reduced = [ReducingStateDescriptor("window-contents", add, RECORD)]
    stream = sessions.reduce(add, output_type=RECORD).uid("win_session")
    assert sorted(stream.execute_and_collect(restore_from=source(mode, "win_session", reduced))) == [
        ("ada", 1, 150_000),
        ("ada", 9, 6000),
        ("bob", 112, 40_000),
        ("eve", 15, 8000),
    ]


def test_states_of_process_mode_need_their_descriptors() -> None:
    stream = keyed(("bob", 1, 9000)).process(AllKinds()).uid("proc")
    with pytest.raises(ConfigurationError, match=r"process mode keeps bytes.* Give its descriptor"):
        stream.execute_and_collect(restore_from=source("process_string", "proc", DESCRIPTORS[1:]))


def test_bytes_that_are_not_those_of_a_descriptor_are_an_error() -> None:
    stream = keyed(("bob", 1, 9000)).process(AllKinds()).uid("proc")
    wrong = [ValueStateDescriptor("count", Types.STRING()), *DESCRIPTORS[1:]]
    with pytest.raises(FlinkcoreError, match="'count' of PyFlink does not hold what its descriptor declares"):
        list(stream.execute_and_collect(restore_from=source("process_string", "proc", wrong)))
