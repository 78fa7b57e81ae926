"""Savepoints of Flink, read and written without Java.

`open` returns operators, and their states as Arrow tables. `write` makes a savepoint of a checkpoint of flinkcore.
A job begins with a `SavepointSource`.
"""

from flinkcore.savepoints.beginning import SavepointSource
from flinkcore.savepoints.flink_operators import FlinkOperator, FlinkWindow
from flinkcore.savepoints.going_live import SavepointTarget
from flinkcore.savepoints.going_live import write_savepoint as write
from flinkcore.savepoints.java_types import (
    LOCAL_DATE,
    LOCAL_DATE_TIME,
    LOCAL_TIME,
    avro,
    enum,
    pojo,
    records_of,
    set_of,
)
from flinkcore.savepoints.next_offsets import NextOffsets, next_offsets
from flinkcore.savepoints.savepoint import Savepoint, SavepointOperator
from flinkcore.savepoints.savepoint import open_savepoint as open
from flinkcore.savepoints.state import ReadSettings, SavepointState

__all__ = [
    "LOCAL_DATE",
    "LOCAL_DATE_TIME",
    "LOCAL_TIME",
    "FlinkOperator",
    "FlinkWindow",
    "NextOffsets",
    "ReadSettings",
    "Savepoint",
    "SavepointOperator",
    "SavepointSource",
    "SavepointState",
    "SavepointTarget",
    "avro",
    "enum",
    "next_offsets",
    "open",
    "pojo",
    "records_of",
    "set_of",
    "write",
]
