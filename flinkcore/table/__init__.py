"""PyFlink's ``pyflink.table``: types, rows, functions and expressions, and table environments."""

from importlib import import_module
from typing import Any, Final

from flinkcore._internal.python.missing_features import refuse_name
from flinkcore._internal.values.row import Row
from flinkcore._internal.values.row_kind import RowKind
from flinkcore.table.data_view import DataView, ListView, MapView
from flinkcore.table.expression import Expression
from flinkcore.table.types import DataTypes
from flinkcore.table.udf import AggregateFunction, FunctionContext, ScalarFunction, TableFunction

__all__ = [
    "AggregateFunction",
    "DataTypes",
    "DataView",
    "Expression",
    "FunctionContext",
    "ListView",
    "MapView",
    "Row",
    "RowKind",
    "ScalarFunction",
    "TableFunction",
]

_TABLE_API: Final = {
    "StreamTableEnvironment": "table_environment:StreamTableEnvironment",
    "TableEnvironment": "table_environment:StreamTableEnvironment",
    "EnvironmentSettings": "environment_settings:EnvironmentSettings",
    "TableConfig": "environment_settings:TableConfig",
    "ExplainDetail": "explain_detail:ExplainDetail",
    "Table": "table:Table",
    "GroupedTable": "grouped_tables:GroupedTable",
    "GroupWindowedTable": "grouped_tables:GroupWindowedTable",
    "OverWindowedTable": "grouped_tables:OverWindowedTable",
    "WindowGroupedTable": "grouped_tables:WindowGroupedTable",
    "TableResult": "table_result:TableResult",
    "ResultKind": "table_result:ResultKind",
    "StatementSet": "table:StatementSet",
    "TableDescriptor": "table_descriptor:TableDescriptor",
    "FormatDescriptor": "table_descriptor:FormatDescriptor",
    "Schema": "table_descriptor:Schema",
}
"""Names that lie above this package, and where: they are found by name, so that it does not import them."""

__all__ += sorted(_TABLE_API)


def __getattr__(name: str) -> Any:
    """Return a name of the Table API, or report what to use instead of one that flinkcore does not have."""
    if name not in _TABLE_API:
        refuse_name(__name__, name)
    module, _, found = _TABLE_API[name].partition(":")
    return getattr(import_module(f"flinkcore.table_api.{module}"), found)
