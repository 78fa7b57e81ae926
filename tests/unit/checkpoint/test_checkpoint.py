"""Checkpoints written by tasks, completed by a driver, and restored at other parallelisms."""

import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from equipment.checkpoints import KEY_GROUPS, keyed_state, timer_pairs, timers, two_subtasks, write_checkpoint
from equipment.forged_checkpoints import forge, manifest_of

from flinkcore.checkpoint import Checkpoint, OperatorBackends, OperatorSnapshot, SplitPosition
from flinkcore.common import MIN_TIMESTAMP
from flinkcore.datastream.state import ListStateDescriptor, StateDescriptor, StateTtlConfig
from flinkcore.errors import ConfigurationError, SourceError
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.state import (
    DistributionMode,
    KeyedStateBackend,
    KeyedStateSnapshot,
    OperatorStateBackend,
    OperatorStateSnapshot,
)
from flinkcore.operators.timers import InternalTimeServiceManager
from flinkcore.operators.timers.internal_timers_snapshot import InternalTimersSnapshot
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService

Type = StateDescriptor.Type


def entries(checkpoint: Checkpoint, first: int, last: int, name: str = "v") -> dict[Any, Any]:
    """The entries of the operator `op` in a range of key groups."""
    found = {}
    for snapshot in checkpoint.restore("op", (first, last), KEY_GROUPS):
        state = snapshot.keyed_state[name]
        found.update({key: value for key, _, value in state.entries()})
        assert all(first <= group <= last for group in state.key_groups)
    return found


def test_an_operator_gets_the_entries_of_its_key_groups(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path, {"op": two_subtasks({0: "a", 3: "b"}, {4: "c", 7: "d"})})
    assert checkpoint.max_parallelism == KEY_GROUPS
    assert checkpoint.uids == ["op"]
    assert entries(checkpoint, 0, 7) == {0: "a", 3: "b", 4: "c", 7: "d"}
    assert entries(checkpoint, 0, 0) == {0: "a"}
    assert entries(checkpoint, 3, 4) == {3: "b", 4: "c"}
    assert entries(checkpoint, 5, 6) == {}


def test_only_parts_with_a_key_group_in_the_range_are_read(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path, {"op": two_subtasks({0: "a"}, {7: "d"})})
    (low,) = checkpoint.restore("op", (1, 3), KEY_GROUPS)
    assert low.key_group_range == (1, 3)
    low, high = checkpoint.restore("op", (2, 5), KEY_GROUPS)
    assert (low.key_group_range, high.key_group_range) == ((2, 3), (4, 5))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Type.VALUE, (1, "a")),
        (Type.REDUCING, 2**70),
        (Type.AGGREGATING, [1, 2]),
        (Type.LIST, [1, True, None]),
        (Type.MAP, {1: None, "a": 2.0}),
    ],
)
@pytest.mark.parametrize("ttl_time", [None, *StateTtlConfig.TtlTimeCharacteristic])
@pytest.mark.parametrize("namespace", [None, ("window", 5)])
def test_a_keyed_state_keeps_its_kind_stamps_and_namespaces(
    tmp_path: Path, kind: Type, value: Any, ttl_time: Any, namespace: Any
) -> None:
    if ttl_time is not None:
        value = {Type.LIST: [(1, 5), ("a", -6)], Type.MAP: {1: None, 2: (3, 7)}}.get(
            kind, (value, MIN_TIMESTAMP)
        )
    state = keyed_state({3: value}, kind, ttl_time, namespace)
    checkpoint = write_checkpoint(tmp_path, {"op": [OperatorSnapshot((0, 7), keyed_state={"v": state})]})
    (snapshot,) = checkpoint.restore("op", (0, 7), KEY_GROUPS)
    restored = snapshot.keyed_state["v"]
    assert (restored.type, restored.ttl_time) == (kind, ttl_time)
    assert list(restored.entries()) == [(3, namespace, value)]
    assert list(checkpoint.keyed_state("op", "v")) == [restored]


