"""Random logs of events of a few users in four splits, out of order, some with equal arrivals."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def random_log(seed: int, rows: int, *, latest_ms: int = 30, users: int = 40) -> pa.Table:
    """A log whose rows are up to so late, and up to 7 ms early; ``row`` is their number."""
    random = np.random.default_rng(seed)
    arrival = np.cumsum(random.choice([0, 0, 1, 2, 9], rows))
    return pa.table(
        {
            "ts": arrival + random.integers(-latest_ms, 8, rows),
            "at": arrival,
            "part": random.choice([7, 7, 7, 1, 2, 3], rows),
            "user": [f"u{i}" for i in random.integers(0, users, rows)],
            "row": range(rows),
        }
    )


def in_files(log: pa.Table, folder: Path, *, file_rows: int = 1000) -> Path:
    """The folder, with the log in Parquet files of some row groups each."""
    for first in range(0, len(log), file_rows):
        part = log.slice(first, file_rows)
        pq.write_table(part, folder / f"{first // file_rows}.parquet", row_group_size=300)
    return folder
