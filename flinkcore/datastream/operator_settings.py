"""What a program says about how a step is to run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.errors import ConfigurationError


class ChainingStrategy(Enum):
    """Whether a step's operator may be called directly by the one before it.

    Notes
    -----
    Flink's ``ChainingStrategy``.
    """

    ALWAYS = "always"
    HEAD = "head"
    NEVER = "never"


@dataclass
class OperatorSettings:
    """Name, id and parallelism of a step; unlike the step itself they can be changed.

    Attributes
    ----------
    name, uid, description : str or None
        For messages, ``explain`` and metrics.
    parallelism, max_parallelism : int or None
        None: those of the environment.
    chaining : ChainingStrategy
    """

    name: str | None = None
    uid: str | None = None
    description: str | None = None
    parallelism: int | None = None
    max_parallelism: int | None = None
    chaining: ChainingStrategy = ChainingStrategy.ALWAYS

    def set_parallelism(self, parallelism: int) -> None:
        """Set the number of subtasks; ConfigurationError unless it is from 1 to 32,768."""
        ExecutionConfig().set_parallelism(parallelism)
        self.parallelism = None if parallelism == ExecutionConfig.PARALLELISM_DEFAULT else parallelism

    def set_max_parallelism(self, max_parallelism: int) -> None:
        """Set the number of key groups; ConfigurationError unless it is from 1 to 32,768."""
        ExecutionConfig().set_max_parallelism(max_parallelism)
        self.max_parallelism = max_parallelism

    def set_text(self, what: str, text: str) -> None:
        """Set name, uid or description; ConfigurationError unless it is a text."""
        if not isinstance(text, str) or not text:
            raise ConfigurationError(f"a {what} is a text that is not empty, not {text!r}")
        setattr(self, what, text)
