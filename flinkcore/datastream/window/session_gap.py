"""Session gaps that depend on the element."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from flinkcore.errors import ConfigurationError, UserCodeError


class SessionWindowTimeGapExtractor(ABC):
    """Gives the session gap of an element.

    Notes
    -----
    Follows ``pyflink.datastream.window.SessionWindowTimeGapExtractor``.
    """

    @abstractmethod
    def extract(self, element: Any) -> int:
        """Return how long after the element its session ends, in ms, at least 1."""


GapExtractor = SessionWindowTimeGapExtractor | Callable[[Any], int]
"""An extractor, or a plain function of the element."""


def require_extractor(windows: str, extractor: GapExtractor) -> None:
    """Raise ConfigurationError if there is nothing to call."""
    if not isinstance(extractor, SessionWindowTimeGapExtractor) and not callable(extractor):
        raise ConfigurationError(
            f"{windows} takes a SessionWindowTimeGapExtractor or a function of an element, not {extractor!r}"
        )


def gap_of(extractor: GapExtractor, element: Any) -> int:
    """Return the gap of an element.

    Raises
    ------
    UserCodeError
        If the extractor gives no int, or one that is not above zero.
    """
    gap = (
        extractor.extract(element)
        if isinstance(extractor, SessionWindowTimeGapExtractor)
        else extractor(element)
    )
    if isinstance(gap, bool) or not isinstance(gap, int) or gap <= 0:
        raise UserCodeError(
            f"the gap of a session must be a number of milliseconds above zero, but the extractor gave {gap!r} for "
            f"the element {element!r}"
        )
    return gap
