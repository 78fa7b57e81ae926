"""An operator of a task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkcore.datastream.functions import Function
from flinkcore.runtime.chaining_output import ChainingOutput
from flinkcore.runtime.elements import StreamElement
from flinkcore.runtime.operators import AbstractStreamOperator, OneInputStreamOperator
from flinkcore.runtime.operators.stream_operator import Input, OneOfTwoInputs, TwoInputStreamOperator
from flinkcore.runtime.stream_input_processor import StreamOneInputProcessor
from flinkcore.runtime.tasks.job_vertex import source_indices
from flinkcore.runtime.tasks.operator_setup import OperatorSetup
from flinkcore.runtime.tasks.task_output import Edge, ElementCall


class Subtask:
    """An operator that is open, and the ways into it."""

    def __init__(self, setup: OperatorSetup, operator: AbstractStreamOperator) -> None:
        self.setup = setup
        self.operator = operator
        self._opened: list[Function | AbstractStreamOperator] = []

    def open(self) -> None:
        """Open what the operator calls, and itself; then its inputs."""
        context = self.setup.runtime_context()
        to_open: list[Function | AbstractStreamOperator] = [*self.setup.further_functions, self.operator]
        for opened in to_open:
            self._opened.append(opened)
            opened.open(context)
        self._inputs = self._opened_inputs()

    def _opened_inputs(self) -> list[tuple[Input, ElementCall, StreamOneInputProcessor]]:
        operator = self.operator
        inputs: list[tuple[Input, ElementCall]] = []
        if isinstance(operator, OneInputStreamOperator):
            inputs = [(operator, operator.element_call)]
        elif isinstance(operator, TwoInputStreamOperator):
            first, second = OneOfTwoInputs(operator, 1), OneOfTwoInputs(operator, 2)
            inputs = [(first, first.process_element), (second, second.process_element)]
        return [
            (given, call, StreamOneInputProcessor(given, self._channels(number)))
            for number, (given, call) in enumerate(inputs)
        ]

    def _channels(self, input_index: int) -> int:
        edges = self.setup.node.inputs[input_index]
        return sum(len(source_indices(edge, self.setup.index)) for edge in edges)

    def chained(self) -> Edge:
        """Return the direct way into the operator."""
        given, call, _ = self._inputs[0]
        return Edge(call, ChainingOutput(given))

    def input(self, input_index: int) -> tuple[ElementCall, Callable[[StreamElement[Any], int], None]]:
        """Return what takes the records of an input, and what takes other elements with their channel."""
        _, call, processor = self._inputs[input_index]
        return call, processor.process_element

    def close(self) -> None:
        """Close what was opened, the operator first; the first error counts."""
        failure: BaseException | None = None
        while self._opened:
            try:
                self._opened.pop().close()
            except BaseException as raised:
                failure = failure or raised
        if failure is not None:
            raise failure
