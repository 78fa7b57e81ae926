"""Windows that merge: those in flight of each key, and their state, triggers and timers, which merge with them."""

from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, Generic, TypeVar

from flinkcore.datastream.state import ValueStateDescriptor
from flinkcore.datastream.window import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    MergingWindowAssigner,
    ProcessingTimeSessionWindows,
    Window,
)
from flinkcore.errors import FlinkcoreError, LifecycleError, UserCodeError
from flinkcore.operators.function_results import FunctionResults, Subject
from flinkcore.operators.records.stream_elements import StreamRecord
from flinkcore.operators.state import KeyedStateBackend
from flinkcore.operators.windowing.window_calls import TriggerCalls
from flinkcore.operators.windowing.window_cleanup import WindowCleanup

W = TypeVar("W", bound=Window)


SESSIONS: Final = (
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
)
"""Assigners whose windows merge if they touch."""


MergeFunction = Callable[[W, list[W], W, list[W]], None]
"""Called with the merged window, the windows in flight that it replaces, its state window, and the state windows to be
merged into that."""


class MergingWindowSet(Generic[W]):
    """The windows in flight of a key, each with its state window: the window whose state it uses.

    When windows merge, the merged window uses the state of one of them, and the others are merged into that.

    Parameters
    ----------
    assigner : MergingWindowAssigner
        Says which windows merge.
    state_windows : dict of Window to Window
        State windows by window in flight; changed in place.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.runtime.operators.windowing.MergingWindowSet``, which reads and writes the
    mapping as list state for each element; here it is the map state itself.
    """

    __slots__ = ("_assigner", "_state_windows")

    def __init__(self, assigner: MergingWindowAssigner[object, W], state_windows: dict[W, W]) -> None:
        self._assigner = assigner
        self._state_windows = state_windows

    def retire_window(self, window: W) -> None:
        """Remove a window.

        Raises
        ------
        LifecycleError
            If it is not in flight.
        """
        if self._state_windows.pop(window, None) is None:
            raise LifecycleError(f"{window!r} is not one of the windows in flight")

    def add_window(self, new_window: W, merge_function: MergeFunction[W]) -> W:
        """Add a window, which may merge windows in flight.

        Parameters
        ----------
        new_window : Window
        merge_function : callable
            Called for every merge, except if a window in flight covers the new one as it is.

        Returns
        -------
        Window
            The new window itself, or the window that it was merged into.

        Raises
        ------
        UserCodeError
            If the assigner merges windows that are not in flight.
        """
        result, is_merged = new_window, False
        for merge_result, group in self._merges(new_window).items():
            if new_window in group:
                group.remove(new_window)
                result, is_merged = merge_result, True
            state_windows = [
                held for window in group if (held := self._state_windows.pop(window, None)) is not None
            ]
            if not state_windows:
                raise UserCodeError(
                    f"{type(self._assigner).__qualname__}.merge_windows merges {group!r} into {merge_result!r}, but "
                    "none of them is in flight: it is to merge at least two of the windows that it is given"
                )
            state_window = state_windows.pop(0)
            self._state_windows[merge_result] = state_window
            if group != [merge_result]:
                merge_function(merge_result, group, state_window, state_windows)
        if not is_merged:
            self._state_windows[result] = result
        return result

    def _merges(self, new_window: W) -> dict[W, list[W]]:
        """Return the groups of windows to be merged, by merged window."""
        if type(self._assigner) in SESSIONS:
            return _merged_session(new_window, self._state_windows)
        merges = _Merges[W]()
        self._assigner.merge_windows([*self._state_windows, new_window], merges)
        return merges.results


def _merged_session(new_window: Any, in_flight: Iterable[Any]) -> dict[Any, list[Any]]:
    """Return the merges that `TimeWindow.merge_windows` finds, given that no two windows in flight touch."""
    group = [window for window in in_flight if window.intersects(new_window)]
    if not group or group == [new_window]:
        return {}
    # Flink takes them as they lie in a hash table; here elements come by session, as over columns, and after a restore.
    group.sort()
    merged = new_window
    for window in group:
        merged = merged.cover(window)
    return {merged: group if new_window in group else [*group, new_window]}


class _Merges(MergingWindowAssigner.MergeCallback[W]):
    """Collects the groups of windows that merge."""

    def __init__(self) -> None:
        self.results: dict[W, list[W]] = {}

    def merge(self, to_be_merged: Collection[W], merge_result: W) -> None:
        self.results[merge_result] = list(dict.fromkeys(to_be_merged))


MERGING_WINDOW_SET = "merging-window-set"


class MergingWindows:
    """Holds the windows in flight of every key in state, and merges their state, triggers and timers with them.

    Parameters
    ----------
    assigner : MergingWindowAssigner
    backend : KeyedStateBackend
    contents : object
        The state of the windows' contents, a merging one.
    trigger_calls : TriggerCalls
    cleanup : WindowCleanup
    results : FunctionResults
        Describes elements and windows in errors.
    merge_failed : callable
        From a window and the exception of a function to the exception to raise.

    Notes
    -----
    Does what Flink's ``WindowOperator`` does for a ``MergingWindowAssigner``.
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
        self._sets = backend.get_or_create_keyed_state(ValueStateDescriptor(MERGING_WINDOW_SET))
        self._contents = contents
        self._trigger_calls = trigger_calls
        self._cleanup = cleanup
        self._results = results
        self._merge_failed = merge_failed

    def add(self, window: Window, record: StreamRecord[Any]) -> tuple[Window, Window] | None:
        """Add a window of an element to the windows in flight of the current key.

        Returns
        -------
        (Window, Window) or None
            The window, merged or not, and its state window; None if it is late.

        Raises
        ------
        UserCodeError
            If the assigner or the trigger raises, or the merged window is late.
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
        """Return the state window of a window of the current key; None if the window is not in flight."""
        state_windows: dict[Window, Window] = self._sets.get_internal() or {}
        return state_windows.get(window)

    def retire(self, window: Window) -> None:
        """Remove a window of the current key."""
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
                f"{late_for}: merging cannot make a window late. Let it return a window that covers those it merges"
            )
        self._trigger_calls.on_merge(result, merged)
        for window in merged:
            self._trigger_calls.clear(window)
            self._cleanup.delete(window)
        try:
            self._contents.merge_namespaces(state_window, merged_state)
        except Exception as failure:
            raise self._merge_failed(result, failure) from failure
