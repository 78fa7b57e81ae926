"""PyFlink's ``pyflink.table.types`` names: the types that programs declare columns of files with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any, NoReturn, TypeVar

from flinkcore._internal.python.missing_features import MissingMethodError, refuse_name
from flinkcore._internal.values.row import Row
from flinkcore._internal.values.row_kind import RowKind
from flinkcore.common.typeinfo import RowTypeInfo, TypeInformation, Types
from flinkcore.errors import ConfigurationError

__all__ = [
    "ArrayType",
    "AtomicType",
    "BigIntType",
    "BinaryType",
    "BooleanType",
    "CharType",
    "DataType",
    "DataTypes",
    "DateType",
    "DecimalType",
    "DoubleType",
    "FloatType",
    "FractionalType",
    "IntType",
    "IntegralType",
    "ListViewType",
    "LocalZonedTimestampType",
    "MapType",
    "MapViewType",
    "NumericType",
    "Row",
    "RowField",
    "RowKind",
    "RowType",
    "SmallIntType",
    "TimeType",
    "TimestampType",
    "TinyIntType",
    "VarBinaryType",
    "VarCharType",
]

_MOST_LENGTH = 0x7FFFFFFF
_NO_TYPES_OF_COLUMNS = {
    *(
        "NULL",
        "MULTISET",
        "INTERVAL",
        "SECOND",
        "MINUTE",
        "HOUR",
        "DAY",
        "MONTH",
        "YEAR",
    ),
}
_Type = TypeVar("_Type", bound="DataType")


@dataclass(frozen=True, kw_only=True)
class DataType(ABC):
    """The type of a column.

    Notes
    -----
    Follows ``pyflink.table.types.DataType``. Whether a type is nullable is held, and not checked.
    """

    is_nullable: bool = True

    def not_null(self: _Type) -> _Type:
        """Return the type without nulls."""
        return replace(self, is_nullable=False)

    def nullable(self: _Type) -> _Type:
        """Return the type with nulls."""
        return replace(self, is_nullable=True)

    def bridged_to(self: _Type, conversion_cls: str) -> _Type:
        """Return the type as it is: values are never objects of the class of Java."""
        return self

    @classmethod
    def type_name(cls) -> str:
        """Return the name of the kind of type, such as "BIGINT"."""
        return cls.__name__[:-4].upper()

    @abstractmethod
    def type_info(self) -> TypeInformation:
        """Return the type of elements that are values of such a column."""

    def __str__(self) -> str:
        return self.type_name()

    def __repr__(self) -> str:
        parts = [repr(getattr(self, field.name)) for field in fields(self) if field.name != "is_nullable"]
        return f"{type(self).__name__}({', '.join([*parts, str(self.is_nullable).lower()])})"


class AtomicType(DataType):
    """A type of single values."""


class NumericType(AtomicType):
    """A type of numbers."""


class IntegralType(NumericType):
    """A type of whole numbers."""


class FractionalType(NumericType):
    """A type of other numbers."""


@dataclass(frozen=True, repr=False)
class CharType(AtomicType):
    """Texts; the length is not checked, as Flink's formats of files do not."""

    length: int = 1

    def type_info(self) -> TypeInformation:
        return Types.STRING()


class VarCharType(CharType):
    """Texts; the length is not checked, as Flink's formats of files do not."""


@dataclass(frozen=True, repr=False)
class BinaryType(AtomicType):
    """Bytes; the length is not checked, as Flink's formats of files do not."""

    length: int = 1

    def type_info(self) -> TypeInformation:
        return Types.PRIMITIVE_ARRAY(Types.BYTE())


class VarBinaryType(BinaryType):
    """Bytes; the length is not checked, as Flink's formats of files do not."""


class BooleanType(AtomicType):
    """Truth values."""

    def type_info(self) -> TypeInformation:
        return Types.BOOLEAN()


class TinyIntType(IntegralType):
    """Whole numbers of 8 bits."""

    def type_info(self) -> TypeInformation:
        return Types.BYTE()


