"""PyFlink's ``pyflink.table.udf``: functions of users that Flink SQL calls, and how they are declared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from flinkcore._internal.python.missing_features import MissingMethodError, refuse_name
from flinkcore.errors import ArgumentTypeError, ConfigurationError
from flinkcore.table.types import (
    ArrayType,
    BinaryType,
    CharType,
    DataType,
    DecimalType,
    ListViewType,
    LocalZonedTimestampType,
    MapType,
    MapViewType,
    RowType,
    TimestampType,
    TimeType,
)

if TYPE_CHECKING:
    from flinkcore.table.expression import Expression

__all__ = [
    "AggregateFunction",
    "DeclaredFunction",
    "FunctionContext",
    "ScalarFunction",
    "TableFunction",
    "UserDefinedFunction",
    "udaf",
    "udf",
    "udtf",
]

_FUNCTION_TYPES: Final = ("general", "pandas")


class FunctionContext:
    """The argument of `open` of a function.

    Notes
    -----
    Follows ``pyflink.table.FunctionContext``; a replay has neither its metrics nor its job parameters.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"'FunctionContext' object has no attribute {name!r}")
        raise MissingMethodError(
            f"flinkcore's FunctionContext has no {name}: give the function what it needs when it is made"
        )


class UserDefinedFunction:
    """A function of a user, for which SQL has a name.

    Notes
    -----
    Follows ``pyflink.table.UserDefinedFunction``. `close` is not called.
    """

    def open(self, function_context: FunctionContext) -> None:
        """Prepare the function; called once in each process that calls it, before the first call."""

    def close(self) -> None:
        """Do nothing; functions of PyFlink override it."""

    def is_deterministic(self) -> bool:
        """Return whether the function returns the same for the same values, as replays need it."""
        return True


class ScalarFunction(UserDefinedFunction, ABC):
    """Makes a value of the values of a row.

    Notes
    -----
    Follows ``pyflink.table.ScalarFunction``.
    """

    @abstractmethod
    def eval(self, *args: Any) -> Any:
        """Return the value for the values of a row."""


class TableFunction(UserDefinedFunction, ABC):
    """Makes rows of the values of a row.

    Notes
    -----
    Follows ``pyflink.table.TableFunction``.
    """

    @abstractmethod
    def eval(self, *args: Any) -> Iterable[Any]:
        """Yield the rows: tuples, or values where there is one column."""


class AggregateFunction(UserDefinedFunction, ABC):
    """Makes a value of the values of many rows, by way of an accumulator that its methods change in place.

    Notes
    -----
    Follows ``pyflink.table.AggregateFunction``. An accumulator is a number, text, time, list, tuple,
    dictionary, ``Row``, ``ListView`` or ``MapView``, and what these contain: checkpoints hold it as data.
    """

    @abstractmethod
    def create_accumulator(self) -> Any:
        """Return an accumulator without values."""

    @abstractmethod
    def accumulate(self, accumulator: Any, *args: Any) -> None:
        """Take the values of a row into the accumulator."""

    @abstractmethod
    def get_value(self, accumulator: Any) -> Any:
        """Return the result."""

    def retract(self, accumulator: Any, *args: Any) -> None:
        """Take values back; needed where rows change or are withdrawn, and for bounded frames of OVER."""
        raise NotImplementedError

    def merge(self, accumulator: Any, accumulators: Iterable[Any]) -> None:
        """Take other accumulators into this one; needed for windows that share rows, and for sessions."""
        raise NotImplementedError

    def get_result_type(self) -> DataType | str:
        """Return the type of the result."""
        raise NotImplementedError

    def get_accumulator_type(self) -> DataType | str:
        """Return the type of the accumulator, which nothing reads."""
        raise NotImplementedError


