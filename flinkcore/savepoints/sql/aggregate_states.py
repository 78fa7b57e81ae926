"""States of Flink SQL's aggregates: names and types."""

from __future__ import annotations

from collections.abc import Mapping

from flinkcore.savepoints.keyed_types import KeyedTypes
from flinkcore.savepoints.serializers import basic, times
from flinkcore.savepoints.serializers.row_data import ExtremeType, RowDataSerializer, row_data
from flinkcore.savepoints.sql.names import ACCUMULATORS, SESSIONS, WINDOW_ACCUMULATORS, WINDOW_TIMERS
from flinkcore.savepoints.sql.views import view_states
from flinkcore.savepoints.sql.window_names import is_named_by_window
from flinkcore.sql.plan.flink_state import RETRACTED_EXTREME, SESSION, FlinkState


def accumulator_data(state: FlinkState) -> RowDataSerializer:
    """Return the serializer of the accumulators of an aggregate."""
    extremes = {view.aggregates: view.extreme for view in state.views}
    types = [
        ExtremeType(extremes[each.aggregates], each.type) if each.role == RETRACTED_EXTREME else each.type
        for each in state.fields
    ]
    return row_data(types, sum(not view.extreme for view in state.views))


def aggregate_states(state: FlinkState) -> Mapping[str, KeyedTypes]:
    """Return the types of the states and timers of an aggregate, by name.

    Notes
    -----
    Flink's ``GroupAggFunction``; ``WindowAggOperator`` with ``SliceUnsharedWindowAggProcessor``,
    ``SliceSharedWindowAggProcessor`` and ``UnsliceWindowAggProcessor``; ``WindowOperator`` of legacy group windows.

    Raises
    ------
    UnsupportedOperationError
        If a key or an accumulator is of a type that cannot be written or restored.
    """
    key = row_data([kind for _, kind in state.keys], is_key=True)
    value = accumulator_data(state)
    windows = state.windows
    if windows is None:
        return {
            ACCUMULATORS: KeyedTypes("VALUE", key, times.VOID_NAMESPACE, None, value, False),
            **dict(view_states(state.views, key, times.VOID_NAMESPACE)),
        }
    namespace = times.TABLE_TIME_WINDOW if is_named_by_window(windows) else basic.LONG
    found = {
        WINDOW_ACCUMULATORS: KeyedTypes("VALUE", key, namespace, None, value, False),
        WINDOW_TIMERS: KeyedTypes("TIMERS", key, namespace, None, None, False),
        **dict(view_states(state.views, key, namespace)),
    }
    if windows.kind == SESSION:
        window = times.TABLE_TIME_WINDOW
        found[SESSIONS] = KeyedTypes("MAP", key, times.VOID_NAMESPACE, window, window, False)
    return found
