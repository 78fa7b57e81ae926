"""Runs the program of peers/pyflink_jobs.py by flinkcore, unedited: its `import pyflink` gives flinkcore.

    python -m benchmarks.flinkcore_programs JOB MODE EVENTS KEYS

Arguments and output are those of that program. The mode has no meaning: functions run in this process.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from flinkcore.datastream.connectors import Sink, SinkWriter, WriterContext


class Discard(Sink, SinkWriter):
    """A sink that takes elements nowhere, as Flink's DiscardingSink."""

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return self

    def write(self, element: Any) -> None:
        pass


if __name__ == "__main__":
    import_module("flinkcore.pyflink")
    import_module("benchmarks.peers.pyflink_jobs").main(Discard)
