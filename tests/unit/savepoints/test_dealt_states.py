"""State of savepoints whose keys have other key groups in the job: each task reads a part, and deals it out."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from jobs.sql_savepoint_jobs import GOLDEN, changes, replay, rows_as_flink_shows_them

from flinkcore import savepoints
from flinkcore.checkpoint import OperatorSnapshot
from flinkcore.savepoints import SavepointOperator, state_streams
from flinkcore.savepoints.beginning import RestoredSavepoint
from flinkcore.savepoints.keyed_state import KeyedState, batches_of_states

JOBS = ("hop", "group_hop", "session", "count_of_distinct", "left_interval_join", "rank_of_sums")

pytestmark = pytest.mark.filterwarnings("ignore::flinkcore.errors.LateEventsWarning")


@contextmanager
def counted_bytes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Count the bytes that are read from files."""
    found: list[int] = []
    read = state_streams._read_at

    def counting(file: Any, name: str, at: int, size: int) -> bytes:
        found.append(size)
        return read(file, name, at, size)

    with monkeypatch.context() as patched:
        patched.setattr(state_streams, "_read_at", counting)
        yield found


def bytes_beside_entries(operator: SavepointOperator) -> int:
    """Return the bytes of the headers of keyed states, and of operator states, which are read once more."""
    subtasks = operator.metadata.subtasks
    return sum(handle.first_offset for each in subtasks for handle in each.keyed_states) + sum(
        2 * handle.stream.size for each in subtasks for handle in each.operator_states
    )


@pytest.mark.parametrize("job", JOBS)
def test_a_replay_goes_on_from_entries_that_were_dealt_out(job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    restore, dealt_out = RestoredSavepoint.restore, set[str]()

    def deal_and_restore(
        self: RestoredSavepoint, uid: str, key_groups: tuple[int, int], max_parallelism: int
    ) -> list[OperatorSnapshot]:
        dealt = self.dealt(uid)
        if dealt is None:
            return restore(self, uid, key_groups, max_parallelism)
        entries: dict[str, list[pa.RecordBatch]] = {}
        for first in range(0, dealt.n_key_groups, 50):
            task = pickle.loads(pickle.dumps(dealt))
            for name, batch, groups in task.deal(range(first, min(first + 50, dealt.n_key_groups))):
                wanted = np.ones(batch.num_rows, np.bool_)
                if groups is not None:
                    wanted = (groups >= key_groups[0]) & (groups <= key_groups[1])
                entries.setdefault(name, []).append(batch.filter(pa.array(wanted)))
        dealt_out.add(uid)
        with counted_bytes(monkeypatch) as read:
            found = restore(dealt.received(entries), uid, key_groups, max_parallelism)
        assert sum(read) <= bytes_beside_entries(self.restored[uid].found)
        return found

    monkeypatch.setattr(RestoredSavepoint, "restore", deal_and_restore)
    rest = replay(job, "rest").execute(restore_from=GOLDEN / job / "savepoint")
    expected = [json.loads(line) for line in (GOLDEN / job / "rest.jsonl").read_text().splitlines()]
    assert changes(job, rows_as_flink_shows_them(rest)) == changes(job, expected)
    assert dealt_out


def test_a_task_reads_the_key_groups_of_its_range_and_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    found = savepoints.open(GOLDEN / "group_by_count" / "savepoint").operators
    operator = next(each for each in found if any(isinstance(s, KeyedState) for s in each.states.values()))
    of_tasks = operator.for_tasks()
    for key_groups in (range(50), range(50, 128)):
        task = pickle.loads(pickle.dumps(of_tasks))
        with counted_bytes(monkeypatch) as headers:
            states = [state for state in task.states.values() if isinstance(state, KeyedState)]
        files = states[0].files
        assert sum(headers) <= sum(file.handle.first_offset for file in files)
        with counted_bytes(monkeypatch) as read:
            rows = Counter(
                state.name for state, batch in batches_of_states(states, key_groups) for _ in batch["key"]
            )
        own = [end - begin for file in files for group, begin, end in file.ranges if group in key_groups]
        assert sum(read) == sum(own)
        assert rows == {
            state.name: n
            for state in states
            if (n := sum(batch.num_rows for batch in state.batches(key_groups)))
        }
