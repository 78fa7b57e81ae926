"""The results of user functions on their way to the output, and the errors of functions that fail."""

from collections.abc import Iterable, Iterator
from types import GeneratorType
from typing import Any

from flinkcore.common.constants import MIN_TIMESTAMP
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.functions import FunctionOrCallable, function_name
from flinkcore.datastream.functions.join_functions import called_function
from flinkcore.datastream.window import Window
from flinkcore.errors import DataError, UserCodeError, in_words
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.key_context import NO_KEY, KeyContext
from flinkcore.runtime.messages import shown, shown_time
from flinkcore.runtime.output import Output, OutputFullError
from flinkcore.runtime.timers import InternalTimer

Subject = StreamRecord[Any] | InternalTimer | Window
"""The element, timer or window that a function is called for."""


class FunctionResults:
    """Emits the results of a function, one by one as it makes them.

    Parameters
    ----------
    function : Function or callable
        Named in errors.
    output : Output
    key_context : KeyContext, optional
        Of a keyed operator: its current key is named in errors.

    Attributes
    ----------
    waiting : iterator or None
        The remaining results of a call whose output was full.

    Notes
    -----
    Flink's ``TimestampedCollector`` and the ``output`` of its contexts.
    """

    __slots__ = ("_collect", "_collect_side", "_function", "_key_context", "waiting")

    def __init__(
        self, function: FunctionOrCallable, output: Output, key_context: KeyContext | None = None
    ) -> None:
        self._function = function_name(function)
        self._collect = output.collect
        self._collect_side = output.collect_side
        self._key_context = key_context
        self.waiting: Iterator[Any] | None = None

    def emit(
        self,
        results: Iterable[Any],
        timestamp: int | None,
        side_timestamp: int | None,
        method: str,
        subject: Subject,
    ) -> None:
        """Emit the results that a call of a function yields or has returned.

        Parameters
        ----------
        results : iterable
            A pair of an `OutputTag` and an element goes to that side output. `waiting` continues a call before.
        timestamp : int or None
            Of records of the main output, in ms since the epoch; None for none.
        side_timestamp : int or None
            Of records of side outputs, in ms since the epoch; None becomes -2**63, as in Flink.
        method : str
        subject : StreamRecord, InternalTimer or Window
            The method that was called, and for what: named in errors.

        Raises
        ------
        UserCodeError
            If the function raises, as a generator does while its results are taken; or if its result is not iterable,
            or is a text or a dict, whose elements would be characters or keys.
        OutputFullError
            If the output is full: the remaining results are `waiting`.
        """
        if type(results) is list:  # no user code runs while a list is iterated over
            results = iter(results)
        elif results is self.waiting:
            self.waiting = None
        else:
            results = self._taken(results, method, subject)
        try:
            for result in results:
                if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], OutputTag):
                    side_timestamp = MIN_TIMESTAMP if side_timestamp is None else side_timestamp
                    self._collect_side(result[0], StreamRecord(result[1], side_timestamp))
                else:
                    self._collect(StreamRecord(result, timestamp))
        except OutputFullError:
            self.waiting = results
            raise

    def _taken(self, results: Iterable[Any], method: str, subject: Subject) -> Iterator[Any]:
        if type(results) is not GeneratorType:
            self._refuse_other_than_iterable(results, method, subject)
        try:
            yield from results
        except Exception as failure:
            raise self.failed(method, subject, failure) from failure

    def failed(
        self, method: str, subject: Subject, failure: Exception, culprit: object | None = None
    ) -> UserCodeError:
        """Return the error to raise from a failure of the function, or of another object of the user."""
        name = self._function if culprit is None else function_name(called_function(culprit))
        return UserCodeError(f"{name}.{method} failed at {self.described(subject)}: {in_words(failure)}")

    def misfit(self, value: Any, place: str, failure: DataError, method: str) -> DataError:
        """Return the error to raise for a result that is not of the declared type; see :func:`misfit`."""
        return misfit(f"{self._function}.{method}", value, place, failure)

    def _refuse_other_than_iterable(self, results: object, method: str, subject: Subject) -> None:
        if isinstance(results, (str, bytes, bytearray, dict)) or not hasattr(results, "__iter__"):
            raise UserCodeError(
                f"{self._function}.{method} gave {shown(results)} at {self.described(subject)}: yield elements, or "
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
            return f"the timer at {subject.timestamp_ms} ms{key}"
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
