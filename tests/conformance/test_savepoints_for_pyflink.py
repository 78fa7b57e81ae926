"""A replay of a PyFlink program leaves the savepoint that PyFlink leaves after the same records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
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

import flinkcore as fc
from flinkcore import savepoints
from flinkcore.common import Time, Types
from flinkcore.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from flinkcore.savepoints import FlinkOperator, SavepointOperator, SavepointSource, SavepointTarget
from flinkcore.savepoints.keyed_state import KeyedState
from flinkcore.savepoints.pyflink_coders import PREFIX

CASE_OF = {"process_pickled": None, "process_string": Types.STRING(), "thread_string": Types.STRING()}
USERS = ["ada", "bob", "eve"]


class AllKinds(WithAllKinds):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        key, number, _ = value
        self.count.update((self.count.value() or 0) + 1)
        self.seen.add(key + str(number))
        self.sums.put("m" + str(number % 3), number)
        self.max.add(number)
        self.avg.add(number)
        self.pickled.update([key, number])
        ctx.timer_service().register_event_time_timer(100000 + number)
        ctx.timer_service().register_processing_time_timer(4000000000000)
        yield value

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield f"timer {ctx.get_current_key()}", timestamp, self.count.value()


def records(env: fc.StreamExecutionEnvironment, numbers: range) -> Any:
    return timed(env, [(USERS[n % 3], n, 1000 * n) for n in numbers])


def first_of(stream: Any) -> str:
    key: str = stream[0]
    return key


def written(case: str, folder: Path) -> savepoints.Savepoint:
    """Stop the program of the recorded case after its nine records, and return the savepoint."""
    env = environment()
    keyed = records(env, range(9)).key_by(first_of, CASE_OF[case]).process(AllKinds(), RECORD).uid("proc")
    keyed = keyed.key_by(first_of, CASE_OF[case])
    hundred = keyed.window(TumblingEventTimeWindows.of(Time.seconds(100)))
    hundred.reduce(add, output_type=RECORD).uid("win_reduce")
    hundred.process(Listing(), Types.STRING()).uid("win_list")
    mode: Any = case.partition("_")[0]
    if mode == "process":
        sessions = keyed.window(EventTimeSessionWindows.with_gap(Time.seconds(50)))
        sessions.reduce(add, output_type=RECORD).uid("win_session")
    env.execute(stop_with_savepoint=SavepointTarget(folder / "savepoint", execution_mode=mode))
    return savepoints.open(folder / "savepoint")


def entries(operator: SavepointOperator) -> dict[str, list[str]]:
    """Return types and entries of the states; what process mode appends in several pieces is joined."""
    found: dict[str, list[str]] = {}
    for name, state in operator.states.items():
        assert isinstance(state, KeyedState)
        rows = state.to_arrow().to_pylist()
        for row in rows if name.startswith(PREFIX) and state.kind == "LIST" else []:
            row["value"] = b"".join(row["value"])
        if rows:
            types = {
                column: (each.name, each.snapshot_class)
                for column, each in state.keyed_types.by_column.items()
            }
            found[name] = [f"{state.kind} {types}", *sorted(map(str, rows))]
    return found


@pytest.mark.parametrize("case", CASE_OF)
def test_a_replay_has_the_state_that_pyflink_has(case: str, tmp_path: Path) -> None:
    own = written(case, tmp_path)
    pyflinks = savepoints.open(CASES / f"pyflink_{case}" / "savepoint")
    uids = ["proc", "win_reduce", "win_list", *(["win_session"] if case.startswith("process") else [])]
    assert len(own.operators) == len(uids)
    for uid in uids:
        assert entries(own.operator(uid)) == entries(pyflinks.operator(uid))


@pytest.mark.parametrize("case", CASE_OF)
def test_a_replay_goes_on_from_what_it_has_written_for_pyflink(case: str, tmp_path: Path) -> None:
    written(case, tmp_path)
    others = ["win_reduce", "win_list", *(["win_session"] if case.startswith("process") else [])]
    source = SavepointSource(tmp_path / "savepoint", [FlinkOperator("proc", descriptors=DESCRIPTORS)], others)

    def process(env: fc.StreamExecutionEnvironment, numbers: range) -> Any:
        return records(env, numbers).key_by(first_of, CASE_OF[case]).process(AllKinds(), RECORD).uid("proc")

    rest = list(process(environment(), range(9, 20)).execute_and_collect(restore_from=source))
    whole = list(process(environment(), range(20)).execute_and_collect())
    assert sorted(rest) == sorted(each for each in whole if each[0].startswith("timer") or each[1] >= 9)
