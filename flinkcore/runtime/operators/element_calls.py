"""How operators on streams without keys call their function."""

from collections.abc import Callable
from typing import Any, Protocol

from flinkcore.datastream.functions import Results
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.operators.function_results import FunctionResults


class ElementContext(Protocol):
    """What a method for elements is called with."""

    element: StreamRecord[Any] | None


def call_for_element(
    method: Callable[[Any, Any], Results],
    context: ElementContext,
    results: FunctionResults,
    record: StreamRecord[Any],
) -> None:
    """Call a function's method for a record, and emit what it gives with the record's timestamp.

    Raises
    ------
    UserCodeError
        If the method raises, or gives what is no iterable.
    """
    context.element = record
    try:
        try:
            given = method(record.value, context)
        except Exception as failure:
            raise results.failed(method.__name__, record, failure) from failure
        if given is not None:
            results.emit(given, record.timestamp, record.timestamp, method.__name__, record)
    finally:
        context.element = None
