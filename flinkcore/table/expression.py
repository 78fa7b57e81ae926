"""PyFlink's ``pyflink.table.expression``: expressions over columns, which Flink resolves and plans."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from flinkcore._internal.python.missing_features import refuse_name
from flinkcore.table.calls import Call, Recorded, called, java_name, shown
from flinkcore.table.types import DataType, DataTypes

__all__ = [
    "Expression",
    "JsonExistsOnError",
    "JsonOnNull",
    "JsonQueryOnEmptyOrError",
    "JsonQueryWrapper",
    "JsonType",
    "JsonValueOnEmptyOrError",
    "TimeIntervalUnit",
    "TimePointUnit",
]

T = TypeVar("T")

_PROPERTY_NAMES: Final = """
abs acos array_agg asc ascii asin atan avg bin cardinality char_length chr collect cos cosh cot count day days
degrees desc distinct element end exp first_value flatten from_base64 hex hour hours init_cap is_false is_not_false
is_not_null is_not_true is_null is_true last_value ln log10 log2 lower_case map_entries map_keys map_values max md5
milli millis min minute minutes month months proctime quarter quarters radians reverse rowtime second seconds sha1
sha224 sha256 sha384 sha512 sign sin sinh sqrt start stddev_pop stddev_samp sum sum0 tan tanh to_base64 to_date
to_time to_timestamp unhex upper_case var_pop var_samp week weeks year years
"""
PROPERTIES: Final = frozenset(_PROPERTY_NAMES.split())
"""Methods of Flink's expressions without arguments that PyFlink has as properties."""

_METHOD_NAMES: Final = """
array_append array_concat array_contains array_distinct array_except array_intersect array_max array_min
array_position array_prepend array_remove array_reverse array_slice array_union as_argument at between
bitmap_and bitmap_and_agg bitmap_and_cardinality_agg bitmap_andnot bitmap_build bitmap_build_agg
bitmap_build_cardinality_agg bitmap_cardinality bitmap_from_bytes bitmap_or bitmap_or_agg bitmap_or_cardinality_agg
bitmap_to_array bitmap_to_bytes bitmap_to_string bitmap_xor bitmap_xor_agg bitmap_xor_cardinality_agg btrim cast
ceil concat decode elt encode ends_with extract floor get if_null in_ inet_aton inet_ntoa instr is_json json_exists
json_quote json_unquote left like list_agg locate log lpad ltrim map_union not_between object_update over overlay
parse_url percentile position printf regexp regexp_count regexp_extract regexp_extract_all regexp_instr
regexp_replace regexp_substr repeat replace right round rpad rtrim sha2 similar split split_index starts_with
str_to_map substr substring then translate trim trim_leading trim_trailing truncate try_cast url_decode url_encode
"""
METHODS: Final = frozenset(_METHOD_NAMES.split())
"""Methods of Flink's expressions that PyFlink has as methods."""

_OPTIONAL_NAMES: Final = """
array_slice btrim ceil floor is_json json_exists like list_agg locate log ltrim overlay parse_url
percentile regexp_extract regexp_extract_all rtrim str_to_map substr substring trim trim_leading trim_trailing truncate
"""
_OPTIONAL: Final = frozenset(_OPTIONAL_NAMES.split())
"""Methods whose last arguments PyFlink leaves out where they are None."""

_OPERATORS: Final = {
    "__lt__": ("<", "isLess"),
    "__gt__": (">", "isGreater"),
    "__le__": ("<=", "isLessOrEqual"),
    "__ge__": (">=", "isGreaterOrEqual"),
    "__eq__": ("==", "isEqual"),
    "__ne__": ("!=", "isNotEqual"),
    "__and__": ("&", "and"),
    "__or__": ("|", "or"),
    "__add__": ("+", "plus"),
    "__sub__": ("-", "minus"),
    "__mul__": ("*", "times"),
    "__truediv__": ("/", "dividedBy"),
    "__mod__": ("%", "mod"),
    "__pow__": ("**", "power"),
}
_REFLECTED: Final = frozenset(
    ("__and__", "__or__", "__add__", "__sub__", "__mul__", "__truediv__", "__mod__", "__pow__")
)


