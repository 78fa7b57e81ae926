"""``Types``: the types that programs declare."""

from __future__ import annotations

from flinkcore.common.typeinfo.composite_types import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from flinkcore.common.typeinfo.type_information import PickledBytesTypeInfo, TypeInformation
from flinkcore.common.typeinfo.value_types import (
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
)


class Types:
    """Makes types of elements and of state.

    Notes
    -----
    Follows ``pyflink.common.Types``.

    Examples
    --------
    >>> Types.TUPLE([Types.STRING(), Types.INT()])
    TupleTypeInfo(String, Integer)
    >>> Types.ROW_NAMED(["user", "age"], [Types.STRING(), Types.INT()]).get_field_names()
    ['user', 'age']
    """

    @staticmethod
    def STRING() -> BasicTypeInfo:
        """Return the type of texts."""
        return BasicTypeInfo(BasicType.STRING)

    @staticmethod
    def BYTE() -> BasicTypeInfo:
        """Return the type of whole numbers of 8 bits."""
        return BasicTypeInfo(BasicType.BYTE)

    @staticmethod
    def BOOLEAN() -> BasicTypeInfo:
        """Return the type of truth values."""
        return BasicTypeInfo(BasicType.BOOLEAN)

    @staticmethod
    def SHORT() -> BasicTypeInfo:
        """Return the type of whole numbers of 16 bits."""
        return BasicTypeInfo(BasicType.SHORT)

    @staticmethod
    def INT() -> BasicTypeInfo:
        """Return the type of whole numbers of 32 bits."""
        return BasicTypeInfo(BasicType.INT)

    @staticmethod
    def LONG() -> BasicTypeInfo:
        """Return the type of whole numbers of 64 bits."""
        return BasicTypeInfo(BasicType.LONG)

    @staticmethod
    def FLOAT() -> BasicTypeInfo:
        """Return the type of floating point numbers of 32 bits."""
        return BasicTypeInfo(BasicType.FLOAT)

    @staticmethod
    def DOUBLE() -> BasicTypeInfo:
        """Return the type of floating point numbers of 64 bits."""
        return BasicTypeInfo(BasicType.DOUBLE)

    @staticmethod
    def CHAR() -> BasicTypeInfo:
        """Return the type of single characters."""
        return BasicTypeInfo(BasicType.CHAR)

    @staticmethod
    def BIG_INT() -> BasicTypeInfo:
        """Return the type of whole numbers of any size."""
        return BasicTypeInfo(BasicType.BIG_INT)

    @staticmethod
    def BIG_DEC() -> BasicTypeInfo:
        """Return the type of decimals."""
        return BasicTypeInfo(BasicType.BIG_DEC)

    @staticmethod
    def INSTANT() -> BasicTypeInfo:
        """Return the type of instants."""
        return BasicTypeInfo(BasicType.INSTANT)

    @staticmethod
    def SQL_DATE() -> DateTypeInfo:
        """Return the type of days."""
        return DateTypeInfo()

    @staticmethod
    def SQL_TIME() -> TimeTypeInfo:
        """Return the type of times of day."""
        return TimeTypeInfo()

    @staticmethod
    def SQL_TIMESTAMP() -> TimestampTypeInfo:
        """Return the type of moments."""
        return TimestampTypeInfo()

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> PickledBytesTypeInfo:
        """Return the type of any Python object."""
        return PickledBytesTypeInfo()

    @staticmethod
    def ROW(field_types: list[TypeInformation]) -> RowTypeInfo:
        """Return the type of rows with the fields f0, f1, ..."""
        return RowTypeInfo(field_types)

    @staticmethod
    def ROW_NAMED(field_names: list[str], field_types: list[TypeInformation]) -> RowTypeInfo:
        """Return the type of rows with names."""
        return RowTypeInfo(field_types, field_names)

    @staticmethod
    def TUPLE(field_types: list[TypeInformation]) -> TupleTypeInfo:
        """Return the type of tuples."""
        return TupleTypeInfo(field_types)

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInformation) -> PrimitiveArrayTypeInfo:
        """Return the type of arrays without nulls."""
        return PrimitiveArrayTypeInfo(element_type)

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInformation) -> BasicArrayTypeInfo:
        """Return the type of arrays of basic values."""
        return BasicArrayTypeInfo(element_type)

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInformation) -> ObjectArrayTypeInfo:
        """Return the type of arrays of values of any other type."""
        return ObjectArrayTypeInfo(element_type)

    @staticmethod
    def MAP(key_type_info: TypeInformation, value_type_info: TypeInformation) -> MapTypeInfo:
        """Return the type of dictionaries."""
        return MapTypeInfo(key_type_info, value_type_info)

    @staticmethod
    def LIST(element_type_info: TypeInformation) -> ListTypeInfo:
        """Return the type of lists."""
        return ListTypeInfo(element_type_info)
