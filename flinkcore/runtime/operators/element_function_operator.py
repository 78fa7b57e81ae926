"""What operators that call a function of an element, and no process function, have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flinkcore.common.watermark import Watermark
from flinkcore.datastream.functions import Function, FunctionOrCallable, RuntimeContext
from flinkcore.errors import DataError, FlinkcoreError
from flinkcore.runtime.elements import StreamRecord
from flinkcore.runtime.operators.function_results import FunctionResults
from flinkcore.runtime.operators.keyed_calls import KeySelector, selected_key
from flinkcore.runtime.operators.stream_operator import AbstractStreamOperator
from flinkcore.runtime.output import Output
from flinkcore.runtime.state import KeyedStateBackend

ElementCall = Callable[[StreamRecord[Any]], None]
Conversion = Callable[[Any], Any]


@dataclass(frozen=True)
class KeyedInput:
    """How the key of an element is found, and the state that belongs to it.

    Attributes
    ----------
    key_selector : callable
    backend : KeyedStateBackend
        The operator's own, with its key context.
    """

    key_selector: KeySelector
    backend: KeyedStateBackend

    def set_key_before(self, call: ElementCall) -> ElementCall:
        """Return what makes an element's key the current one, and then calls something else."""
        key_selector, set_current_key = self.key_selector, self.backend.set_current_key

        def process(record: StreamRecord[Any]) -> None:
            set_current_key(selected_key(key_selector, record))
            call(record)

        return process


class ElementFunctionOperator(AbstractStreamOperator):
    """Opens and closes a function, and says where it failed.

    Parameters
    ----------
    function : Function or callable
    output : Output
    conversion : callable, optional
        From what the function gives to a value of the declared type.
    keyed_inputs : tuple of KeyedInput
        For each input, where the function has keyed state.

    Notes
    -----
    Flink's ``AbstractUdfStreamOperator``.
    """

    def __init__(
        self,
        function: FunctionOrCallable,
        output: Output,
        conversion: Conversion | None = None,
        keyed_inputs: tuple[KeyedInput, ...] = (),
    ) -> None:
        super().__init__(output)
        self._function = function
        self._conversion = conversion
        self._keyed_inputs = keyed_inputs
        key_context = keyed_inputs[0].backend.key_context if keyed_inputs else None
        self._results = FunctionResults(function, output, key_context)

    def open(self, runtime_context: RuntimeContext) -> None:
        """Open the function; before anything is processed."""
        if isinstance(self._function, Function):
            self._function.open(runtime_context)

    def close(self) -> None:
        """Close the function."""
        if isinstance(self._function, Function):
            self._function.close()

    def process_watermark(self, watermark: Watermark) -> None:
        """Let state live by the watermark, and pass it on."""
        if self._keyed_inputs:
            self._keyed_inputs[0].backend.advance_watermark(watermark.timestamp)
        super().process_watermark(watermark)

    def _with_key(self, call: ElementCall, input_index: int = 0) -> ElementCall:
        return self._keyed_inputs[input_index].set_key_before(call) if self._keyed_inputs else call

    def _misfit(
        self, method: str, value: Any, record: StreamRecord[Any], failure: Exception
    ) -> FlinkcoreError:
        """The error to raise where a result cannot be converted to the declared type."""
        if not isinstance(failure, DataError):
            return self._failed(method, record, failure)
        return self._results.misfit(value, f" at {self._results.described(record)}", failure, method)

    def _failed(self, method: str, record: StreamRecord[Any], failure: Exception) -> FlinkcoreError:
        return (
            failure if isinstance(failure, FlinkcoreError) else self._results.failed(method, record, failure)
        )
