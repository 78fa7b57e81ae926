"""The table of q13: a value for each key."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from flinkcore.examples.nexmark.generator import splitmix64

KEYS: Final = 10_000


def side_input() -> pa.RecordBatch:
    """Return the table, with the columns `key` and `value`."""
    keys = np.arange(KEYS)
    values = [f"{value:016x}" for value in splitmix64(0, 0, keys).tolist()]
    return pa.record_batch({"key": keys, "value": values})
