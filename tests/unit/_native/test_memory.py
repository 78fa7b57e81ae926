"""Memory of large results that were given back serves the next ones."""

import gc
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from flinkcore._native.aggregates import Accumulators
from flinkcore._native.memory import kept_bytes

ROWS = 100_000
SCHEMA = pa.schema([("value", pa.int64())])


def sums(factor: int, rows: int = ROWS) -> pa.Array:
    """One sum per row, in 800 kB by default."""
    accumulators = Accumulators(SCHEMA, [("sum", "value", None)])
    accumulators.reserve(rows)
    entries = np.arange(rows, dtype=np.uint32)
    accumulators.update(pa.record_batch([pa.array(np.arange(rows) * factor)], schema=SCHEMA), entries)
    accumulators.emit(entries)
    return pa.array(accumulators.take()[0])


def test_a_result_that_is_gone_leaves_its_memory_to_the_next_and_one_that_is_there_keeps_it() -> None:
    first, second = sums(1), sums(2)
    before = kept_bytes()
    del first
    gc.collect()
    assert kept_bytes() >= before + 8 * ROWS
    third = sums(3)
    assert kept_bytes() < before + 8 * ROWS
    assert second.equals(pa.array(np.arange(ROWS) * 2))
    assert third.equals(pa.array(np.arange(ROWS) * 3))


def test_memory_in_huge_pages_is_kept_without_a_copy() -> None:
    result = sums(1, 8 * ROWS)
    address = result.buffers()[1].address
    del result
    gc.collect()
    assert sums(2, 8 * ROWS).buffers()[1].address == address


def test_memory_that_is_kept_has_a_limit() -> None:
    results = [sums(factor) for factor in range(120)]
    assert all(result[1].as_py() == factor for factor, result in enumerate(results))
    del results
    gc.collect()
    assert 0 < kept_bytes() <= 1 << 26


# Handlers of forks run last to first: one that is older than the module's own sees the process as a child inherits it.
FORK = """
import ctypes, os, signal, threading

amid_a_fork, has_taken = threading.Event(), threading.Event()
seen = []

@ctypes.CFUNCTYPE(None)
def look_on():
    amid_a_fork.set()
    seen.append(has_taken.wait(0.05))

ctypes.CDLL(None).__register_atfork(look_on, None, None, None)
from flinkcore._native.memory import kept_bytes

def take():
    amid_a_fork.wait()
    kept_bytes()
    has_taken.set()

threading.Thread(target=take).start()
child = os.fork()
if child == 0:
    signal.alarm(5)
    os._exit(0 if kept_bytes() == 0 else 1)
_, status = os.waitpid(child, 0)
assert seen == [False], "another thread is amid taking a block"
assert has_taken.wait(5)
assert os.waitstatus_to_exitcode(status) == 0, status
"""


@pytest.mark.skipif(sys.platform != "linux", reason="registers a handler of forks by a name of glibc")
def test_no_thread_is_amid_taking_a_block_when_a_process_forks_and_its_child_can_take_some() -> None:
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=30)
