"""Checkpoints: the state of operators in files, to be restored at any parallelism. Private."""

from flinkcore.checkpoint.checkpoint import Checkpoint
from flinkcore.checkpoint.checkpoint_directory import CheckpointDirectory
from flinkcore.checkpoint.checkpoint_manifest import CheckpointManifest, OperatorPart
from flinkcore.checkpoint.operator_backends import OperatorBackends
from flinkcore.checkpoint.operator_snapshot import OperatorSnapshot, SplitPosition
from flinkcore.checkpoint.pending_checkpoint import CheckpointWriter, PendingCheckpoint

__all__ = [
    "Checkpoint",
    "CheckpointDirectory",
    "CheckpointManifest",
    "CheckpointWriter",
    "OperatorBackends",
    "OperatorPart",
    "OperatorSnapshot",
    "PendingCheckpoint",
    "SplitPosition",
]
