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
        If the extractor raises, gives no int, or one that is not above zero.
    """
    is_object = isinstance(extractor, SessionWindowTimeGapExtractor)
    try:
        gap = extractor.extract(element) if is_object else extractor(element)  # type: ignore[union-attr, operator]
    except Exception as failure:
        raise UserCodeError(
            f"{_name(extractor)} failed to give the gap of a session: {type(failure).__name__}: {failure}"
        ) from failure
    if isinstance(gap, bool) or not isinstance(gap, int) or gap <= 0:
        raise UserCodeError(
            f"{_name(extractor)} gave {gap!r} as the gap of a session: it is to return an int of ms above zero"
        )
    return gap


def _name(extractor: GapExtractor) -> str:
    if isinstance(extractor, SessionWindowTimeGapExtractor):
        return f"{type(extractor).__qualname__}.extract"
    return str(getattr(extractor, "__qualname__", type(extractor).__qualname__))
