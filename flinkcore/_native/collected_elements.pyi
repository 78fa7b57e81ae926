from collections.abc import Callable
from typing import Any, final

@final
class CollectedElements:
    """Elements of a job on their way to its program, in order.

    Parameters
    ----------
    most : int
        At least 1.
    full : callable
        Called by `append` when there are so many: it is to take them.
    """

    def __init__(self, most: int, full: Callable[[], object]) -> None: ...
    def append(self, element: Any) -> None:
        """Add an element; raises what `full` raises."""

    def take(self) -> list[Any]:
        """Return the elements, which are then no longer here."""
