"""Logs that are read in small batches and within small limits, where a job joins short ones otherwise."""

from dataclasses import replace

from flinkcore._internal.values.memory_limits import BATCH_BYTES
from flinkcore.datastream import StreamExecutionEnvironment


def read_in_batches_of(rows: int, env: StreamExecutionEnvironment, n_bytes: int = BATCH_BYTES) -> None:
    """Let jobs read batches of so many rows and bytes of a log at most, and hold few records of its times."""
    limit(env, batch_rows=rows, batch_bytes=n_bytes, record_bytes=100 * rows)


def read_within(open_chunks: int, held_bytes: int, env: StreamExecutionEnvironment) -> None:
    """Let jobs of an environment read so many chunks at once, and hold so many bytes of events in memory, at most."""
    limit(env, open_chunks=open_chunks, held_bytes=held_bytes)


def limit(env: StreamExecutionEnvironment, **limits: int) -> None:
    """Set some of the `MemoryLimits` of an environment's jobs."""
    config = env.get_config()
    config._memory_limits = replace(config._memory_limits, **limits)
