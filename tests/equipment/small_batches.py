"""Logs that are read in small batches, where a job joins short ones otherwise."""

from flinkcore._internal.arrow.batch_bytes import BATCH_BYTES
from flinkcore.datastream import StreamExecutionEnvironment


def read_in_batches_of(rows: int, env: StreamExecutionEnvironment, n_bytes: int = BATCH_BYTES) -> None:
    """Let jobs of an environment read batches of so many rows of a log at most, and have none of more bytes."""
    env.get_config()._batch_rows = rows
    env.get_config()._batch_bytes = n_bytes
