"""Checkpoints: the state of operators in files, to be restored at any parallelism."""

from flinkcore.runtime.checkpoint.checkpoint import Checkpoint
from flinkcore.runtime.checkpoint.checkpoint_manifest import CheckpointManifest, OperatorPart
from flinkcore.runtime.checkpoint.checkpoint_storage import CheckpointStorage
from flinkcore.runtime.checkpoint.operator_backends import OperatorBackends
from flinkcore.runtime.checkpoint.operator_snapshot import OperatorSnapshot, SplitPosition
from flinkcore.runtime.checkpoint.pending_checkpoint import CheckpointWriter, PendingCheckpoint

__all__ = [
    "Checkpoint",
    "CheckpointManifest",
    "CheckpointStorage",
    "CheckpointWriter",
    "OperatorBackends",
    "OperatorPart",
    "OperatorSnapshot",
    "PendingCheckpoint",
    "SplitPosition",
]
