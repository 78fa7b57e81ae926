"""The time that a job's source functions run on."""

from enum import Enum


class TimeCharacteristic(Enum):
    """Characteristic of time: timestamps and watermarks of source functions, and the default interval.

    Notes
    -----
    ``pyflink.datastream.TimeCharacteristic`` of Flink 1.20; Flink 2 no longer has it.
    """

    ProcessingTime = 0
    """The time of the machine when a record is processed: no timestamps, no watermarks."""

    IngestionTime = 1
    """The time of the machine when a record enters: the source makes timestamps and watermarks."""

    EventTime = 2
    """The time that the records themselves carry."""

    @property
    def auto_watermark_interval_ms(self) -> int:
        """Return the auto-watermark interval of this characteristic, in ms; 0 without periodic watermarks."""
        return 0 if self is TimeCharacteristic.ProcessingTime else 200
