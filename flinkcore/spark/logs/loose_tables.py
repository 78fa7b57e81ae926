"""DataFrames that read the files of a lake table as plain Parquet: these still hold rows that were removed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JError
from pyarrow import fs

from flinkcore._internal.io.table_directories import TableDirectory, TableSearch, how_to_read
from flinkcore._internal.python.user_warnings import warn_user
from flinkcore.spark.logs.parquet_scan import reads_plain_parquet
from flinkcore.spark.logs.plan_nodes import kind_of


def warn_of_loose_tables(dataframe: Any) -> None:
    """Warn of each local table whose files a DataFrame reads as plain Parquet.

    Parameters
    ----------
    dataframe : pyspark.sql.DataFrame
        With Spark Connect, which does not show plans, there is no warning.
    """
    if not hasattr(dataframe, "_jdf"):
        return
    try:
        tables = dict.fromkeys(_loose_tables(dataframe))
    except Py4JError:  # a vendor's Spark may have plans of its own
        return
    for table in tables:
        warn_user(
            f"the DataFrame reads files of {table.kind}, {table.path!r}, as plain Parquet: they still hold rows that "
            f"were removed. Read it with {how_to_read(table)}, or let Spark read it in its own format"
        )


def _loose_tables(dataframe: Any) -> Iterator[TableDirectory]:
    search, local = TableSearch(), fs.LocalFileSystem()
    leaves = dataframe._jdf.queryExecution().optimizedPlan().collectLeaves()
    for leaf in (leaves.apply(at) for at in range(leaves.size())):
        if kind_of(leaf) == "LogicalRelation" and reads_plain_parquet(leaf.relation()):
            roots = leaf.relation().location().rootPaths()
            for uri in (urlsplit(roots.apply(at).toUri().toString()) for at in range(roots.size())):
                if uri.scheme != "file":
                    continue
                path = unquote(uri.path)
                table = search.around(local, path, local.get_file_info(path).type == fs.FileType.File)
                if table is not None:
                    yield table
