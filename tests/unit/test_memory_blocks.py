"""Memory of large results that were given back serves the next ones."""

import gc
import subprocess
import sys

import numpy as np
import pyarrow as pa

from flinkcore._native.aggregates import Accumulators
from flinkcore._native.memory_blocks import kept_bytes

ROWS = 100_000
SCHEMA = pa.schema([("value", pa.int64())])


def sums(factor: int) -> pa.Array:
    """One sum per row, in 800 kB."""
    accumulators = Accumulators(SCHEMA, [("sum", "value", None)])
    accumulators.reserve(ROWS)
    entries = np.arange(ROWS, dtype=np.uint32)
    accumulators.update(pa.record_batch([pa.array(np.arange(ROWS) * factor)], schema=SCHEMA), entries)
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


def test_memory_that_is_kept_has_a_limit() -> None:
    results = [sums(factor) for factor in range(120)]
    assert all(result[1].as_py() == factor for factor, result in enumerate(results))
    del results
    gc.collect()
    assert 0 < kept_bytes() <= 1 << 26


FORK = """
import os, signal, threading, time
from flinkcore._native.memory_blocks import _hold, kept_bytes

holder = threading.Thread(target=_hold, args=(100,))
holder.start()
time.sleep(0.02)
child = os.fork()
if child == 0:
    signal.alarm(5)
    _hold(0)
    os._exit(0 if kept_bytes() == 0 else 1)
_, status = os.waitpid(child, 0)
_hold(0)
holder.join()
assert os.waitstatus_to_exitcode(status) == 0, status
"""


def test_a_child_of_a_fork_amid_the_taking_of_a_block_can_take_blocks() -> None:
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=30)