def test_timers_keep_their_order_and_their_domain(tmp_path: Path) -> None:
    low = timers([(9, 3), (-5, 1), (9, 0)], [(2**63 - 1, 2)])
    high = timers([(9, 5)])
    snapshots = [
        OperatorSnapshot((0, 3), 7, {"user-timers": low, "none": timers()}),
        OperatorSnapshot((4, 7), 6, {"user-timers": high}),
    ]
    checkpoint = write_checkpoint(tmp_path, {"op": snapshots})
    first, second = checkpoint.restore("op", (0, 7), KEY_GROUPS)
    assert timer_pairs(first.timers["user-timers"]) == [(9, 3), (-5, 1), (9, 0)]
    assert timer_pairs(first.timers["user-timers"], "processing_time_timers") == [(2**63 - 1, 2)]
    assert timer_pairs(second.timers["user-timers"]) == [(9, 5)]
    assert timer_pairs(first.timers["none"]) == []
    assert (first.watermark_ms, second.watermark_ms, checkpoint.watermark_ms("op")) == (7, 6, 6)
    (cut,) = checkpoint.restore("op", (1, 2), KEY_GROUPS)
    assert timer_pairs(cut.timers["user-timers"]) == [(-5, 1)]
    assert cut.timers["user-timers"].keys == [1, 2]


def test_operator_states_are_shared_out_anew(tmp_path: Path) -> None:
    def snapshot(elements: list[int]) -> OperatorSnapshot:
        return OperatorSnapshot(
            operator_state={
                "split": OperatorStateSnapshot(DistributionMode.SPLIT_DISTRIBUTE, elements),
                "union": OperatorStateSnapshot(DistributionMode.UNION, elements),
                "rules": OperatorStateSnapshot(DistributionMode.BROADCAST, [("a", 1), (2, None)]),
            }
        )

    checkpoint = write_checkpoint(tmp_path, {"op": [snapshot([1, 2]), snapshot([3])]})
    states = checkpoint.operator_states("op", 3)
    assert [state["split"].elements for state in states] == [[1], [2], [3]]
    assert [state["union"].elements for state in states] == [[1, 2, 3]] * 3
    assert [dict(state["rules"].elements) for state in states] == [{"a": 1, 2: None}] * 3
    assert checkpoint.restore("op", (0, 7), KEY_GROUPS) == []


def test_splits_keep_their_positions(tmp_path: Path) -> None:
    first = [SplitPosition("part-0", 100, {"max_timestamp": 5}), SplitPosition(("topic", 1), (7, 8))]
    second = [SplitPosition(None, 3)]
    checkpoint = write_checkpoint(
        tmp_path, {"source": [OperatorSnapshot(splits=first), OperatorSnapshot(splits=second)]}
    )
    assert checkpoint.splits("source") == [*first, *second]


def test_a_checkpoint_goes_to_tasks_by_pickle(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path, {"op": two_subtasks({0: 1}, {})})
    assert entries(pickle.loads(pickle.dumps(checkpoint)), 0, 7) == {0: 1}


def test_a_checkpoint_may_be_at_a_uri(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c", {"op": two_subtasks({0: 1}, {})})
    assert entries(Checkpoint.open((tmp_path / "c").as_uri()), 0, 7) == {0: 1}


def test_another_number_of_key_groups_is_refused(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path, {"op": two_subtasks({}, {})})
    with pytest.raises(ConfigurationError, match="has 8 key groups, but the job has max_parallelism 128"):
        checkpoint.restore("op", (0, 7), 128)


@pytest.mark.parametrize("key_groups", [(-1, 3), (3, 2), (0, 8)])
def test_an_impossible_range_is_refused(tmp_path: Path, key_groups: tuple[int, int]) -> None:
    checkpoint = write_checkpoint(tmp_path, {"op": two_subtasks({}, {})})
    with pytest.raises(ConfigurationError, match="key_group_range is"):
        checkpoint.restore("op", key_groups, KEY_GROUPS)


def test_an_unknown_operator_is_told_with_those_there_are(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path, {"op": two_subtasks({}, {})})
    with pytest.raises(ConfigurationError, match=r"no operator 'other'; it has \['op'\]"):
        checkpoint.restore("other", (0, 7), KEY_GROUPS)


# ---- bad input ----


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir(), lambda path: _foreign(path)])
def test_a_directory_without_a_checkpoint_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "c")
    with pytest.raises(SourceError, match="is not a checkpoint"):
        Checkpoint.open(tmp_path / "c")


