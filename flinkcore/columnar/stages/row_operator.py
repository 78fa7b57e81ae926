"""An operator that is called row by row, and how the rows of a batch come to it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple

from flinkcore.checkpoint import OperatorBackends, OperatorSnapshot
from flinkcore.columnar.stages.process_output import ProcessOutput
from flinkcore.columnar.stages.restored_namespaces import check_namespaces, check_window_namespaces, is_void
from flinkcore.columnar.stages.stage import StageContext
from flinkcore.operators.function_calls import TIMER_SERVICE_NAME
from flinkcore.operators.keys.element_rows import element_keys, element_rows, event_key_groups
from flinkcore.operators.process_operators import KeyedFunctionOperator
from flinkcore.operators.records.stream_elements import StreamRecord
from flinkcore.operators.replay_clock import ReplayClock
from flinkcore.operators.state import KeyedStateBackend
from flinkcore.operators.stream_operator import AbstractStreamOperator
from flinkcore.operators.timers import InternalTimeServiceManager
from flinkcore.operators.windowing import WindowOperator
from flinkcore.time_plane.total_order import Events

RowCall = Callable[[Hashable, StreamRecord[Any]], None]
"""Processes a record of a key."""

ProcessedRows = tuple[Iterable[Any], Iterable[Any], list[int], Iterable[RowCall]]
"""For each row its value, its key, its key group, and what processes it."""


class Surroundings(NamedTuple):
    """Arguments of operators of keyed functions besides their functions, in the order of the parameters.

    Attributes
    ----------
    output : ProcessOutput
        Takes what the function gives.
    backend : KeyedStateBackend
    clock : ReplayClock
    """

    output: ProcessOutput
    backend: KeyedStateBackend
    clock: ReplayClock


@dataclass
class RowOperator:
    """An operator of Flink's that is called row by row.

    Attributes
    ----------
    operator
        Opens, closes, and gets watermarks.
    timers : InternalTimeServiceManager
    backends : OperatorBackends
        Backends whose state a checkpoint has.
    rows : callable
        From events, in total order, to what is processed one by one.
    check_restored : callable
        Raises a SchemaError if the operator cannot have what a snapshot has.
    fates : callable
        From the number of rows processed to how many of them had which fate.
    is_keyed : bool
    """

    operator: AbstractStreamOperator
    timers: InternalTimeServiceManager
    backends: OperatorBackends
    rows: Callable[[Events], ProcessedRows]
    check_restored: Callable[[OperatorSnapshot], None]
    fates: Callable[[int], dict[str, int]]
    is_keyed: bool = True

    @classmethod
    def keyed(
        cls,
        operator: KeyedFunctionOperator[Any],
        backend: KeyedStateBackend,
        rows: Callable[[Events], ProcessedRows],
        check_restored: Callable[[OperatorSnapshot], None],
        fates: Callable[[int], dict[str, int]],
    ) -> RowOperator:
        """Return an operator with timers and keyed state."""
        timers = operator.time_service_manager
        return cls(operator, timers, OperatorBackends(backend, timers), rows, check_restored, fates)


def rows_of_one_stream(
    context: StageContext, call: Callable[[], RowCall]
) -> Callable[[Events], ProcessedRows]:
    """Return the rows of one stream; what processes them is known once the operator is open."""
    keys, max_parallelism = list(context.plan.keys), context.plan.max_parallelism

    def rows(events: Events) -> ProcessedRows:
        batch = events.batch
        groups = event_key_groups(batch, keys, max_parallelism)
        return element_rows(batch), element_keys(batch, keys), groups.tolist(), repeat(call())

    return rows


def check_user_timers(snapshot: OperatorSnapshot) -> None:
    """Raise a SchemaError if a snapshot has other timers than those that functions set."""
    check_namespaces(snapshot, TIMER_SERVICE_NAME, is_void, is_void)


def window_row_operator(
    windows: WindowOperator, backend: KeyedStateBackend, rows: Callable[[Events], ProcessedRows]
) -> RowOperator:
    """Return the operator of functions over windows."""

    def fates(processed: int) -> dict[str, int]:
        late, in_no_window = windows.num_late_records, windows.num_records_in_no_window
        return {"windowed": processed - late - in_no_window, "late": late, "in_no_window": in_no_window}

    return RowOperator.keyed(
        windows,
        backend,
        rows,
        lambda snapshot: check_window_namespaces(snapshot, windows.operation),
        fates,
    )
