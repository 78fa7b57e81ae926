"""How operators on streams without keys call their function."""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from flinkcore.datastream.functions import Results
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.operators.function_results import FunctionResults
from flinkcore.runtime.output import OutputFullError


class ElementContext(Protocol):
    """What a method for elements is called with."""

    element: StreamRecord[Any] | None


def call_for_element(
    method: Callable[[Any, Any], Results],
    context: ElementContext,
    results: FunctionResults,
    record: StreamRecord[Any],
    given: Results = None,
) -> None:
    """Call a function's method for a record, and emit what it gives with the record's timestamp.

    Parameters
    ----------
    method, context, results, record
    given : iterable, optional
        What is still to be emitted of a call that waits, instead of a call.

    Raises
    ------
    UserCodeError
        If the method raises, or gives what is no iterable.
    OutputFullError
        If the output can take no more now.
    """
    context.element = record
    try:
        if given is None:
            try:
                given = method(record.value, context)
            except Exception as failure:
                raise results.failed(method.__name__, record, failure) from failure
        if given is not None:
            results.emit(given, record.timestamp, record.timestamp, method.__name__, record)
    except OutputFullError as full:
        full.then(partial(call_for_element, method, context, results, record, results.waiting))
        raise
    finally:
        context.element = None
