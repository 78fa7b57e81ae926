"""Where a reader puts the records of its splits."""

from typing import Generic, Protocol, TypeVar

from flinkcore.common.watermark_generators import WatermarkOutput

T = TypeVar("T", contravariant=True)


class SourceOutput(WatermarkOutput, Protocol, Generic[T]):
    """Takes records, and watermarks and idleness where the source knows more than generators can.

    Notes
    -----
    Flink's ``org.apache.flink.api.connector.source.SourceOutput``.
    """

    def collect(self, record: T, timestamp_ms: int | None = None) -> None:
        """Emit a record.

        Parameters
        ----------
        record : object
        timestamp_ms : int or None
            The source's timestamp for it, such as that of a Kafka record, in ms since the epoch; None: the source
            gives none, and the timestamp assigner is passed -2**63.
        """


class ReaderOutput(SourceOutput[T], Protocol, Generic[T]):
    """The main output of a reader, and the maker of one output per split.

    Records of a split belong to the output of that split, which has a watermark generator and idleness of its
    own; records that belong to no split, to the main output.

    Notes
    -----
    Flink's ``org.apache.flink.api.connector.source.ReaderOutput``.
    """

    def create_output_for_split(self, split_id: str) -> SourceOutput[T]:
        """Return the output of a split, a new one at the first call and the same at each call after it."""

    def release_output_for_split(self, split_id: str) -> None:
        """Drop the output of a split that has ended, so that its watermark is waited for no longer."""
