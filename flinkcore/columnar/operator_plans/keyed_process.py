"""A function called for the rows and the timers of each key."""

from __future__ import annotations

from dataclasses import dataclass

from flinkcore.columnar.operator_plans.user_process import UserProcess
from flinkcore.datastream.functions import KeyedProcessFunction


@dataclass(frozen=True)
class KeyedProcess(UserProcess):
    """A function called for the rows and the timers of each key."""

    function: KeyedProcessFunction