class Expression(Recorded, Generic[T]):
    """An expression over the columns of a table; made by ``col``, ``lit`` and other functions.

    It has PyFlink's operators, properties such as ``sum`` and ``is_null``, and methods such as ``cast`` and
    ``substring``; any other attribute is a field of a row, as of ``get``. Flink resolves it when the query is planned,
    and refuses it then.

    Notes
    -----
    Follows ``pyflink.table.Expression``.
    """

    def alias(self, name: str, *extra_names: str) -> Expression[T]:
        """Return the expression under a name, or several ones of a table function."""
        return Expression(called(self, "alias", "as", (name, *extra_names)))

    def json_value(
        self,
        path: str,
        returning_type: DataType | None = None,
        on_empty: JsonValueOnEmptyOrError | None = None,
        default_on_empty: Any = None,
        on_error: JsonValueOnEmptyOrError | None = None,
        default_on_error: Any = None,
    ) -> Expression[Any]:
        """Return the scalar at a path of a JSON text, by default as ``STRING``, and null where nothing is found."""
        found = (
            path,
            returning_type or DataTypes.STRING(),
            on_empty or JsonValueOnEmptyOrError.NULL,
            default_on_empty,
            on_error or JsonValueOnEmptyOrError.NULL,
            default_on_error,
        )
        return Expression(called(self, "json_value", "jsonValue", found))

    def json_query(
        self,
        path: str,
        wrapping_behavior: JsonQueryWrapper | None = None,
        on_empty: JsonQueryOnEmptyOrError | None = None,
        on_error: JsonQueryOnEmptyOrError | None = None,
    ) -> Expression[Any]:
        """Return the JSON at a path of a JSON text, by default null where nothing is found."""
        found = (
            path,
            wrapping_behavior or JsonQueryWrapper.WITHOUT_ARRAY,
            on_empty or JsonQueryOnEmptyOrError.NULL,
            on_error or JsonQueryOnEmptyOrError.NULL,
        )
        return Expression(called(self, "json_query", "jsonQuery", found))

    def __abs__(self) -> Expression[Any]:
        return Expression(Call("abs", self, (), f"abs({self})"))

    def __neg__(self) -> Expression[Any]:
        return Expression(Call("negative", "Expressions", (self,), f"-{self}"))

    def __invert__(self) -> Expression[Any]:
        return Expression(Call("isNotTrue", self, (), f"~{self}"))

    def __getitem__(self, index: Any) -> Expression[Any]:
        return Expression(Call("at", self, (index,), f"{self}[{shown(index)}]"))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"'Expression' object has no attribute {name!r}")
        if name in PROPERTIES:
            return Expression(Call(java_name(name), self, (), f"{self}.{name}"))
        if name in METHODS:
            return _Method(self, name)
        return Expression(Call("get", self, (name,), f"{self}.{name}"))

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *PROPERTIES, *METHODS})

    def __bool__(self) -> bool:
        raise TypeError(
            f"{self} has no truth value before the query runs. Join conditions by & and |, in parentheses, and negate "
            "one by ~"
        )

    def __iter__(self) -> Any:
        raise TypeError(f"{self} cannot be iterated over")

    __hash__ = Recorded.__hash__

    if TYPE_CHECKING:

        def __lt__(self, other: Any) -> Expression[bool]: ...
        def __gt__(self, other: Any) -> Expression[bool]: ...
        def __le__(self, other: Any) -> Expression[bool]: ...
        def __ge__(self, other: Any) -> Expression[bool]: ...
        def __eq__(self, other: Any) -> Expression[bool]: ...  # type: ignore[override]
        def __ne__(self, other: Any) -> Expression[bool]: ...  # type: ignore[override]
        def __and__(self, other: Any) -> Expression[bool]: ...
        def __or__(self, other: Any) -> Expression[bool]: ...
        def __rand__(self, other: Any) -> Expression[bool]: ...
        def __ror__(self, other: Any) -> Expression[bool]: ...
        def __add__(self, other: Any) -> Expression[Any]: ...
        def __sub__(self, other: Any) -> Expression[Any]: ...
        def __mul__(self, other: Any) -> Expression[Any]: ...
        def __truediv__(self, other: Any) -> Expression[Any]: ...
        def __mod__(self, other: Any) -> Expression[Any]: ...
        def __pow__(self, other: Any) -> Expression[Any]: ...
        def __radd__(self, other: Any) -> Expression[Any]: ...
        def __rsub__(self, other: Any) -> Expression[Any]: ...
        def __rmul__(self, other: Any) -> Expression[Any]: ...
        def __rtruediv__(self, other: Any) -> Expression[Any]: ...
        def __rmod__(self, other: Any) -> Expression[Any]: ...
        def __rpow__(self, other: Any) -> Expression[Any]: ...