def _foreign(path: Path) -> None:
    path.mkdir()
    (path / "part-00000.parquet").write_bytes(b"PAR1")


def test_a_file_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("{}")
    with pytest.raises(ConfigurationError, match="is a file"):
        Checkpoint.open(tmp_path / "c")


def data_files(path: Path) -> list[Path]:
    return sorted(path.glob("data-*/*"))


def written(path: Path) -> Checkpoint:
    snapshots = two_subtasks({0: "abc", 3: "def"}, {4: "ghi"})
    return write_checkpoint(path, {"op": snapshots})


@pytest.mark.parametrize("version", [1, 3, "2", None])
def test_another_version_is_refused(tmp_path: Path, version: Any) -> None:
    written(tmp_path)
    document = json.loads(manifest_of(tmp_path).read_text())
    manifest_of(tmp_path).write_text(json.dumps({**document, "version": version}))
    with pytest.raises(SourceError, match=f"format version {version!r}, and this flinkcore reads version 2"):
        Checkpoint.open(tmp_path)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '{"format": "other"}', "\ud800".encode("utf-8", "surrogatepass")]
)
def test_a_foreign_manifest_is_refused(tmp_path: Path, content: str | bytes) -> None:
    written(tmp_path)
    manifest_of(tmp_path).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SourceError, match="no manifest of a flinkcore checkpoint"):
        Checkpoint.open(tmp_path)


def read_all(path: Path) -> dict[Any, Any]:
    return entries(Checkpoint.open(path), 0, 7)


@pytest.mark.parametrize("which", ["manifest", "data"])
def test_a_flipped_bit_is_noticed_wherever_it_is(tmp_path: Path, which: str) -> None:
    written(tmp_path)
    file = manifest_of(tmp_path) if which == "manifest" else data_files(tmp_path)[0]
    content = file.read_bytes()
    for place in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[place] ^= 1 << (place % 8)
        file.write_bytes(damaged)
        with pytest.raises(SourceError, match=re.escape(str(tmp_path))):
            read_all(tmp_path)


@pytest.mark.parametrize("which", ["manifest", "data"])
def test_a_truncated_file_is_noticed_wherever_it_ends(tmp_path: Path, which: str) -> None:
    written(tmp_path)
    file = manifest_of(tmp_path) if which == "manifest" else data_files(tmp_path)[0]
    content = file.read_bytes()
    for length in range(0, len(content), 23):
        file.write_bytes(content[:length])
        with pytest.raises(SourceError, match=r"truncated|damaged"):
            read_all(tmp_path)


def test_a_missing_file_is_noticed_at_once(tmp_path: Path) -> None:
    written(tmp_path)
    data_files(tmp_path)[1].unlink()
    with pytest.raises(SourceError, match="is missing: the checkpoint is incomplete"):
        Checkpoint.open(tmp_path)


