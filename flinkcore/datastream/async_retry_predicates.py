"""PyFlink's ``pyflink.datastream.async_retry_predicates``: which results and errors are a reason to try again."""

from __future__ import annotations

from collections.abc import Sized


def empty_result_predicate(result: Sized | None) -> bool:
    """Return whether a result is None, or has no elements."""
    return result is None or len(result) == 0


def has_exception_predicate(error: BaseException | None) -> bool:
    """Return whether there is an error."""
    return error is not None


def exception_type_predicate(
    error: BaseException | None, expected_error_type: type[BaseException] | tuple[type[BaseException], ...]
) -> bool:
    """Return whether an error is of a type; ``functools.partial`` gives the type."""
    return isinstance(error, expected_error_type)
