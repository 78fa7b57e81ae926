"""Manifests of the rows that came to a partition, by which a reduce task notices lost rows and rows that came twice."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from flinkcore.errors import InternalError


@dataclass
class Senders:
    """Numbers of senders: of the chunks that one task reads, or of a partition of an operator.

    Attributes
    ----------
    ranges : list of list of int
        Ascending ranges without their ends, `[first, end]`, which do not touch.
    """

    ranges: list[list[int]] = field(default_factory=list)

    def add(self, number: int) -> None:
        """Add the number of a sender, greater than all others."""
        if self.ranges and self.ranges[-1][1] == number:
            self.ranges[-1][1] = number + 1
        else:
            self.ranges.append([number, number + 1])

    @property
    def total(self) -> int:
        """Number of senders."""
        return sum(end - first for first, end in self.ranges)


def packed_manifest(senders: Senders, rows: int, reported: dict[str, Any]) -> bytes:
    """Return a manifest.

    Parameters
    ----------
    senders : Senders
        Senders that have sent all their rows.
    rows : int
        Events that they have sent to the partition.
    reported : dict
        Their other reports.
    """
    return json.dumps({"senders": senders.ranges, "rows": rows} | reported).encode()


class ReceivedManifests:
    """The manifests that come to a partition.

    Parameters
    ----------
    senders : int
        Number of all that send to the partition.

    Attributes
    ----------
    rows : int
        Events that were sent.
    reported : list of dict
        The manifests.
    """

    def __init__(self, senders: int) -> None:
        self.rows = 0
        self.reported: list[dict[str, Any]] = []
        self._expected = senders
        self._ranges: list[tuple[int, int]] = []

    def add(self, payload: bytes) -> int:
        """Take a manifest, and return how many events it announces."""
        manifest = json.loads(payload)
        rows: int = manifest["rows"]
        self.rows += rows
        self._ranges += [(first, end) for first, end in manifest["senders"]]
        self.reported.append(manifest)
        return rows

    def check(self, partition: int, taken: int) -> None:
        """Assert that all senders have sent what they say, and each once.

        Parameters
        ----------
        partition : int
            Number of the partition.
        taken : int
            Events that the operator has taken.

        Raises
        ------
        InternalError
            If not.
        """
        senders, end, is_once = 0, 0, True
        for first, stop in sorted(self._ranges):
            is_once = is_once and first >= end
            senders, end = senders + stop - first, stop
        if not is_once or senders != self._expected or taken != self.rows:
            raise InternalError(
                f"partition {partition} got {taken:,} of {self.rows:,} events that {senders:,} of "
                f"{self._expected:,} senders sent{'' if is_once else ', some of them twice'}"
            )
