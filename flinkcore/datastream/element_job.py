"""Jobs that run element by element."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from flinkcore.common.job_execution_result import JobExecutionResult
from flinkcore.datastream.element_transformations import SinkTransformation
from flinkcore.datastream.transformations import Transformation


@dataclass(frozen=True)
class ElementJob:
    """All that an environment is asked to run at once.

    Attributes
    ----------
    name : str
    sinks : tuple of SinkTransformation
        In the order in which the program has named them.
    collected : Transformation or None
        Step whose elements the program wants itself.
    """

    name: str
    sinks: tuple[SinkTransformation, ...]
    collected: Transformation | None = None

    def ends(self) -> tuple[Transformation, ...]:
        """Return the steps that all others lead to."""
        return self.sinks if self.collected is None else (*self.sinks, self.collected)

    def transformations(self) -> tuple[Transformation, ...]:
        """Return all steps, each once, inputs first."""
        steps: dict[int, Transformation] = {}
        for end in self.ends():
            for step in end.in_order():
                steps.setdefault(id(step), step)
        return tuple(steps.values())


class ElementJobRun(Protocol):
    """A job that has been started, and goes on as its elements are asked for."""

    def __iter__(self) -> Iterator[Any]:
        """Yield the collected elements; at their end the job has come to its own."""

    def run_to_end(self) -> JobExecutionResult:
        """Run what is left of the job; its collected elements are dropped."""

    def close(self) -> None:
        """Cancel the job if it has not come to its end; may be called again."""
