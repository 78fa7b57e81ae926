"""Operator and broadcast states of a checkpoint as a Flink job has them."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from flinkcore.checkpoint.table_file import TableFile
from flinkcore.checkpoint.table_kinds import TableKind
from flinkcore.errors import ConfigurationError
from flinkcore.operators.state import DistributionMode
from flinkcore.savepoints.serializers.serializer import StateSerializer
from flinkcore.savepoints.writing.checkpoint_rows import Conversions
from flinkcore.savepoints.writing.checkpoint_states import CheckpointOperator, has_state, inferred
from flinkcore.savepoints.writing.java_values import java_values
from flinkcore.savepoints.writing.pyflink_states import PythonStates
from flinkcore.savepoints.writing.state_files import OperatorStateContent

_MODES: Final = {
    DistributionMode.SPLIT_DISTRIBUTE: "SPLIT_DISTRIBUTE",
    DistributionMode.UNION: "UNION",
    DistributionMode.BROADCAST: "BROADCAST",
}


def operator_contents(
    operator: CheckpointOperator, parallelism: int, python: PythonStates | None = None
) -> list[list[OperatorStateContent]]:
    """Return the operator states of each subtask, or an empty list without any.

    Elements of lists are dealt out in their order, those of a union are in the first subtask, and every subtask has
    the whole broadcast state: Flink distributes them again.

    Raises
    ------
    ConfigurationError
        If the type of a state is not known, or a PyFlink program has no such state.
    """
    names = dict.fromkeys(
        table.name
        for _, table in operator.tables(TableKind.OPERATOR_STATE)
        if has_state(table, (TableKind.OPERATOR_STATE,))
    )
    found: list[list[OperatorStateContent]] = [[] for _ in range(parallelism)]
    for name in names:
        for subtask, content in enumerate(_of_state(operator, name, parallelism, python)):
            found[subtask].append(content)
    return found if names else []


def _of_state(
    operator: CheckpointOperator, name: str, parallelism: int, python: PythonStates | None
) -> list[OperatorStateContent]:
    tables = [table for _, table in operator.tables(TableKind.OPERATOR_STATE, name) if table.n_rows]
    mode = DistributionMode(tables[0].attributes["mode"])
    target = operator.target.names.get(name, name)
    what = f"operator state {name!r} of operator {operator.uid!r}"
    if python is not None:
        if mode is not DistributionMode.BROADCAST:
            raise ConfigurationError(
                f"PyFlink has no {what}: its programs have broadcast states alone. Keep it in a keyed state"
            )
        target, of_key, of_value, conversions = python.broadcast_state(name, tables[0])
        rows = _entries(operator, tables[0], of_key, of_value, conversions)
        return [OperatorStateContent(target, _MODES[mode], of_key, of_value, rows)] * parallelism
    key, value = operator.target.types_of(name)
    shapes = [table.shapes["element"] for table in tables]
    if mode is DistributionMode.BROADCAST:
        key = key or inferred([shape[1] for shape in shapes], f"the keys of {what}")
        value = value or inferred([shape[2] for shape in shapes], what)
        rows = _entries(operator, tables[0], key, value, Conversions())
        return [OperatorStateContent(target, _MODES[mode], key, value, rows)] * parallelism
    value = value or inferred(shapes, what)
    columns = [
        java_values(operator.read(table).batch.column("element"), table.shapes["element"], value)
        for table in tables
    ]
    elements = pa.concat_arrays(columns)
    n_rows = len(elements)
    bounds = [n_rows * subtask // parallelism for subtask in range(parallelism + 1)]
    if mode is DistributionMode.UNION:
        bounds = [0] + [n_rows] * parallelism
    return [
        OperatorStateContent(
            target,
            _MODES[mode],
            None,
            value,
            pa.RecordBatch.from_arrays(
                [elements.slice(bounds[subtask], bounds[subtask + 1] - bounds[subtask])], ["value"]
            ),
        )
        for subtask in range(parallelism)
    ]


def _entries(
    operator: CheckpointOperator,
    table: TableFile,
    key: StateSerializer,
    value: StateSerializer,
    conversions: Conversions,
) -> pa.RecordBatch:
    pairs, shape = operator.read(table).batch.column("element"), table.shapes["element"]
    columns = [
        conversions.map_key(pairs.field(0), shape[1], key),
        conversions.value(pairs.field(1), shape[2], value),
    ]
    return pa.RecordBatch.from_arrays(columns, ["key", "value"])
