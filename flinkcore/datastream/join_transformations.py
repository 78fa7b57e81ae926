"""Steps of a job that join two streams."""

from dataclasses import dataclass
from typing import ClassVar

from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.interval_join_operation import IntervalJoinOperation
from flinkcore.datastream.transformations import shown_function_outputs
from flinkcore.datastream.two_input_transformations import TwoInputTransformation
from flinkcore.datastream.window import WindowOperation
from flinkcore.errors import ConfigurationError


@dataclass(frozen=True, eq=False)
class IntervalJoinTransformation(TwoInputTransformation):
    """Calls a function for the pairs of rows of a key whose timestamps are close.

    Attributes
    ----------
    function : IntervalJoinOperation
    """

    function: IntervalJoinOperation

    def __post_init__(self) -> None:
        super().__post_init__()
        named = self.side_outputs()
        for tag in named:
            if named.count(tag) > 1:
                raise ConfigurationError(
                    f"side output {tag.tag_id!r} is named for two of left late rows, right late rows and the "
                    "function's: take two names"
                )

    def side_outputs(self) -> tuple[OutputTag, ...]:
        """Return the tags of late rows, if they go to side outputs, and those of the function."""
        late = (self.function.left_late_tag, self.function.right_late_tag)
        return (*(tag for tag in late if tag is not None), *self.tags)

    def __str__(self) -> str:
        outputs = shown_function_outputs(self.output_type, self.tags, self.timestamp_column)
        name = type(self.function.function).__qualname__
        return f"{self.function}: {outputs}; row by row, as {name} in Python"


@dataclass(frozen=True, eq=False)
class WindowJoinTransformation(TwoInputTransformation):
    """Calls a function for what two streams have in each window of a key.

    Attributes
    ----------
    function : WindowOperation
        Its windows are of elements of both streams.
    """

    call: ClassVar[str] = "apply"

    function: WindowOperation

    def __str__(self) -> str:
        outputs = shown_function_outputs(self.output_type, self.tags, self.timestamp_column)
        name = self.function.function_names[-1]
        return f"two streams in windows, {self.function}: {outputs}; row by row, as {name} in Python"
