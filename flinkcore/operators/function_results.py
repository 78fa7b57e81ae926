"""Results of user functions before they reach the output, and errors of functions that fail."""

from __future__ import annotations

from typing import Any

from flinkcore._internal.show.times import dated
from flinkcore._native.element_calls import ResultCollector
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.functions import FunctionOrCallable, function_name
from flinkcore.datastream.functions.join_functions import called_function
from flinkcore.datastream.window import Window
from flinkcore.errors import DataError, UserCodeError, in_words
from flinkcore.operators.keys.key_context import NO_KEY, KeyContext
from flinkcore.operators.records.output import Output, OutputFullError
from flinkcore.operators.records.shown_values import shown, shown_time
from flinkcore.operators.records.stream_elements import StreamRecord
from flinkcore.operators.timers import InternalTimer

Subject = StreamRecord[Any] | InternalTimer | Window
"""The element, timer or window that a function is called for."""


class FunctionResults(ResultCollector):
    """Emits the results of a function, one by one as it makes them.

    Parameters
    ----------
    function : Function or callable
        Named in errors.
    output : Output
    key_context : KeyContext, optional
        Key context of a keyed operator: its current key is named in errors.

    Notes
    -----
    Flink's ``TimestampedCollector`` and the ``output`` of its contexts.
    """

    __slots__ = ("_function", "_key_context")

    def __new__(
        cls, function: FunctionOrCallable, output: Output, key_context: KeyContext | None = None
    ) -> FunctionResults:
        return super().__new__(cls, output.collect, output.collect_side, OutputTag, OutputFullError)

    def __init__(
        self, function: FunctionOrCallable, output: Output, key_context: KeyContext | None = None
    ) -> None:
        self._function = function_name(function)
        self._key_context = key_context

    def failed(
        self, method: str, subject: Subject, failure: BaseException, culprit: object | None = None
    ) -> UserCodeError:
        """Return the error to raise from a failure of the function, or of another object of the user."""
        name = self._function if culprit is None else function_name(called_function(culprit))
        return UserCodeError(f"{name}.{method} failed at {self.described(subject)}: {in_words(failure)}")

    def misfit(self, value: Any, place: str, failure: DataError, method: str) -> DataError:
        """Return the error to raise for a result that is not of the declared type; see :func:`misfit`."""
        return misfit(f"{self._function}.{method}", value, place, failure)

    def refuse_other_than_iterable(self, results: object, method: str, subject: Subject) -> None:
        """Raise a UserCodeError if a result is not iterable, or is a text or a dict."""
        if isinstance(results, (str, bytes, bytearray, dict)) or not hasattr(results, "__iter__"):
            raise UserCodeError(
                f"{self._function}.{method} gave {shown(results)} at {self.described(subject)}. Yield elements, or "
                "return a list of them, or None"
            )

    def described(self, subject: Subject) -> str:
        """Return what a function was called for in words, with its key."""
        keyed = self._key_context
        key = (
            ""
            if keyed is None or keyed.current_key_id == NO_KEY
            else f" of the key {shown(keyed.current_key)}"
        )
        if isinstance(subject, InternalTimer):
            return f"the timer at {dated(subject.timestamp_ms, ' ms')}{key}"
        if isinstance(subject, Window):
            return f"the window {subject!r}{key}"
        return f"the element {shown(subject.value)}{key} {shown_time(subject)}"


def misfit(what: str, value: Any, place: str, failure: DataError) -> DataError:
    """Return the error to raise for a result that is not of the declared type.

    Parameters
    ----------
    what : str
        The function, and its method.
    value : object
        The result.
    place : str
        The element or key that it is a result for, after a space; empty if unknown.
    failure : DataError
        The error of the conversion, which names the place in the value.
    """
    return DataError(
        f"{what} gave {shown(value)}{place}: {failure}; let it give what its declared type says, or declare another"
    )
