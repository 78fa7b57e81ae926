"""Types of days, times of day and moments."""

from __future__ import annotations

import datetime
from typing import Any

from flinkcore.common.typeinfo.type_information import NO_CLASSES, Conversion, TypeInformation
from flinkcore.errors import DataError


class DateTypeInfo(TypeInformation):
    """Days: ``datetime.date``.

    Notes
    -----
    Follows ``pyflink.common.typeinfo.DateTypeInfo``.
    """

    def accepts(self, value: object) -> bool:
        """Return whether it is a date."""
        return isinstance(value, datetime.date)

    def plain_classes(self) -> frozenset[type]:
        """Return the class of dates."""
        return NO_CLASSES | {datetime.date}

    def is_immutable(self) -> bool:
        """Return True."""
        return True

    def to_arrow_type(self) -> Any:
        """Return date32."""
        import pyarrow as pa

        return pa.date32()

    def _parts(self) -> tuple[Any, ...]:
        return ()

    def __repr__(self) -> str:
        return "DateTypeInfo"


class TimeTypeInfo(TypeInformation):
    """Times of day: ``datetime.time``, to the second, as Java's ``Time`` has them.

    Notes
    -----
    Follows ``pyflink.common.typeinfo.TimeTypeInfo``.
    """

    def accepts(self, value: object) -> bool:
        """Return whether it is a time of day."""
        return isinstance(value, datetime.time)

    def conversion(self) -> Conversion:
        """Return what cuts off fractions of a second."""
        return _to_the_second

    def plain_classes(self) -> frozenset[type]:
        """Return the class of times of day."""
        return NO_CLASSES | {datetime.time}

    def is_immutable(self) -> bool:
        """Return True."""
        return True

    def to_arrow_type(self) -> Any:
        """Return time32 in seconds."""
        import pyarrow as pa

        return pa.time32("s")

    def _parts(self) -> tuple[Any, ...]:
        return ()

    def __repr__(self) -> str:
        return "TimeTypeInfo"


class TimestampTypeInfo(TypeInformation):
    """Moments: ``datetime.datetime``.

    Notes
    -----
    Follows ``pyflink.common.typeinfo.TimestampTypeInfo``, which sends them through the machine's time zone; here they
    stay as they are.
    """

    def accepts(self, value: object) -> bool:
        """Return whether it is a datetime."""
        return isinstance(value, datetime.datetime)

    def plain_classes(self) -> frozenset[type]:
        """Return the class of moments."""
        return NO_CLASSES | {datetime.datetime}

    def is_immutable(self) -> bool:
        """Return True."""
        return True

    def to_arrow_type(self) -> Any:
        """Return a timestamp in microseconds without a zone."""
        import pyarrow as pa

        return pa.timestamp("us")

    def _parts(self) -> tuple[Any, ...]:
        return ()

    def __repr__(self) -> str:
        return "TimestampTypeInfo"


def _to_the_second(value: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, datetime.time):
        raise DataError(f"{value!r} is no TimeTypeInfo")
    return value if value.microsecond == 0 else value.replace(microsecond=0)


class SqlTimeTypeInfo:
    """Makes the types of SQL's dates and times.

    Notes
    -----
    Follows ``pyflink.common.typeinfo.SqlTimeTypeInfo``.
    """

    @staticmethod
    def DATE() -> DateTypeInfo:
        """Return the type of days."""
        return DateTypeInfo()

    @staticmethod
    def TIME() -> TimeTypeInfo:
        """Return the type of times of day."""
        return TimeTypeInfo()

    @staticmethod
    def TIMESTAMP() -> TimestampTypeInfo:
        """Return the type of moments."""
        return TimestampTypeInfo()
