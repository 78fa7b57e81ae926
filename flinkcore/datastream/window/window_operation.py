"""The settings of a window operator."""

from dataclasses import dataclass
from typing import Any

from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
    function_name,
)
from flinkcore.datastream.functions.join_functions import called_function
from flinkcore.datastream.window.evictors import Evictor
from flinkcore.datastream.window.triggers import Trigger
from flinkcore.datastream.window.window_assigner import (
    MergingWindowAssigner,
    WindowAssigner,
    require_assigner,
)
from flinkcore.datastream.window.window_settings import require_milliseconds
from flinkcore.errors import ArgumentTypeError, ConfigurationError

PreAggregation = ReduceFunction[Any] | AggregateFunction[Any, Any, Any]
AnyWindowFunction = (
    WindowFunction[Any, Any, Any, Any]
    | AllWindowFunction[Any, Any, Any]
    | ProcessWindowFunction[Any, Any, Any, Any]
    | ProcessAllWindowFunction[Any, Any, Any]
)
_FUNCTIONS = (WindowFunction, AllWindowFunction, ProcessWindowFunction, ProcessAllWindowFunction)


@dataclass(eq=False, repr=False)
class WindowOperation:
    """Windows of functions: which windows elements belong to, when these fire, and which functions are called.

    Attributes
    ----------
    assigner : WindowAssigner
    trigger : Trigger
    evictor : Evictor or None
    allowed_lateness_ms : int
    late_tag : OutputTag or None
        Side output of elements that are late for all their windows, or None if they are counted and dropped.
    pre_aggregation : ReduceFunction, AggregateFunction or None
        Aggregates elements as they arrive; None if the window keeps the elements.
    window_function : WindowFunction, AllWindowFunction, ProcessWindowFunction, ProcessAllWindowFunction or None
        Called with the aggregate, or the elements, when the window fires; None if the aggregate is the result.

    Raises
    ------
    ConfigurationError
        If a setting is of another type, the lateness is negative, windows merge but the trigger does not, or there is
        no function at all.

    Notes
    -----
    PyFlink's ``WindowOperationDescriptor``, with the checks of Flink's ``WindowOperatorBuilder``.
    """

    assigner: WindowAssigner[Any, Any]
    trigger: Trigger[Any, Any]
    evictor: Evictor[Any] | None = None
    allowed_lateness_ms: int = 0
    late_tag: OutputTag | None = None
    pre_aggregation: PreAggregation | None = None
    window_function: AnyWindowFunction | None = None

    def __post_init__(self) -> None:
        require_assigner(self.assigner, "a window operation")
        if not isinstance(self.trigger, Trigger):
            raise ArgumentTypeError(f"a trigger is one such as CountTrigger.of(10), not {self.trigger!r}")
        if isinstance(self.assigner, MergingWindowAssigner) and not self.trigger.can_merge():
            raise ConfigurationError(
                f"{type(self.assigner).__name__} makes windows that merge, but {type(self.trigger).__name__} does not "
                "support merging. Let its can_merge return True, and define on_merge"
            )
        if self.evictor is not None and not isinstance(self.evictor, Evictor):
            raise ArgumentTypeError(f"an evictor is one such as CountEvictor.of(10), not {self.evictor!r}")
        require_milliseconds("a window operation", "allowed lateness", self.allowed_lateness_ms)
        if self.allowed_lateness_ms < 0:
            raise ConfigurationError(
                f"allowed_lateness cannot be negative, it is {self.allowed_lateness_ms} ms"
            )
        if self.late_tag is not None and not isinstance(self.late_tag, OutputTag):
            raise ArgumentTypeError(f"late rows go to an OutputTag, not to {self.late_tag!r}")
        if self.pre_aggregation is None and self.window_function is None:
            raise ConfigurationError("windows need a function: reduce, aggregate, process or apply")
        if not isinstance(self.pre_aggregation, ReduceFunction | AggregateFunction | None):
            raise ArgumentTypeError(
                f"windows reduce by a ReduceFunction, or aggregate by an AggregateFunction, "
                f"not by {self.pre_aggregation!r}"
            )
        if self.window_function is not None and not isinstance(self.window_function, _FUNCTIONS):
            raise ArgumentTypeError(
                f"a function over windows is a {', '.join(kind.__name__ for kind in _FUNCTIONS)}, "
                f"not {self.window_function!r}"
            )

    @property
    def function_names(self) -> list[str]:
        """The names of the functions, in the order of their calls; not empty."""
        functions = (self.pre_aggregation, self.window_function)
        return [function_name(called_function(function)) for function in functions if function is not None]

    def __str__(self) -> str:
        late = (
            f"to side output {self.late_tag.tag_id}" if self.late_tag is not None else "counted and dropped"
        )
        parts = [self.assigner.in_words]
        if type(self.trigger) is not type(self.assigner.get_default_trigger(None)):
            parts.append(f"trigger {self.trigger}")
        if self.evictor is not None:
            parts.append(f"evictor {self.evictor}")
        parts += [f"allowed lateness {self.allowed_lateness_ms} ms", f"late rows {late}"]
        return ", ".join(parts)
