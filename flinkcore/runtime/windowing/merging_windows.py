"""What a window operator does where windows merge."""

from collections.abc import Callable
from typing import Any

from flinkcore.datastream.state import MapStateDescriptor
from flinkcore.datastream.window import MergingWindowAssigner, Window
from flinkcore.errors import FlinkcoreError, UserCodeError
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.operators.function_results import FunctionResults, Subject
from flinkcore.runtime.state import KeyedStateBackend
from flinkcore.runtime.windowing.merging_window_set import MergingWindowSet
from flinkcore.runtime.windowing.trigger_calls import TriggerCalls
from flinkcore.runtime.windowing.window_cleanup import WindowCleanup

MERGING_WINDOW_SET = "merging-window-set"


class MergingWindows:
    """Keeps the windows in flight of every key in state, and merges their state, triggers and timers with them.

    Parameters
    ----------
    assigner : MergingWindowAssigner
    backend : KeyedStateBackend
    contents : object
        The state of the windows' contents, which merges.
    trigger_calls : TriggerCalls
    cleanup : WindowCleanup
    results : FunctionResults
        Describes failures.
    merge_failed : callable
        From a window and what a function raised to what is to be raised.

    Notes
    -----
    What Flink's ``WindowOperator`` does for a ``MergingWindowAssigner``.
    """

    def __init__(
        self,
        assigner: MergingWindowAssigner[Any, Any],
        backend: KeyedStateBackend,
        contents: Any,
        trigger_calls: TriggerCalls,
        cleanup: WindowCleanup,
        results: FunctionResults,
        merge_failed: Callable[[Subject, Exception], Exception],
    ) -> None:
        self._assigner = assigner
        self._sets = backend.get_or_create_keyed_state(MapStateDescriptor(MERGING_WINDOW_SET))
        self._contents = contents
        self._trigger_calls = trigger_calls
        self._cleanup = cleanup
        self._results = results
        self._merge_failed = merge_failed

    def add(self, window: Window, record: StreamRecord[Any]) -> tuple[Window, Window] | None:
        """Add a window of an element to those of the current key.

        Returns
        -------
        (Window, Window) or None
            What it has become, and the window whose state that uses; None if it is late.

        Raises
        ------
        UserCodeError
            If the assigner or the trigger raise, or the windows merge into one of the past.
        """
        state_windows: dict[Window, Window] = self._sets.get_internal() or {}
        in_flight: MergingWindowSet[Window] = MergingWindowSet(self._assigner, state_windows)
        try:
            actual = in_flight.add_window(window, self._merge)
        except FlinkcoreError:
            raise
        except Exception as failure:
            raise self._results.failed("merge_windows", record, failure, self._assigner) from failure
        is_late = self._cleanup.is_past(actual)
        if is_late:
            in_flight.retire_window(actual)
        self._persist(state_windows)
        return None if is_late else (actual, state_windows[actual])

    def state_window(self, window: Window) -> Window | None:
        """Return the window whose state a window of the current key uses; None if it is not in flight."""
        state_windows: dict[Window, Window] = self._sets.get_internal() or {}
        return state_windows.get(window)

    def retire(self, window: Window) -> None:
        """Take a window of the current key out."""
        state_windows: dict[Window, Window] = self._sets.get_internal() or {}
        MergingWindowSet(self._assigner, state_windows).retire_window(window)
        self._persist(state_windows)

    def _persist(self, state_windows: dict[Window, Window]) -> None:
        if state_windows:
            self._sets.update_internal(state_windows)
        else:
            self._sets.clear()

    def _merge(
        self, result: Window, merged: list[Window], state_window: Window, merged_state: list[Window]
    ) -> None:
        late_for = self._cleanup.is_merge_late(result)
        if late_for is not None:
            raise UserCodeError(
                f"{type(self._assigner).__qualname__}.merge_windows has made {result!r}, which ended before "
                f"{late_for}: merging cannot make a window late"
            )
        self._trigger_calls.on_merge(result, merged)
        for window in merged:
            self._trigger_calls.clear(window)
            self._cleanup.delete(window)
        try:
            self._contents.merge_namespaces(state_window, merged_state)
        except Exception as failure:
            raise self._merge_failed(result, failure) from failure