@dataclass(frozen=True)
class DeclaredFunction:
    """A function with the types that Flink's planner needs; made by `udf`, `udaf` and `udtf`.

    Attributes
    ----------
    kind : str
        "scalar", "table" or "aggregate".
    function : object
        A callable, or a `UserDefinedFunction`.
    result_type : str
        Type of SQL: of the result, or of a row of a table function.
    input_types : tuple of str or None
        Types to which Flink converts the arguments, or None where any are taken.
    func_type : str
        "general", or "pandas" if it is called with columns, as Series.
    is_deterministic : bool
    names : tuple of str
        Names of the columns of its result, where it is given to a table.
    """

    kind: str
    function: Any
    result_type: str
    input_types: tuple[str, ...] | None
    func_type: str
    is_deterministic: bool
    names: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the function in Python."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def alias(self, *alias_names: str) -> DeclaredFunction:
        """Return the function with names for the columns of its result, to be given to a method of a table."""
        return replace(self, names=alias_names)

    def __call__(self, *args: Any) -> Expression[Any]:
        """Return the expression that calls it."""
        from flinkcore.table.calls import Call, shown
        from flinkcore.table.expression import Expression  # which know this module

        return Expression(
            Call("call", "Expressions", (self, *args), f"{self.name}({', '.join(map(shown, args))})")
        )


def udf(
    f: Any = None,
    input_types: Any = None,
    result_type: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
    udf_type: str | None = None,
) -> Any:
    """Declare a function of the values of a row; without `f`, return a decorator.

    Parameters
    ----------
    f : callable or ScalarFunction
    input_types : DataType, str or sequence, optional
        Types to which Flink converts the arguments.
    result_type : DataType or str
        Type of the result, such as ``DataTypes.BIGINT()`` or ``"BIGINT"``.
    deterministic : bool, optional
    name : str, optional
        Taken and not used: SQL has the name under which the function is created.
    func_type : {"general", "pandas"}
        With "pandas", it takes and returns a Series for many rows.
    udf_type : str, optional
        The former name of `func_type`.

    Raises
    ------
    ArgumentTypeError, ConfigurationError
        If it cannot be called, or a type is missing.

    Notes
    -----
    Follows ``pyflink.table.udf``.
    """
    return _declared(
        "scalar", ScalarFunction, f, input_types, result_type, deterministic, udf_type or func_type
    )


