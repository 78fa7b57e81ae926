"""The id of a job."""

from __future__ import annotations

import os


class JobID(str):
    """The unique id of a job, as text: 32 hexadecimal digits.

    Notes
    -----
    Follows ``pyflink.common.JobID``.
    """

    __slots__ = ()

    @classmethod
    def generate(cls) -> JobID:
        """Return the id of a new job."""
        return cls(os.urandom(16).hex())