class SmallIntType(IntegralType):
    """Whole numbers of 16 bits."""

    def type_info(self) -> TypeInformation:
        return Types.SHORT()


class IntType(IntegralType):
    """Whole numbers of 32 bits."""

    def type_info(self) -> TypeInformation:
        return Types.INT()


class BigIntType(IntegralType):
    """Whole numbers of 64 bits."""

    def type_info(self) -> TypeInformation:
        return Types.LONG()


class FloatType(FractionalType):
    """Floating point numbers of 32 bits."""

    def type_info(self) -> TypeInformation:
        return Types.FLOAT()


class DoubleType(FractionalType):
    """Floating point numbers of 64 bits."""

    def type_info(self) -> TypeInformation:
        return Types.DOUBLE()


@dataclass(frozen=True, repr=False)
class DecimalType(FractionalType):
    """Decimals.

    Parameters
    ----------
    precision : int
        Digits in all, from 1 to 38.
    scale : int
        Digits after the point, from 0 to the precision.

    Raises
    ------
    ConfigurationError
        If they are not in this range.
    """

    precision: int = 10
    scale: int = 0

    def __post_init__(self) -> None:
        if not (1 <= self.precision <= 38 and 0 <= self.scale <= self.precision):
            raise ConfigurationError(
                f"a decimal has 1 to 38 digits, none or some after the point, not {self.precision} and {self.scale}"
            )

    def type_info(self) -> TypeInformation:
        return Types.BIG_DEC()

    def rounded(self, value: Decimal) -> Decimal | None:
        """Return a value with the digits of the type, rounded half up; None if it is too large for it, as in Flink."""
        try:
            return value.quantize(Decimal(1).scaleb(-self.scale), ROUND_HALF_UP, Context(prec=self.precision))
        except InvalidOperation:
            return None


class DateType(AtomicType):
    """Days: ``datetime.date``."""

    def type_info(self) -> TypeInformation:
        return Types.SQL_DATE()


@dataclass(frozen=True, repr=False)
class TimeType(AtomicType):
    """Times of day: ``datetime.time``, with so many digits of the second."""

    precision: int = 0

    def type_info(self) -> TypeInformation:
        return Types.SQL_TIME()


@dataclass(frozen=True, repr=False)
class TimestampType(AtomicType):
    """Moments without a time zone: ``datetime.datetime``."""

    precision: int = 6

    def type_info(self) -> TypeInformation:
        return Types.SQL_TIMESTAMP()


@dataclass(frozen=True, repr=False)
class LocalZonedTimestampType(AtomicType):
    """Moments: ``Instant``."""

    precision: int = 6

    def type_info(self) -> TypeInformation:
        return Types.INSTANT()


@dataclass(frozen=True, repr=False)
class ArrayType(DataType):
    """Lists of elements of one type."""

    element_type: DataType

    def __post_init__(self) -> None:
        _require(self.element_type, "an element of an array")

    def type_info(self) -> TypeInformation:
        return Types.LIST(self.element_type.type_info())


@dataclass(frozen=True, repr=False)
class MapType(DataType):
    """Dictionaries."""

    key_type: DataType
    value_type: DataType

    def __post_init__(self) -> None:
        _require(self.key_type, "a key of a map")
        _require(self.value_type, "a value of a map")

    def type_info(self) -> TypeInformation:
        return Types.MAP(self.key_type.type_info(), self.value_type.type_info())


class _ViewType(DataType):
    def type_info(self) -> NoReturn:
        raise ConfigurationError(
            f"{self!r} is the type of a view in an accumulator alone. Take DataTypes.ARRAY or DataTypes.MAP"
        )


@dataclass(frozen=True, repr=False)
class ListViewType(_ViewType):
    """Lists in accumulators."""

    element_type: DataType

    def __post_init__(self) -> None:
        _require(self.element_type, "an element of a view")


@dataclass(frozen=True, repr=False)
class MapViewType(_ViewType):
    """Maps in accumulators."""

    key_type: DataType
    value_type: DataType

    def __post_init__(self) -> None:
        _require(self.key_type, "a key of a view")
        _require(self.value_type, "a value of a view")


