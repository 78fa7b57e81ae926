"""The exchange in front of an operator: which rows go to which of its partitions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from flinkcore._internal.arrow.arrays import Int32s, RowNumbers
from flinkcore._native.exchange import partition_rows
from flinkcore.columnar.plans.stage_plan import StagePlan
from flinkcore.columnar.stages.stage import StageContext
from flinkcore.operators.keys.element_rows import event_key_groups
from flinkcore.time_plane.total_order import Events


class DealtRows(NamedTuple):
    """Rows as an exchange deals them out.

    Attributes
    ----------
    order
        Rows one partition after the other, each in total order, or None if they lie so.
    ranges
        For each partition, where its rows begin and end in `order`.
    """

    order: RowNumbers | None
    ranges: list[tuple[int, int]]


@dataclass(frozen=True)
class Exchange:
    """Deals the rows of one input of an operator out to its partitions; picklable.

    Attributes
    ----------
    keys
        Columns that make up the key.
    max_parallelism
        Number of key groups.
    partitions
        Number of ranges of key groups.
    is_broadcast
        Whether every partition gets all rows.
    takes_rows_anywhere
        Whether rows go together to the partition that their sender names.
    """

    keys: tuple[str, ...]
    max_parallelism: int
    partitions: int
    is_broadcast: bool = False
    takes_rows_anywhere: bool = False

    @classmethod
    def of(cls, stage: StagePlan, input_number: int, partitions: int) -> Exchange:
        """Return the exchange in front of an input, 0 or 1, of an operator."""
        to = stage.inputs[input_number]
        return cls(
            to.key.names, stage.max_parallelism, partitions, to.is_broadcast, stage.takes_rows_anywhere
        )

    def deal(
        self, batch: pa.RecordBatch, rows: RowNumbers | None, own_partition: int = 0, key_prefix: str = ""
    ) -> DealtRows:
        """Deal out rows.

        Parameters
        ----------
        batch
            The columns of the rows.
        rows
            Rows in total order, or None for all as they lie.
        own_partition
            Where the sender's rows go if they may go anywhere.
        key_prefix
            Text before the names of the keys in the batch.
        """
        every = (0, batch.num_rows)
        if self.is_broadcast or self.partitions == 1:
            return DealtRows(rows, [every] * self.partitions)
        if self.takes_rows_anywhere:
            none = (0, 0)
            return DealtRows(rows, [every if at == own_partition else none for at in range(self.partitions)])
        groups = event_key_groups(batch, [key_prefix + key for key in self.keys], self.max_parallelism)
        return self.deal_groups(groups, rows)

    def deal_groups(self, groups: Int32s, rows: RowNumbers | None) -> DealtRows:
        """Deal out rows by the key group of each."""
        order, bounds = partition_rows(groups, self.max_parallelism, self.partitions, rows)
        return DealtRows(order, list(pairwise(bounds.tolist())))


def rows_by_partition(
    context: StageContext, events: Events, rows: RowNumbers | None
) -> list[RowNumbers | None]:
    """Deal out rows of all inputs to the partitions of an operator in one process, which share the batch.

    Parameters
    ----------
    context
        The operator.
    events, rows
        Events, and their rows in total order, or None for all as they lie.

    Returns
    -------
    list of numpy.ndarray of uint32, or None
        For each partition its rows in total order, or None for all as they lie.
    """
    plan, inputs, partitions = context.plan, context.inputs, context.partitions
    if partitions == 1:
        return [rows]
    exchange = Exchange.of(plan, 0, partitions)
    if inputs is None:
        dealt = exchange.deal(events.batch, rows)
    else:
        keys = list(plan.inputs[0].key.names), list(plan.inputs[1].key.names)
        dealt = exchange.deal_groups(inputs.key_groups(events, keys, plan.max_parallelism), rows)
    order = dealt.order
    by_partition = [None if order is None else order[first:last] for first, last in dealt.ranges]
    if inputs is None or not plan.inputs[1].is_broadcast:
        return by_partition
    is_wanted = np.zeros((partitions, events.n_events), np.bool_)
    for partition, own in enumerate(by_partition):
        is_wanted[partition, own] = True
    is_wanted[:, inputs.is_second(events)] = True
    in_order = np.arange(events.n_events, dtype=np.uint32) if rows is None else rows
    return [in_order[wanted[in_order]] for wanted in is_wanted]
