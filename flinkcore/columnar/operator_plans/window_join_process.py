"""A function called for the rows of two streams in each window of a key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from flinkcore.columnar.operator_plans.window_process import OverWindows
from flinkcore.datastream.window import WindowOperation


@dataclass(frozen=True)
class WindowJoinProcess(OverWindows):
    """A function called for the rows of two streams in each window of a key.

    Attributes
    ----------
    function : WindowOperation
    """

    described_as: ClassVar[str] = "functions over windows of two streams"
    unites_inputs: ClassVar[bool] = True

    function: WindowOperation
