"""A checkpoint of a million keys, each with a value, or a value and a timer: taken, written, read and restored.

The baseline is what one writes without a library: keys, values and timers as lists through pickle, into a
dictionary and a heap. It has no checksums, key groups or namespaces, waits for no disk, and could not be
read in safety from somebody else. Both run in this process; setting up the operator's state is not counted.
`FLINKCORE_BENCH_EVENTS` sets the number of keys (1 M).
"""

from __future__ import annotations

import heapq
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.measuring import measure
from benchmarks.sizes import size
from flinkcore.checkpoint import Checkpoint, OperatorBackends, PendingCheckpoint
from flinkcore.common import MIN_TIMESTAMP
from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.state import KeyedStateBackend
from flinkcore.operators.timers import InternalTimeServiceManager
from flinkcore.operators.timers.processing_time import DrivenProcessingTimeService

KEYS = size(1_000_000)
MAX_PARALLELISM = 128


class NoTrigger:
    def on_event_time(self, timer: Any) -> None:
        pass

    def on_processing_time(self, timer: Any) -> None:
        pass


def new_backends() -> OperatorBackends:
    context, clock = KeyContext(MAX_PARALLELISM), DrivenProcessingTimeService(0)
    state = KeyedStateBackend(context, clock)
    return OperatorBackends(state, InternalTimeServiceManager(context, clock, state.set_current_key_id))


def filled(key_of: Callable[[int], Any], with_timers: bool, n_keys: int = KEYS) -> OperatorBackends:
    backends = new_backends()
    assert backends.keyed_state is not None
    assert backends.time_services is not None
    state = backends.keyed_state.get_or_create_keyed_state(ValueStateDescriptor("value"))
    timers = backends.time_services.get_internal_timer_service("user-timers", NoTrigger())
    for i in range(n_keys):
        backends.keyed_state.set_current_key(key_of(i * 7919))
        state.update(i)
        if with_timers:
            timers.register_event_time_timer(None, i * 31 % 1_000_003)
    return backends


@pytest.mark.parametrize("with_timers", [False, True], ids=["value", "value and timer"])
@pytest.mark.parametrize("key_of", [int, str], ids=["int", "str"])
def test_write_and_restore(
    benchmark: Any, tmp_path: Path, key_of: Callable[[int], Any], with_timers: bool
) -> None:
    backends = filled(key_of, with_timers)

    def run() -> OperatorBackends:
        with PendingCheckpoint.begin(tmp_path, MAX_PARALLELISM) as pending:
            pending.commit([pending.writer().write("op", 0, backends.snapshot(MIN_TIMESTAMP))])
        restored = new_backends()
        restored.restore(Checkpoint.open(tmp_path), "op", 0, 1)
        return restored

    restored = measure(benchmark, KEYS, "key", run)
    assert restored.time_services is not None
    assert restored.keyed_state is not None
    assert restored.time_services.num_event_time_timers() == KEYS * with_timers
    assert restored.keyed_state.num_key_value_state_entries() == KEYS


@pytest.mark.parametrize("key_of", [int, str], ids=["int", "str"])
def test_pickle(benchmark: Any, tmp_path: Path, key_of: Callable[[int], Any]) -> None:
    values = {key_of(i * 7919): i for i in range(KEYS)}
    timers = [(i * 31 % 1_000_003, key) for i, key in enumerate(values)]
    heapq.heapify(timers)
    path = tmp_path / "state.pickle"

    def run() -> dict[Any, int]:
        path.write_bytes(pickle.dumps((values, timers), protocol=5))
        restored: dict[Any, int]
        restored, _ = pickle.loads(path.read_bytes())
        return restored

    assert len(measure(benchmark, KEYS, "key", run)) == KEYS
