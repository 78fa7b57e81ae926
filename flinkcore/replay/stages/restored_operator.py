"""What the stages of an operator go on from."""

from __future__ import annotations

from dataclasses import dataclass

from flinkcore.runtime.checkpoint import Checkpoint


@dataclass(frozen=True)
class RestoredOperator:
    """Where a checkpoint has what an operator held; picklable.

    Parameters
    ----------
    checkpoint : Checkpoint
    uid : str
        Of the operator.
    last_arrival_ms : int or None
        Of all that was before; None if there was no event.
    """

    checkpoint: Checkpoint
    uid: str
    last_arrival_ms: int | None
