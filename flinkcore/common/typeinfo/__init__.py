"""PyFlink's ``pyflink.common.typeinfo`` names: declared types of elements and of state."""

from flinkcore.common.typeinfo.basic_type_info import BasicType, BasicTypeInfo
from flinkcore.common.typeinfo.list_type_info import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
)
from flinkcore.common.typeinfo.map_type_info import MapTypeInfo
from flinkcore.common.typeinfo.pickled_bytes_type_info import PickledBytesTypeInfo
from flinkcore.common.typeinfo.row_type_info import RowTypeInfo
from flinkcore.common.typeinfo.sql_time_type_info import (
    DateTypeInfo,
    SqlTimeTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)
from flinkcore.common.typeinfo.tuple_type_info import TupleTypeInfo
from flinkcore.common.typeinfo.type_information import TypeInformation
from flinkcore.common.typeinfo.types import Types

__all__ = [
    "BasicArrayTypeInfo",
    "BasicType",
    "BasicTypeInfo",
    "DateTypeInfo",
    "ListTypeInfo",
    "MapTypeInfo",
    "ObjectArrayTypeInfo",
    "PickledBytesTypeInfo",
    "PrimitiveArrayTypeInfo",
    "RowTypeInfo",
    "SqlTimeTypeInfo",
    "TimeTypeInfo",
    "TimestampTypeInfo",
    "TupleTypeInfo",
    "TypeInformation",
    "Types",
]
