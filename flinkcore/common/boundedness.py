"""Boundedness of sources: with or without an end."""

from enum import Enum


class Boundedness(Enum):
    """Boundedness of a source: with an end or without one.

    Notes
    -----
    Flink's ``org.apache.flink.api.connector.source.Boundedness``.
    """

    BOUNDED = "bounded"
    CONTINUOUS_UNBOUNDED = "continuous unbounded"