def test_a_file_that_goes_missing_later_is_noticed(tmp_path: Path) -> None:
    checkpoint = written(tmp_path)
    data_files(tmp_path)[1].unlink()
    with pytest.raises(SourceError, match="is missing"):
        entries(checkpoint, 0, 7)
    assert entries(checkpoint, 0, 3) == {0: "abc", 3: "def"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["parts"].pop(0), r"subtasks \[1\]"),
        (lambda c: c["parts"].pop(1), "key groups 0 to 3, but there are 8"),
        (lambda c: c["parts"][1].update(key_group_range=[5, 7]), "4 to 4 are missing"),
        (lambda c: c["parts"][1].update(key_group_range=[3, 7]), "3 is there twice"),
        (lambda c: c["parts"][1].update(key_group_range=None), "some have none"),
        (lambda c: c["parts"][1].pop("uid"), "uid"),
        (lambda c: c["parts"][0]["tables"][0].update(kind="other"), "other"),
        (lambda c: c["parts"][0]["tables"][0].update(file="../../etc/passwd"), "outside of the checkpoint"),
        (lambda c: c.pop("max_parallelism"), "max_parallelism"),
    ],
)
def test_a_manifest_of_no_complete_checkpoint_is_refused(
    tmp_path: Path, change: Callable[[Any], Any], message: str
) -> None:
    written(tmp_path)
    forge(tmp_path, change)
    with pytest.raises(SourceError, match=f"describes no complete checkpoint: .*{message}"):
        Checkpoint.open(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.update(n_rows=7), "has 2 rows, not 7"),
        (lambda t: t["attributes"].update(type="heap"), "no kind known here"),
        (lambda t: t["attributes"].update(type="list"), "other than list"),
        (lambda t: t["attributes"].update(ttl_time="Lunar"), "no kind known here"),
        (lambda t: t["shapes"].update(value="int"), "should hold 'int' is large_string"),
        (lambda t: t["shapes"].update(value="quaternion"), "this version does not know"),
        (lambda t: t["shapes"].pop("value"), "lacks the shape"),
    ],
)
def test_a_table_that_is_not_what_the_manifest_says_is_refused(
    tmp_path: Path, change: Callable[[Any], Any], message: str
) -> None:
    written(tmp_path)
    forge(tmp_path, lambda content: change(content["parts"][0]["tables"][0]))
    with pytest.raises(SourceError, match=message):
        read_all(tmp_path)


def test_the_files_are_arrow_files(tmp_path: Path) -> None:
    written(tmp_path)
    with pa.ipc.open_file(data_files(tmp_path)[0]) as reader:
        rows = reader.read_all().to_pylist()
    assert rows[0] == {"key_group": 0, "key": 0, "namespace": None, "value": "abc"}


def test_a_large_checkpoint_comes_back(tmp_path: Path) -> None:
    n = 20_000
    keys = [f"key {i}" for i in range(n)]
    state = KeyedStateSnapshot(
        Type.VALUE, None, keys, np.arange(n) % 8, [None] * n, [i / 7 for i in range(n)]
    )
    checkpoint = write_checkpoint(tmp_path, {"op": [OperatorSnapshot((0, 7), keyed_state={"v": state})]})
    assert entries(checkpoint, 0, 7) == {f"key {i}": i / 7 for i in range(n)}
    assert entries(checkpoint, 2, 3) == {f"key {i}": i / 7 for i in range(n) if i % 8 in (2, 3)}


# ---- backends ----


class Fired:
    def __init__(self) -> None:
        self.timers: list[Any] = []

    def on_event_time(self, timer: Any) -> None:
        self.timers.append((timer.timestamp_ms, timer.key))

    def on_processing_time(self, timer: Any) -> None:
        self.timers.append((timer.timestamp_ms, timer.key))


def new_backends(key_groups: tuple[int, int] | None = None) -> OperatorBackends:
    context, clock = KeyContext(KEY_GROUPS, key_groups, lambda key: int(key)), DrivenProcessingTimeService(0)
    state = KeyedStateBackend(context, clock)
    services = InternalTimeServiceManager(context, clock, state.set_current_key_id)
    return OperatorBackends(state, services, OperatorStateBackend())


