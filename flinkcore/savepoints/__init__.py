"""Savepoints of Flink, read without Java: `open` returns operators, and their states as Arrow tables."""

from flinkcore.savepoints.savepoint import Savepoint, SavepointOperator
from flinkcore.savepoints.savepoint import open_savepoint as open
from flinkcore.savepoints.state import ReadSettings, SavepointState

__all__ = ["ReadSettings", "Savepoint", "SavepointOperator", "SavepointState", "open"]
