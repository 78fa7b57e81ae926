"""What a state with a time to live holds: values with the time of their last access."""

from collections.abc import Callable
from typing import Any

from flinkcore.datastream.state import StateDescriptor

Stamped = tuple[Any, int]
"""A value and the time of its last access, in ms of the time that its life is counted in."""


def map_values(type: StateDescriptor.Type, held: Any, function: Callable[[Any], Any]) -> Any:
    """Return what a state holds for a key with every single value replaced.

    Parameters
    ----------
    type : StateDescriptor.Type
    held : object
        The value itself, or a list of elements, or a dictionary, by the type of the state.
    function : callable
        Not called for values of a map that are None.
    """
    if type is StateDescriptor.Type.LIST:
        return [function(element) for element in held]
    if type is StateDescriptor.Type.MAP:
        return {key: None if value is None else function(value) for key, value in held.items()}
    return function(held)


def unexpired_or_none(type: StateDescriptor.Type, held: Any, oldest_ms: int) -> Any:
    """Return what is alive of what a state holds for a key.

    Parameters
    ----------
    type : StateDescriptor.Type
    held : object
        A :data:`Stamped`, or a list or a dictionary of them.
    oldest_ms : int
        A value whose last access was at this time or before has expired.

    Returns
    -------
    object
        The same object where all of it is alive, None where nothing is.
    """
    if type is StateDescriptor.Type.LIST:
        elements = [stamped for stamped in held if stamped[1] > oldest_ms]
        return held if len(elements) == len(held) else elements or None
    if type is StateDescriptor.Type.MAP:
        entries = {key: stamped for key, stamped in held.items() if stamped is None or stamped[1] > oldest_ms}
        return held if len(entries) == len(held) else entries or None
    return held if held[1] > oldest_ms else None