def test_a_restored_operator_knows_its_watermark_and_fires_nothing_by_that(tmp_path: Path) -> None:
    state = {"v": keyed_state({2: "a"})}
    snapshot = OperatorSnapshot((0, 7), 50, {"t": timers([(40, 2), (60, 2)])}, state)
    checkpoint = write_checkpoint(tmp_path, {"op": [snapshot]})
    backends, fired = new_backends((0, 3)), Fired()
    assert backends.restore(checkpoint, "op", 0, 2) == 50
    assert backends.time_services is not None
    service = backends.time_services.get_internal_timer_service("t", fired)
    assert service.current_watermark() == 50
    assert fired.timers == []
    service.advance_watermark(50)
    assert fired.timers == [(40, 2)]


def test_what_is_restored_is_in_the_next_snapshot(tmp_path: Path) -> None:
    elements = OperatorStateSnapshot(DistributionMode.SPLIT_DISTRIBUTE, [1])
    snapshot = OperatorSnapshot(
        (0, 7), 50, {"t": timers([(60, 5), (60, 2)])}, {"v": keyed_state({2: "a", 5: 1})}, {"list": elements}
    )
    backends = new_backends()
    backends.restore(write_checkpoint(tmp_path / "1", {"op": [snapshot]}), "op", 0, 1)
    split = SplitPosition("s", 3)
    checkpoint = write_checkpoint(tmp_path / "2", {"op": [backends.snapshot(51, [split])]})
    assert entries(checkpoint, 0, 7) == {2: "a", 5: 1}
    (again,) = checkpoint.restore("op", (0, 7), KEY_GROUPS)
    assert timer_pairs(again.timers["t"]) == [(60, 5), (60, 2)]
    assert (checkpoint.operator_states("op", 1), checkpoint.splits("op")) == ([{"list": elements}], [split])
    assert checkpoint.watermark_ms("op") == 51


def test_a_damaged_file_leaves_the_backends_as_they_were(tmp_path: Path) -> None:
    elements = OperatorStateSnapshot(DistributionMode.UNION, [1])
    snapshot = OperatorSnapshot(
        (0, 7), 50, {"t": timers([(60, 5)])}, {"v": keyed_state({2: "a"})}, {"l": elements}
    )
    checkpoint = write_checkpoint(tmp_path, {"op": [snapshot]})
    for file in data_files(tmp_path):
        content = file.read_bytes()
        file.write_bytes(content[:-1])
        backends = new_backends()
        with pytest.raises(SourceError, match="truncated"):
            backends.restore(checkpoint, "op", 0, 1)
        assert backends.snapshot(MIN_TIMESTAMP) == OperatorSnapshot((0, 7))
        file.write_bytes(content)


def test_timers_of_keys_that_have_none_leave_no_key() -> None:
    snapshot = timers([(60, 5)])
    unused = InternalTimersSnapshot(
        [5, 6], [None], snapshot.event_time_timers, snapshot.processing_time_timers
    )
    backends = new_backends()
    assert backends.keyed_state is not None
    assert backends.time_services is not None
    backends.time_services.restore({"t": unused})
    assert len(backends.keyed_state.key_context) == 1
    backends.keyed_state.key_context._check()


def test_an_operator_without_keys_has_operator_state_only(tmp_path: Path) -> None:
    state = OperatorStateBackend()
    state.get_list_state(ListStateDescriptor("list")).update([1, 2])
    checkpoint = write_checkpoint(tmp_path, {"op": [OperatorBackends(operator_state=state).snapshot(7)]})
    restored = OperatorStateBackend()
    assert OperatorBackends(operator_state=restored).restore(checkpoint, "op", 1, 2) == 7
    assert restored.get_list_state(ListStateDescriptor("list")).get() == [2]


def test_a_state_is_restored_as_the_kind_it_was(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path, {"op": two_subtasks({0: 1}, {})})
    backends = new_backends()
    backends.restore(checkpoint, "op", 0, 1)
    assert backends.keyed_state is not None
    with pytest.raises(
        ConfigurationError, match="was restored as a value state, but is declared as ListState"
    ):
        backends.keyed_state.get_or_create_keyed_state(ListStateDescriptor("v"))
