"""State of an operator of a compiled plan as Flink keeps it: its uid, keys and accumulators."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from flinkcore.errors import CheckpointError, UnsupportedOperationError
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.types.logical_types import LogicalType, type_of

SETTING: Final = "state in Flink"
"""Name of the setting in the description of a job."""

VALUE: Final = "value"
"""The result of an aggregate, null if it has none."""
OR_ZERO: Final = "or zero"
"""The result of an aggregate, 0 if it has none."""
EXTREME: Final = "extreme"
"""The least or greatest float of two aggregates: the first value, if it is NaN, or else the extreme of the others."""
PRESENT: Final = "present"
"""A count that Flink adds to know which windows are empty; here no window without rows is kept."""


@dataclass(frozen=True)
class AccumulatorField:
    """A field of an accumulator.

    Attributes
    ----------
    role : str
        Way in which it is made of the aggregates: `VALUE`, `OR_ZERO`, `EXTREME` or `PRESENT`.
    type : LogicalType
    aggregates : tuple of str
        Names of native aggregates.
    """

    role: str
    type: LogicalType
    aggregates: tuple[str, ...] = ()


@dataclass(frozen=True)
class FlinkState:
    """State of an operator of a compiled plan, as Flink's operator of the same node keeps it.

    Attributes
    ----------
    uid : str
        Such as ``5_group-aggregate``: the default of ``table.exec.uid.format``.
    kind : str
        Kind of the node.
    node : str
        Number and description of the node, for messages.
    keys : tuple of (str, LogicalType)
        Columns of the key with their types.
    fields : tuple of AccumulatorField
        Fields of accumulators, of an aggregate.
    rows : tuple of (str, LogicalType)
        Columns of the rows that are kept, of a deduplication.
    rowtime : int
        Number of their time attribute.
    waits : bool
        Whether rows wait for the watermark.
    refusal : str
        Reason why the state cannot be exchanged with Flink, or an empty text.
    """

    uid: str
    kind: str
    node: str
    keys: tuple[tuple[str, LogicalType], ...] = ()
    fields: tuple[AccumulatorField, ...] = ()
    rows: tuple[tuple[str, LogicalType], ...] = ()
    rowtime: int = 0
    waits: bool = False
    refusal: str = ""

    @classmethod
    def of(
        cls,
        node: PlanNode,
        keys: Sequence[tuple[str, LogicalType]] = (),
        fields: Sequence[AccumulatorField] = (),
        *,
        rows: Sequence[tuple[str, LogicalType]] = (),
        rowtime: int = 0,
        waits: bool = False,
        refusal: str = "",
    ) -> FlinkState:
        """Return the state of a node."""
        named = f"node {node.id} of the plan, {node.description}"
        uid = f"{node.id}_{node.kind}"
        return cls(uid, node.kind, named, tuple(keys), tuple(fields), tuple(rows), rowtime, waits, refusal)

    @classmethod
    def refused(cls, node: PlanNode) -> FlinkState:
        """Return the state of a node of which no layout is known."""
        return cls.of(node, refusal=f"the state of {node.kind} is not exchanged with Flink")

    @classmethod
    def expiring(cls, node: PlanNode) -> FlinkState:
        """Return the state of a node that has a time to live."""
        return cls.of(node, refusal="state that expires is not exchanged with Flink")

    def to_text(self) -> str:
        """Return the state as text for the description of a job."""
        keys, rows = ([(column, str(kind)) for column, kind in each] for each in (self.keys, self.rows))
        fields = [(each.role, str(each.type), each.aggregates) for each in self.fields]
        return json.dumps({**self.__dict__, "keys": keys, "rows": rows, "fields": fields})

    @classmethod
    def of_text(cls, text: str) -> FlinkState:
        """Return the state that `to_text` wrote.

        Raises
        ------
        CheckpointError
            If it is not such a text.
        """
        try:
            content = json.loads(text)
            if not isinstance(content, dict) or set(content) != set(cls.__dataclass_fields__):
                raise ValueError("it has other parts")
            keys, rows = (
                tuple((str(column), type_of(kind)) for column, kind in content.pop(name))
                for name in ("keys", "rows")
            )
            fields = tuple(
                AccumulatorField(role, type_of(kind), tuple(names))
                for role, kind, names in content.pop("fields")
            )
            return cls(keys=keys, rows=rows, fields=fields, **content)
        except (ValueError, TypeError, KeyError, UnsupportedOperationError) as failure:
            raise CheckpointError(
                f"the description of an operator of a plan, {text!r:.80}, is not one of this version of flinkcore: "
                f"{failure}. Run the job again from its log"
            ) from failure

    @classmethod
    def of_job(cls, job: Mapping[str, Any], uid: str) -> FlinkState | None:
        """Return the state of an operator from the description of its job, or None if it is not one of a plan."""
        text = job.get(f"{uid}: {SETTING}", job.get(SETTING))
        return None if text is None else cls.of_text(text)
