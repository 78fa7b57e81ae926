"""A function called for batches of rows and of timers of many keys."""

from __future__ import annotations

from dataclasses import dataclass

from flinkcore.columnar.operator_plans.user_process import UserProcess
from flinkcore.datastream.functions import KeyedBatchProcessFunction


@dataclass(frozen=True)
class BatchProcess(UserProcess):
    """A function called for batches of rows and of timers of many keys."""

    function: KeyedBatchProcessFunction

    @property
    def refuses_results(self) -> str | None:
        return (
            f"{self.function_name} is a function over batches, which takes rows of logs, and here results of another "
            "operator come to it: make it a KeyedProcessFunction"
        )
