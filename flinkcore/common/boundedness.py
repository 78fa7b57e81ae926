"""Whether a source ends by itself."""

from enum import Enum


class Boundedness(Enum):
    """Whether a source ends by itself.

    Notes
    -----
    Flink's ``org.apache.flink.api.connector.source.Boundedness``.
    """

    BOUNDED = "bounded"
    CONTINUOUS_UNBOUNDED = "continuous unbounded"
