"""The windows of a key that merge, and where the state of each is."""

from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, Generic, TypeVar

from flinkcore.datastream.window import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    MergingWindowAssigner,
    ProcessingTimeSessionWindows,
    Window,
)
from flinkcore.errors import LifecycleError, UserCodeError

SESSIONS: Final = (
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
)
"""Assigners whose windows merge if they touch."""

W = TypeVar("W", bound=Window)

MergeFunction = Callable[[W, list[W], W, list[W]], None]
"""Called with the merged window, the windows that it is made of without the new one, its state window, and the state
windows to be merged into that."""


class MergingWindowSet(Generic[W]):
    """The windows in flight of a key, each with the window whose state it uses.

    When windows merge, the state of one of them stays where it is, and is used by the merged window.

    Parameters
    ----------
    assigner : MergingWindowAssigner
        Says which windows merge.
    state_windows : dict of Window to Window
        From every window in flight to its state window; changed in place.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.runtime.operators.windowing.MergingWindowSet``, which reads and writes the
    mapping as list state for each element; here the map state holds it.
    """

    __slots__ = ("_assigner", "_state_windows")

    def __init__(self, assigner: MergingWindowAssigner[object, W], state_windows: dict[W, W]) -> None:
        self._assigner = assigner
        self._state_windows = state_windows

    def get_state_window(self, window: W) -> W | None:
        """Return the window whose state a window in flight uses; None if it is not in flight."""
        return self._state_windows.get(window)

    def retire_window(self, window: W) -> None:
        """Take a window out.

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
            Called for every merge, but where a window in flight has taken in the new one without growing.

        Returns
        -------
        Window
            What the new window has become: itself, or a merged one.

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
        """Return the groups of windows to be merged, by what they become."""
        if type(self._assigner) in SESSIONS:
            return _merged_session(new_window, self._state_windows)
        merges = _Merges[W]()
        self._assigner.merge_windows([*self._state_windows, new_window], merges)
        return merges.results


def _merged_session(new_window: Any, in_flight: Iterable[Any]) -> dict[Any, list[Any]]:
    """Return what `TimeWindow.merge_windows` finds where no two of the windows in flight touch, with less ado."""
    group = [window for window in in_flight if window.intersects(new_window)]
    if not group or group == [new_window]:
        return {}
    merged = new_window
    for window in group:
        merged = merged.cover(window)
    return {merged: group if new_window in group else [*group, new_window]}


class _Merges(MergingWindowAssigner.MergeCallback[W]):
    """Notes the groups of windows that merge."""

    def __init__(self) -> None:
        self.results: dict[W, list[W]] = {}

    def merge(self, to_be_merged: Collection[W], merge_result: W) -> None:
        """Note a group."""
        self.results[merge_result] = list(dict.fromkeys(to_be_merged))