def udtf(
    f: Any = None,
    input_types: Any = None,
    result_types: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> Any:
    """Declare a table function; without `f`, return a decorator.

    Parameters
    ----------
    f : callable or TableFunction
        Returns rows: tuples, or values where there is one column.
    input_types, deterministic, name
        As of `udf`.
    result_types : DataType, str or sequence
        Types of the columns. Those of a ROW are the types of its fields; as a text, it names the columns, too.

    Raises
    ------
    ArgumentTypeError, ConfigurationError
        As of `udf`.

    Notes
    -----
    Follows ``pyflink.table.udtf``.
    """
    return _declared("table", TableFunction, f, input_types, result_types, deterministic, "general")


def udaf(
    f: Any = None,
    input_types: Any = None,
    result_type: Any = None,
    accumulator_type: Any = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Any:
    """Declare an aggregate function; without `f`, return a decorator.

    Parameters
    ----------
    f : AggregateFunction, or callable if `func_type` is "pandas"
    input_types, result_type, deterministic, name
        As of `udf`; the type of the result may be that of ``get_result_type``.
    accumulator_type : optional
        Taken and not used.
    func_type : {"general", "pandas"}
        With "pandas", it takes a Series of all values of each argument, and returns a value.

    Raises
    ------
    ArgumentTypeError, ConfigurationError
        As of `udf`.

    Notes
    -----
    Follows ``pyflink.table.udaf``.
    """
    if result_type is None and isinstance(f, AggregateFunction):
        try:
            result_type = f.get_result_type()
        except NotImplementedError:
            result_type = None
    return _declared("aggregate", AggregateFunction, f, input_types, result_type, deterministic, func_type)


def _declared(
    kind: str,
    base: type[UserDefinedFunction],
    function: Any,
    input_types: Any,
    result_types: Any,
    deterministic: bool | None,
    func_type: str,
) -> Any:
    if func_type not in _FUNCTION_TYPES:
        raise ConfigurationError(f"func_type is 'general' or 'pandas', not {func_type!r}")
    if function is None:
        return partial(
            _declared,
            kind,
            base,
            input_types=input_types,
            result_types=result_types,
            deterministic=deterministic,
            func_type=func_type,
        )
    is_general_aggregate = kind == "aggregate" and func_type == "general"
    if isinstance(function, type) or not (
        isinstance(function, base) or (callable(function) and not is_general_aggregate)
    ):
        raise ArgumentTypeError(
            f"{function!r} is not {'an' if kind == 'aggregate' else 'a'} {base.__name__}"
            f"{'' if is_general_aggregate else ' and cannot be called'}. Give an object of such a class"
        )
    if result_types is None:
        raise ConfigurationError(
            f"the function {getattr(function, '__name__', type(function).__name__)} has no type of its result. "
            f"Write {'result_types' if kind == 'table' else 'result_type'}=DataTypes.BIGINT(), or another type"
        )
    own = function.is_deterministic() if isinstance(function, UserDefinedFunction) else True
    if deterministic is not None and isinstance(function, UserDefinedFunction) and deterministic != own:
        raise ConfigurationError(
            f"deterministic={deterministic}, and is_deterministic() of {function!r} returns {own}. Leave out one"
        )
    return DeclaredFunction(
        kind,
        function,
        _row_text(result_types) if kind == "table" else type_text(result_types),
        None if input_types is None else _type_texts(input_types),
        func_type,
        own if deterministic is None else deterministic,
    )


def _row_text(given: Any) -> str:
    """Return the type of the rows of a table function, as ``UserDefinedTableFunctionWrapper`` of PyFlink makes it."""
    if isinstance(given, str):
        return given
    kinds = given.field_types() if isinstance(given, RowType) else given
    return f"ROW<{', '.join(f'f{number} {each}' for number, each in enumerate(_type_texts(kinds)))}> NOT NULL"


def _type_texts(given: Any) -> tuple[str, ...]:
    """Return types as SQL writes them; a single one stands for itself."""
    kinds: Sequence[Any] = [given] if isinstance(given, DataType | str) else list(given)
    return tuple(map(type_text, kinds))


def type_text(kind: DataType | str) -> str:
    """Return a type as SQL writes it.

    Raises
    ------
    ArgumentTypeError, ConfigurationError
        If it is neither a type nor a text, or one of views in accumulators.
    """
    if isinstance(kind, str):
        return kind
    if not isinstance(kind, DataType):
        raise ArgumentTypeError(f"{kind!r} is not a type. Write DataTypes.BIGINT() or 'BIGINT'")
    if isinstance(kind, ListViewType | MapViewType):
        kind.type_info()  # raises: columns have no such type
    return _form(kind) + ("" if kind.is_nullable else " NOT NULL")


def _form(kind: DataType) -> str:
    if isinstance(kind, CharType | BinaryType):  # and those of variable length, which are their subclasses
        return f"{type(kind).type_name()}({kind.length})"
    if isinstance(kind, DecimalType):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if isinstance(kind, TimeType | TimestampType):
        return f"{type(kind).type_name()}({kind.precision})"
    if isinstance(kind, LocalZonedTimestampType):
        return f"TIMESTAMP_LTZ({kind.precision})"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{type_text(kind.element_type)}>"
    if isinstance(kind, MapType):
        return f"MAP<{type_text(kind.key_type)}, {type_text(kind.value_type)}>"
    if isinstance(kind, RowType):
        fields = ", ".join(
            f"`{field.name.replace('`', '``')}` {type_text(field.data_type)}" for field in kind
        )
        return f"ROW<{fields}>"
    return type(kind).type_name()


def __getattr__(name: str) -> Any:
    """Report what to use instead of a name of PyFlink's that flinkcore does not have."""
    refuse_name(__name__, name)