@dataclass(frozen=True)
class RowField:
    """A field of a row."""

    name: str
    data_type: DataType
    description: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise ConfigurationError(f"a field's name is a text, not {self.name!r}")
        _require(self.data_type, f"the field {self.name!r}")

    def __repr__(self) -> str:
        return f"RowField({self.name}, {self.data_type!r}, {self.description or '...'})"

    def __str__(self) -> str:
        return f"RowField({self.name}, {self.data_type})"


@dataclass(frozen=True)
class RowType(DataType):
    """Rows with a name and a type for each field."""

    fields: tuple[RowField, ...] = ()

    def __post_init__(self) -> None:
        for field in self.fields:
            if not isinstance(field, RowField):
                raise ConfigurationError(
                    f"a field of a row is DataTypes.FIELD('name', DataTypes.INT()), not {field!r}"
                )

    def add(self, field: RowField | str, data_type: DataType | None = None) -> RowType:
        """Return the type with a further field, given as such or by name and type."""
        if isinstance(field, str):
            _require(data_type, f"the field {field!r}")
            field = RowField(field, data_type)  # type: ignore[arg-type]
        return replace(self, fields=(*self.fields, field))

    @property
    def names(self) -> list[str]:
        """The names of the fields."""
        return self.field_names()

    def field_names(self) -> list[str]:
        """Return the names of the fields."""
        return [field.name for field in self.fields]

    def field_types(self) -> list[DataType]:
        """Return the types of the fields."""
        return [field.data_type for field in self.fields]

    def type_info(self) -> RowTypeInfo:
        return RowTypeInfo([field.data_type.type_info() for field in self.fields], self.field_names())

    def __iter__(self) -> Iterator[RowField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, key: str | int) -> RowField:
        if isinstance(key, int):
            return self.fields[key]
        for field in self.fields:
            if field.name == key:
                return field
        raise KeyError(f"no field is named {key!r}; there are {', '.join(self.field_names())}")

    def __repr__(self) -> str:
        return f"RowType({','.join(map(repr, self.fields))})"


class _OfColumns(type):
    def __getattr__(cls, name: str) -> NoReturn:
        if name in _NO_TYPES_OF_COLUMNS:
            raise MissingMethodError(
                f"flinkcore has no DataTypes.{name}: no column of a file has such a type"
            )
        raise AttributeError(f"DataTypes has no type {name!r}")


