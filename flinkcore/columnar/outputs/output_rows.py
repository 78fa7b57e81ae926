"""Rows of an output of a job, in the forms in which they are looked at."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pyarrow as pa

from flinkcore._internal.python.extras import library
from flinkcore._internal.python.missing_features import WithoutItems, missing_features, refuse_result_method
from flinkcore._internal.show.html import html_table
from flinkcore._internal.show.tables import html_of_table, shown_schema, shown_table
from flinkcore.errors import ConfigurationError, DataError

_SHOWN_ROWS: Final = 10


class TakenRows(Iterator[pa.RecordBatch], ABC):
    """Batches of rows as a job makes them."""

    @abstractmethod
    def close(self) -> None:
        """End the job; it may have ended already."""


class OutputRows(WithoutItems, ABC):
    """Rows of an output of a job over columns; nothing runs before they are asked for."""

    if not TYPE_CHECKING:  # a type checker knows that there is no such call

        def __getattr__(self, name: str) -> NoReturn:
            refuse_result_method(self, name)

    def _call_instead(self, name: str) -> str:
        return missing_features().result_methods[name]

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """Return all rows as a table."""

    @abstractmethod
    def to_batches(self) -> TakenRows:
        """Return the rows as batches, as the job makes them."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of the rows with their types; nothing runs."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns; nothing runs."""
        return list(self.schema.names)

    @abstractmethod
    def _kept_rows(self) -> pa.Table | None:
        """Return all rows if they are kept, or None if the job would have to run."""

    def to_pandas(self) -> Any:
        """Return all rows as a ``pandas.DataFrame``; one run serves this and `to_arrow`.

        Raises
        ------
        ConfigurationError
            If pandas is not installed.
        DataError
            If pandas does not take the values of a column.
        """
        library("pandas", "pandas", "to_pandas()")
        return _converted(self.to_arrow(), lambda table: table.to_pandas(), "pandas")

    def to_polars(self) -> Any:
        """Return all rows as a ``polars.DataFrame``; one run serves this and `to_arrow`.

        Raises
        ------
        ConfigurationError
            If polars is not installed.
        DataError
            If polars does not take the values of a column.
        """
        polars = library("polars", "polars", "to_polars()")
        return _converted(
            self.to_arrow(), polars.from_arrow, "polars", (Exception, polars.exceptions.PanicException)
        )

    def show(self, rows: int = 20) -> None:
        """Print the first rows.

        Unless all are kept by `to_arrow`, the job runs until it has given so many rows, which are those of one of its
        partitions first; it then leaves neither a report nor a checkpoint.

        Parameters
        ----------
        rows
            At most so many.

        Raises
        ------
        ConfigurationError
            If it is not a number of rows.
        """
        if isinstance(rows, bool) or not isinstance(rows, int) or rows < 0:
            raise ConfigurationError(f"show() takes a number of rows, 0 or more, not {rows!r}")
        kept = self._kept_rows()
        if kept is not None:
            print(shown_table(kept, rows))
            return
        first = self._first_rows(rows + 1)
        print(shown_table(first.slice(0, rows), rows))
        if first.num_rows > rows:
            print("… more rows")

    def _first_rows(self, rows: int) -> pa.Table:
        found: list[pa.RecordBatch] = []
        with closing(self.to_batches()) as batches:
            for batch in batches:
                found.append(batch)
                if sum(each.num_rows for each in found) >= rows:
                    break
        return pa.Table.from_batches(found, self.schema).slice(0, rows)

    def __repr__(self) -> str:
        kept = self._kept_rows()
        rows = "" if kept is None else f", {kept.num_rows:,} rows"
        return f"{type(self).__name__}{shown_schema(self.schema)}{rows}"

    def _repr_html_(self) -> str:
        kept = self._kept_rows()
        if kept is None:
            columns = [(field.name, str(field.type)) for field in self.schema]
            return html_table(columns, (), [False] * len(columns)) + (
                "<small>not run yet: <code>show()</code>, <code>to_arrow()</code> or <code>to_pandas()</code> runs the "
                "job</small>"
            )
        more = kept.num_rows - _SHOWN_ROWS
        return html_of_table(kept, _SHOWN_ROWS) + (
            f"<small>{kept.num_rows:,} rows of {kept.num_columns} columns"
            f"{f', {more:,} not shown' if more > 0 else ''}</small>"
        )


def _converted(
    table: pa.Table,
    convert: Callable[[pa.Table], Any],
    library_name: str,
    errors: tuple[type[BaseException], ...] = (Exception,),
) -> Any:
    """Return a table as another library has it; an error, of which each library has its own, names the column."""
    try:
        return convert(table)
    except errors:
        for field in table.schema:
            try:
                convert(table.select([field.name]))
            except errors as of_column:
                raise DataError(
                    f"column {field.name!r} of the results is {field.type}, and {library_name} does not take its "
                    f"values: {of_column}. Cast the column, leave it out, or take to_arrow()",
                    column=field.name,
                ) from of_column
        raise
