"""Logs that are read in small batches and within small limits, where a job joins short ones otherwise."""

from flinkcore._internal.values.memory_limits import BATCH_BYTES
from flinkcore.datastream import StreamExecutionEnvironment


def read_in_batches_of(rows: int, env: StreamExecutionEnvironment, n_bytes: int = BATCH_BYTES) -> None:
    """Let jobs read batches of so many rows and bytes of a log at most, and hold few records of its times."""
    env.get_config()._batch_rows = rows
    env.get_config()._batch_bytes = n_bytes
    env.get_config()._record_bytes = 100 * rows


def read_within(open_chunks: int, held_bytes: int, env: StreamExecutionEnvironment) -> None:
    """Let jobs of an environment read so many chunks at once, and hold so many bytes of events in memory, at most."""
    env.get_config()._open_chunks = open_chunks
    env.get_config()._held_bytes = held_bytes
