"""The settings of an interval join."""

from dataclasses import dataclass
from typing import Any

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.functions import ProcessJoinFunction
from flinkcore.errors import ArgumentTypeError, ConfigurationError


@dataclass(eq=False, repr=False)
class IntervalJoinOperation:
    """An interval join: which right elements join a left one, and the function of the pairs.

    Attributes
    ----------
    lower_bound_ms, upper_bound_ms : int
        Bounds of the right timestamp minus the left one.
    function : ProcessJoinFunction
    is_lower_bound_inclusive, is_upper_bound_inclusive : bool
    left_late_tag, right_late_tag : OutputTag or None
        Side output of late elements, or None if they are counted and dropped.

    Raises
    ------
    ConfigurationError
        If the lower bound is greater than the upper one, one is not an integer of 64 bits, or another setting has
        another type.

    Notes
    -----
    The parameters of Flink's ``KeyedStream.IntervalJoined`` and ``IntervalJoinOperator``.
    """

    lower_bound_ms: int
    upper_bound_ms: int
    function: ProcessJoinFunction[Any, Any]
    is_lower_bound_inclusive: bool = True
    is_upper_bound_inclusive: bool = True
    left_late_tag: OutputTag | None = None
    right_late_tag: OutputTag | None = None

    def __post_init__(self) -> None:
        for name, bound in (("lower", self.lower_bound_ms), ("upper", self.upper_bound_ms)):
            if type(bound) is not int or not MIN_TIMESTAMP <= bound <= MAX_TIMESTAMP:
                raise ConfigurationError(
                    f"the {name} bound of an interval join is an integer of 64 bits, in ms, not {bound!r}"
                )
        if self.lower_bound_ms > self.upper_bound_ms:
            raise ConfigurationError(
                f"the lower bound of an interval join is {self.lower_bound_ms} ms, greater than the upper one of "
                f"{self.upper_bound_ms} ms: exchange them, between(lower, upper)"
            )
        if not isinstance(self.function, ProcessJoinFunction):
            raise ArgumentTypeError(f"an interval join takes a ProcessJoinFunction, not {self.function!r}")
        for tag in (self.left_late_tag, self.right_late_tag):
            if tag is not None and not isinstance(tag, OutputTag):
                raise ArgumentTypeError(f"late rows go to an OutputTag, not to {tag!r}")

    @property
    def least_difference_ms(self) -> int:
        """The smallest difference, right timestamp minus left one, that joins."""
        return self.lower_bound_ms + (not self.is_lower_bound_inclusive)

    @property
    def greatest_difference_ms(self) -> int:
        """The greatest difference that joins; nothing joins if it is below the smallest."""
        return self.upper_bound_ms - (not self.is_upper_bound_inclusive)

    def __str__(self) -> str:
        opening = "[" if self.is_lower_bound_inclusive else "("
        closing = "]" if self.is_upper_bound_inclusive else ")"
        late = [
            f"late {side} rows {'counted and dropped' if tag is None else f'to side output {tag.tag_id}'}"
            for side, tag in (("left", self.left_late_tag), ("right", self.right_late_tag))
        ]
        return (
            f"interval join, right - left in {opening}{self.lower_bound_ms} ms, {self.upper_bound_ms} ms{closing}, "
            f"{', '.join(late)}"
        )
