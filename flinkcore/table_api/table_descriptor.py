"""Tables that a program describes without SQL text: their columns, and the options of their connectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from flinkcore.common.config_options import ConfigOption
from flinkcore.errors import ArgumentTypeError, ConfigurationError
from flinkcore.table.types import DataType, RowType
from flinkcore.table.udf import type_text
from flinkcore.table_api.session_catalog import refuse_method
from flinkcore.table_api.stream_tables import quoted

_FORMAT: Final = "format"


def _typed(name: str, kind: DataType | str) -> tuple[str, bool]:
    """Return the type of a column in SQL, and whether it was given as text."""
    if not isinstance(kind, DataType | str):
        raise ArgumentTypeError(
            f"the column {name!r} has the type {kind!r:.80}. Write DataTypes.BIGINT() or 'BIGINT'"
        )
    return type_text(kind), isinstance(kind, str)


def _expression(place: str, expr: Any) -> str:
    if not isinstance(expr, str):
        raise ArgumentTypeError(
            f"{place} has the expression {expr!r:.80}. Write it as SQL text, such as \"ts - INTERVAL '5' SECOND\""
        )
    return expr


@dataclass(frozen=True)
class _Column:
    """A column: of the rows, of metadata, or computed.

    Attributes
    ----------
    name : str
    written : str
        Its type, or its expression.
    is_text : bool
        Whether `written` was given as SQL text.
    after : str
        Text after the type of a column of metadata.
    is_computed : bool
    """

    name: str
    written: str
    is_text: bool
    after: str = ""
    is_computed: bool = False

    @property
    def ddl(self) -> str:
        return f"{quoted(self.name)} {'AS ' if self.is_computed else ''}{self.written}{self.after}"

    def __str__(self) -> str:
        written = f"[{self.written}]" if self.is_text else self.written
        return f"{quoted(self.name)} {'AS ' if self.is_computed else ''}{written}{self.after}"


@dataclass(frozen=True)
class Schema:
    """The columns of a table, its watermark and its primary key; made by `new_builder`.

    Notes
    -----
    Follows ``pyflink.table.Schema``. Expressions are SQL text.
    """

    _columns: tuple[_Column, ...] = ()
    _watermarks: tuple[tuple[str, str], ...] = ()
    _key: tuple[str, tuple[str, ...]] | None = None

    @staticmethod
    def new_builder() -> Schema.Builder:
        """Return a builder without columns."""
        return Schema.Builder()

    def _ddl(self, derived: Sequence[tuple[str, str]] = ()) -> str:
        """Return the part of ``CREATE TABLE`` in parentheses.

        Parameters
        ----------
        derived : sequence of (str, str)
            All columns of the rows of a stream, with their types, which are those of the schema where it has them.

        Raises
        ------
        ConfigurationError
            If a column of the primary key may be null.
        """
        kinds, physical = dict(derived), self._physical
        columns = [
            *(f"{quoted(name)} {physical.get(name, kind)}" for name, kind in derived),
            *(each.ddl for each in self._columns if not (each.name in physical and each.name in kinds)),
        ]
        watermarks = [f"WATERMARK FOR {quoted(name)} AS {expr}" for name, expr in self._watermarks]
        self._check_key(kinds | {each.name: each.written for each in self._columns})
        return f"({', '.join([*columns, *watermarks, *self._constraint()])})"

    @property
    def _chosen(self) -> list[str]:
        """The names of the columns, if some of them are columns of the rows: a table of a stream has these alone."""
        return [each.name for each in self._columns] if self._physical else []

    @property
    def _physical(self) -> dict[str, str]:
        """The types of the columns of the rows, as they are written."""
        return {each.name: each.written for each in self._columns if not each.is_computed and not each.after}

    @property
    def _has_metadata(self) -> bool:
        return any(each.after for each in self._columns)

    def _check_key(self, kinds: Mapping[str, str]) -> None:
        """Raise ConfigurationError if a column of the primary key may be null, which SQL would declare NOT NULL."""
        for name in () if self._key is None else self._key[1]:
            if not kinds.get(name, "NOT NULL").upper().endswith("NOT NULL"):
                raise ConfigurationError(
                    f"the column {name!r} of the primary key may be null. Write DataTypes.BIGINT(False), or "
                    "'BIGINT NOT NULL', with its type"
                )

    def _constraint(self) -> list[str]:
        if self._key is None:
            return []
        name, columns = self._key
        return [f"CONSTRAINT {quoted(name)} PRIMARY KEY ({', '.join(map(quoted, columns))}) NOT ENFORCED"]

    def __str__(self) -> str:
        lines = [
            *map(str, self._columns),
            *(f"WATERMARK FOR {quoted(name)} AS [{expr}]" for name, expr in self._watermarks),
            *self._constraint(),
        ]
        return "(\n" + ",\n".join(f"  {line}" for line in lines) + "\n)"

    class Builder:
        """Builder of a schema; its columns have the order of the calls."""

        def __init__(self) -> None:
            self._columns: list[_Column] = []
            self._watermarks: list[tuple[str, str]] = []
            self._key: tuple[str, tuple[str, ...]] | None = None

        def from_schema(self, unresolved_schema: Schema) -> Schema.Builder:
            """Take all that another schema has."""
            self._columns += unresolved_schema._columns
            self._watermarks += unresolved_schema._watermarks
            self._key = unresolved_schema._key or self._key
            return self

        def from_row_data_type(self, data_type: DataType) -> Schema.Builder:
            """Take the fields of a row as columns; raise ArgumentTypeError if it is not one."""
            if not isinstance(data_type, RowType):
                raise ArgumentTypeError(
                    f"{data_type!r:.80} is not a type of rows. Write DataTypes.ROW([...])"
                )
            return self.from_fields(data_type.field_names(), data_type.field_types())

        def from_fields(
            self, field_names: Sequence[str], field_data_types: Sequence[DataType]
        ) -> Schema.Builder:
            """Take columns by their names and their types; raise ConfigurationError if these are not as many."""
            if len(field_names) != len(field_data_types):
                raise ConfigurationError(f"{len(field_names)} columns have {len(field_data_types)} types")
            for name, kind in zip(field_names, field_data_types, strict=True):
                self.column(name, kind)
            return self

        def column(self, column_name: str, data_type: str | DataType) -> Schema.Builder:
            """Add a column of the rows."""
            self._columns.append(_Column(column_name, *_typed(column_name, data_type)))
            return self

        def column_by_expression(self, column_name: str, expr: str) -> Schema.Builder:
            """Add a column that is computed; raise ArgumentTypeError if the expression is not SQL text."""
            written = _expression(f"the column {column_name!r}", expr)
            self._columns.append(_Column(column_name, written, True, is_computed=True))
            return self

        def column_by_metadata(
            self,
            column_name: str,
            data_type: DataType | str,
            metadata_key: str | None = None,
            is_virtual: bool = False,
        ) -> Schema.Builder:
            """Add a column of metadata, such as the timestamp of Kafka's records.

            Parameters
            ----------
            column_name : str
            data_type : DataType or str
            metadata_key : str, optional
                Name of the metadata; otherwise it is that of the column.
            is_virtual : bool
                Whether sinks do without the column.
            """
            key = "" if metadata_key is None else f" FROM {_literal(metadata_key)}"
            after = f" METADATA{key}{' VIRTUAL' if is_virtual else ''}"
            self._columns.append(_Column(column_name, *_typed(column_name, data_type), after))
            return self

        def watermark(self, column_name: str, watermark_expr: str) -> Schema.Builder:
            """Declare a column as the rowtime; raise ArgumentTypeError if the expression is not SQL text."""
            written = _expression(f"the watermark of {column_name!r}", watermark_expr)
            self._watermarks.append((column_name, written))
            return self

        def primary_key(self, *column_names: str) -> Schema.Builder:
            """Declare a primary key, whose columns are not null."""
            return self.primary_key_named("PK_" + "_".join(column_names), *column_names)

        def primary_key_named(self, constraint_name: str, *column_names: str) -> Schema.Builder:
            """Declare a primary key with a name of its own."""
            self._key = constraint_name, column_names
            return self

        def build(self) -> Schema:
            """Return the schema."""
            return Schema(tuple(self._columns), tuple(self._watermarks), self._key)

        def __getattr__(self, name: str) -> NoReturn:
            refuse_method(self, name)


@dataclass(frozen=True)
class FormatDescriptor:
    """A format of messages with its options; made by `for_format`.

    Notes
    -----
    Follows ``pyflink.table.FormatDescriptor``.
    """

    _format: str
    _options: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def for_format(format: str) -> FormatDescriptor.Builder:
        """Return a builder of the options of a format, such as "json"."""
        return FormatDescriptor.Builder(format)

    def get_format(self) -> str:
        """Return the name of the format."""
        return self._format

    def get_options(self) -> dict[str, str]:
        """Return the options, without the name of the format before their keys."""
        return dict(self._options)

    def __str__(self) -> str:
        return f"{self._format}[{{{', '.join(f'{key}={value}' for key, value in self._options.items())}}}]"

    class Builder:
        """Builder of a format."""

        def __init__(self, format: str) -> None:
            self._format = format
            self._options: dict[str, str] = {}

        def option(self, key: str | ConfigOption[Any], value: Any) -> FormatDescriptor.Builder:
            """Set an option, whose key has no name of the format before it."""
            self._options[_key(key)] = _value(value)
            return self

        def build(self) -> FormatDescriptor:
            """Return the format."""
            return FormatDescriptor(self._format, dict(self._options))


@dataclass(frozen=True)
class TableDescriptor:
    """A table: its columns, and the options of its connector; made by `for_connector`.

    Notes
    -----
    Follows ``pyflink.table.TableDescriptor``. Logs replace connectors, as in ``CREATE TABLE``.
    """

    _schema: Schema | None
    _options: Mapping[str, str]
    _partition_keys: tuple[str, ...] = ()
    _comment: str | None = None

    @staticmethod
    def for_connector(connector: str) -> TableDescriptor.Builder:
        """Return a builder of a table of a connector, such as "kafka"."""
        return TableDescriptor.Builder(connector)

    def get_schema(self) -> Schema | None:
        """Return the columns, or None."""
        return self._schema

    def get_options(self) -> dict[str, str]:
        """Return the options of ``WITH``."""
        return dict(self._options)

    def get_partition_keys(self) -> list[str]:
        """Return the columns of ``PARTITIONED BY``."""
        return list(self._partition_keys)

    def get_comment(self) -> str | None:
        """Return the comment, or None."""
        return self._comment

    def _created(self, head: str) -> str:
        """Return the statement that begins with a head such as ``CREATE TABLE t``.

        Raises
        ------
        ConfigurationError
            If there are no columns, or the primary key may be null.
        """
        if self._schema is None:
            raise ConfigurationError("the descriptor has no columns. Call schema(...) of its builder")
        parts = [f"{head} {self._schema._ddl()}"]
        if self._comment is not None:
            parts.append(f"COMMENT {_literal(self._comment)}")
        return " ".join([*parts, *self._partitioned(), f"WITH ({', '.join(self._assignments())})"])

    def _partitioned(self) -> list[str]:
        keys = ", ".join(map(quoted, self._partition_keys))
        return [f"PARTITIONED BY ({keys})"] if keys else []

    def _assignments(self) -> list[str]:
        return [f"{_literal(key)} = {_literal(value)}" for key, value in self._options.items()]

    def __str__(self) -> str:
        options = ",\n".join(f"  {each}" for each in self._assignments())
        lines = [
            "" if self._schema is None else str(self._schema),
            *([] if self._comment is None else [f"COMMENT '{self._comment}'"]),
            *self._partitioned(),
            f"WITH (\n{options}\n)",
        ]
        return "\n".join(lines)

    class Builder:
        """Builder of a table."""

        def __init__(self, connector: str) -> None:
            self._schema: Schema | None = None
            self._options = {"connector": connector}
            self._partition_keys: tuple[str, ...] = ()
            self._comment: str | None = None

        def schema(self, schema: Schema) -> TableDescriptor.Builder:
            """Take the columns."""
            self._schema = schema
            return self

        def option(self, key: str | ConfigOption[Any], value: Any) -> TableDescriptor.Builder:
            """Set an option of ``WITH``."""
            self._options[_key(key)] = _value(value)
            return self

        def format(
            self, format: str | FormatDescriptor, format_option: ConfigOption[str] | None = None
        ) -> TableDescriptor.Builder:
            """Take a format of messages.

            Parameters
            ----------
            format : str or FormatDescriptor
                With a descriptor, its options are set, too.
            format_option : ConfigOption of str, optional
                The option that names it, such as ``key.format``; otherwise ``format``.
            """
            option = _FORMAT if format_option is None else format_option.key()
            if isinstance(format, str):
                self._options[option] = format
                return self
            self._options[option] = format.get_format()
            prefix = f"{option.removesuffix(_FORMAT)}{format.get_format()}."
            self._options.update({prefix + key: value for key, value in format.get_options().items()})
            return self

        def partitioned_by(self, *partition_keys: str) -> TableDescriptor.Builder:
            """Take the columns of ``PARTITIONED BY``."""
            self._partition_keys = partition_keys
            return self

        def comment(self, comment: str) -> TableDescriptor.Builder:
            """Take a comment."""
            self._comment = comment
            return self

        def build(self) -> TableDescriptor:
            """Return the table."""
            return TableDescriptor(self._schema, dict(self._options), self._partition_keys, self._comment)


def _key(key: str | ConfigOption[Any]) -> str:
    return key.key() if isinstance(key, ConfigOption) else key


def _value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
