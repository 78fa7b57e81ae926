"""What a harness makes an operator with."""

from dataclasses import dataclass
from typing import Any

from flinkcore.errors import ConfigurationError
from flinkcore.runtime.operators.function_calls import KeySelector
from flinkcore.runtime.output import Output
from flinkcore.runtime.processing_time import ProcessingTimeService
from flinkcore.runtime.state import KeyedStateBackend, OperatorStateBackend
from flinkcore.runtime.streaming_runtime_context import TaskInfo


@dataclass(frozen=True)
class StreamOperatorParameters:
    """What surrounds an operator: an operator factory passes on what its operator takes.

    Parameters
    ----------
    output : Output
    processing_time_service : ProcessingTimeService
    operator_state_backend : OperatorStateBackend
    task : TaskInfo
    keyed_backend : KeyedStateBackend, optional
    key_selectors : tuple of callable
        By input; those of a keyed harness.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.operators.StreamOperatorParameters``, with what an operator of Flink
    asks its task for later.
    """

    output: Output
    processing_time_service: ProcessingTimeService
    operator_state_backend: OperatorStateBackend
    task: TaskInfo
    keyed_backend: KeyedStateBackend | None = None
    key_selectors: tuple[KeySelector, ...] = ()

    @property
    def keyed_state_backend(self) -> KeyedStateBackend:
        """Keyed state; a ConfigurationError in a harness without keys."""
        if self.keyed_backend is None:
            raise ConfigurationError(
                "the operator needs keyed state: take a harness whose name begins with Keyed, and give it a key "
                "selector"
            )
        return self.keyed_backend

    @property
    def key_selector(self) -> KeySelector:
        """From an element of the only, or the first, keyed input to its key."""
        return self._key_selector(0)

    @property
    def key_selector2(self) -> KeySelector:
        """From an element of the second input to its key."""
        return self._key_selector(1)

    def _key_selector(self, index: int) -> KeySelector:
        if index >= len(self.key_selectors):
            raise ConfigurationError(
                f"the operator needs {index + 1} key selectors, the harness was given {len(self.key_selectors)}"
            )
        return self.key_selectors[index]


def checked_key_selector(key_selector: Any, what: str = "key_selector") -> KeySelector:
    """Return a key selector; a ConfigurationError where it cannot be called."""
    if callable(key_selector):
        selector: KeySelector = key_selector
        return selector
    raise ConfigurationError(
        f"{what} is a function from an element to its key, such as lambda value: value[0], not {key_selector!r}"
    )