class _Method:
    """A method of an expression that is not called yet."""

    def __init__(self, target: Expression[Any], name: str) -> None:
        self._target, self._name = target, name

    def __call__(self, *arguments: Any, **named: Any) -> Expression[Any]:
        if named:
            raise TypeError(f"{self._name}() takes its arguments by position: leave out {', '.join(named)}=")
        given = list(arguments)
        while given and given[-1] is None and self._name in _OPTIONAL:
            given.pop()
        return Expression(called(self._target, self._name, java_name(self._name), tuple(given)))

    def __repr__(self) -> str:
        return f"{self._target}.{self._name}"


def _operator(sign: str, method: str) -> Any:
    def operate(self: Expression[Any], other: Any) -> Expression[Any]:
        return Expression(Call(method, self, (other,), f"({self} {sign} {shown(other)})"))

    return operate


def _reflected(sign: str, method: str) -> Any:
    def operate(self: Expression[Any], other: Any) -> Expression[Any]:
        literal: Expression[Any] = Expression(called("Expressions", "lit", "lit", (other,)))
        return Expression(Call(method, literal, (self,), f"({shown(other)} {sign} {self})"))

    return operate


for _name, (_sign, _java) in _OPERATORS.items():
    setattr(Expression, _name, _operator(_sign, _java))
    if _name in _REFLECTED:
        setattr(Expression, f"__r{_name[2:]}", _reflected(_sign, _java))


class TimeIntervalUnit(Enum):
    """Units of intervals, of ``extract``, ``floor`` and ``ceil``."""

    YEAR = 0
    YEAR_TO_MONTH = 1
    QUARTER = 2
    MONTH = 3
    WEEK = 4
    DAY = 5
    DAY_TO_HOUR = 6
    DAY_TO_MINUTE = 7
    DAY_TO_SECOND = 8
    HOUR = 9
    SECOND = 10
    HOUR_TO_MINUTE = 11
    HOUR_TO_SECOND = 12
    MINUTE = 13
    MINUTE_TO_SECOND = 14


class TimePointUnit(Enum):
    """Units of points in time, of ``timestamp_diff``."""

    YEAR = 0
    MONTH = 1
    DAY = 2
    HOUR = 3
    MINUTE = 4
    SECOND = 5
    QUARTER = 6
    WEEK = 7
    MILLISECOND = 8
    MICROSECOND = 9


class JsonType(Enum):
    """Types of JSON, of ``is_json``."""

    VALUE = 0
    SCALAR = 1
    ARRAY = 2
    OBJECT = 3


class JsonExistsOnError(Enum):
    """Results of ``json_exists`` for texts that are not JSON."""

    TRUE = 0
    FALSE = 1
    UNKNOWN = 2
    ERROR = 3


class JsonValueOnEmptyOrError(Enum):
    """Results of ``json_value`` where nothing is found."""

    NULL = 0
    ERROR = 1
    DEFAULT = 2


class JsonQueryWrapper(Enum):
    """Cases in which ``json_query`` puts results into an array."""

    WITHOUT_ARRAY = 0
    CONDITIONAL_ARRAY = 1
    UNCONDITIONAL_ARRAY = 2


class JsonQueryOnEmptyOrError(Enum):
    """Results of ``json_query`` where nothing is found."""

    NULL = 0
    EMPTY_ARRAY = 1
    EMPTY_OBJECT = 2
    ERROR = 3


class JsonOnNull(Enum):
    """Treatment of nulls in JSON that is made."""

    NULL = 0
    ABSENT = 1


def __getattr__(name: str) -> Any:
    """Report what to use instead of a name of PyFlink's that flinkcore does not have."""
    refuse_name(__name__, name)
