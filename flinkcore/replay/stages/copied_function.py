"""Copies of the functions of a job."""

from __future__ import annotations

import copy
from typing import TypeVar

from flinkcore.errors import UserCodeError, in_words

F = TypeVar("F")


def copied_function(function: F) -> F:
    """Return a copy: every run of every partition starts with the function as it was given, and shares nothing.

    Raises
    ------
    UserCodeError
        If it cannot be copied.
    """
    try:
        return copy.deepcopy(function)
    except Exception as failure:
        raise UserCodeError(
            f"the function {type(function).__qualname__} cannot be copied, as it must be for every partition: "
            f"{in_words(failure)}. Make what cannot be copied in open(), or give it a __deepcopy__"
        ) from failure