class DataTypes(metaclass=_OfColumns):
    """Makes types of columns.

    Notes
    -----
    Follows ``pyflink.table.DataTypes``. Types that no file's column has (intervals, multisets) are not there.

    Examples
    --------
    >>> DataTypes.ROW([DataTypes.FIELD("id", DataTypes.BIGINT())])
    RowType(RowField(id, BigIntType(true), ...))
    """

    @staticmethod
    def CHAR(length: int, nullable: bool = True) -> CharType:
        """Return the type of texts of a fixed length."""
        return CharType(length, is_nullable=nullable)

    @staticmethod
    def VARCHAR(length: int, nullable: bool = True) -> VarCharType:
        """Return the type of texts up to a length."""
        return VarCharType(length, is_nullable=nullable)

    @staticmethod
    def STRING(nullable: bool = True) -> VarCharType:
        """Return the type of texts."""
        return DataTypes.VARCHAR(_MOST_LENGTH, nullable)

    @staticmethod
    def BOOLEAN(nullable: bool = True) -> BooleanType:
        """Return the type of truth values."""
        return BooleanType(is_nullable=nullable)

    @staticmethod
    def BINARY(length: int, nullable: bool = True) -> BinaryType:
        """Return the type of bytes of a fixed length."""
        return BinaryType(length, is_nullable=nullable)

    @staticmethod
    def VARBINARY(length: int, nullable: bool = True) -> VarBinaryType:
        """Return the type of bytes up to a length."""
        return VarBinaryType(length, is_nullable=nullable)

    @staticmethod
    def BYTES(nullable: bool = True) -> VarBinaryType:
        """Return the type of bytes."""
        return DataTypes.VARBINARY(_MOST_LENGTH, nullable)

    @staticmethod
    def DECIMAL(precision: int, scale: int, nullable: bool = True) -> DecimalType:
        """Return the type of decimals with so many digits, and so many of them after the point."""
        return DecimalType(precision, scale, is_nullable=nullable)

    @staticmethod
    def TINYINT(nullable: bool = True) -> TinyIntType:
        """Return the type of whole numbers of 8 bits."""
        return TinyIntType(is_nullable=nullable)

    @staticmethod
    def SMALLINT(nullable: bool = True) -> SmallIntType:
        """Return the type of whole numbers of 16 bits."""
        return SmallIntType(is_nullable=nullable)

    @staticmethod
    def INT(nullable: bool = True) -> IntType:
        """Return the type of whole numbers of 32 bits."""
        return IntType(is_nullable=nullable)

    @staticmethod
    def BIGINT(nullable: bool = True) -> BigIntType:
        """Return the type of whole numbers of 64 bits."""
        return BigIntType(is_nullable=nullable)

    @staticmethod
    def FLOAT(nullable: bool = True) -> FloatType:
        """Return the type of floating point numbers of 32 bits."""
        return FloatType(is_nullable=nullable)

    @staticmethod
    def DOUBLE(nullable: bool = True) -> DoubleType:
        """Return the type of floating point numbers of 64 bits."""
        return DoubleType(is_nullable=nullable)

    @staticmethod
    def DATE(nullable: bool = True) -> DateType:
        """Return the type of days."""
        return DateType(is_nullable=nullable)

    @staticmethod
    def TIME(precision: int = 0, nullable: bool = True) -> TimeType:
        """Return the type of times of day."""
        return TimeType(precision, is_nullable=nullable)

    @staticmethod
    def TIMESTAMP(precision: int = 6, nullable: bool = True) -> TimestampType:
        """Return the type of moments without a time zone."""
        return TimestampType(precision, is_nullable=nullable)

    @staticmethod
    def TIMESTAMP_WITH_LOCAL_TIME_ZONE(precision: int = 6, nullable: bool = True) -> LocalZonedTimestampType:
        """Return the type of moments."""
        return LocalZonedTimestampType(precision, is_nullable=nullable)

    @staticmethod
    def TIMESTAMP_LTZ(precision: int = 6, nullable: bool = True) -> LocalZonedTimestampType:
        """Return the type of moments."""
        return LocalZonedTimestampType(precision, is_nullable=nullable)

    @staticmethod
    def ARRAY(element_type: DataType, nullable: bool = True) -> ArrayType:
        """Return the type of lists."""
        return ArrayType(element_type, is_nullable=nullable)

    @staticmethod
    def MAP(key_type: DataType, value_type: DataType, nullable: bool = True) -> MapType:
        """Return the type of dictionaries."""
        return MapType(key_type, value_type, is_nullable=nullable)

    @staticmethod
    def LIST_VIEW(element_type: DataType) -> ListViewType:
        """Return the type of lists in accumulators."""
        return ListViewType(element_type, is_nullable=False)

    @staticmethod
    def MAP_VIEW(key_type: DataType, value_type: DataType) -> MapViewType:
        """Return the type of maps in accumulators."""
        return MapViewType(key_type, value_type, is_nullable=False)

    @staticmethod
    def ROW(row_fields: Sequence[RowField] = (), nullable: bool = True) -> RowType:
        """Return the type of rows."""
        return RowType(tuple(row_fields), is_nullable=nullable)

    @staticmethod
    def FIELD(name: str, data_type: DataType, description: str | None = None) -> RowField:
        """Return a field of a row."""
        return RowField(name, data_type, description)


def _require(value: Any, place: str) -> None:
    if not isinstance(value, DataType):
        raise ConfigurationError(f"{place} has a type such as DataTypes.INT(), not {value!r}")


def __getattr__(name: str) -> NoReturn:
    """Report what to use instead of names that PyFlink has and flinkcore does not."""
    refuse_name(__name__, name)
