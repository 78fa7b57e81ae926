"""Settings of joins of two keyed streams over columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from flinkcore._internal.arrow.expressions import Expression, is_expression
from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common.output_tag import OutputTag
from flinkcore.datastream.graph.column_arguments import require_boolean
from flinkcore.datastream.graph.declared_type import require_output_tag
from flinkcore.errors import ArgumentTypeError, ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream.window import WindowAssigner


@dataclass(frozen=True, eq=False)
class JoinOperation:
    """A join of two streams by key.

    Attributes
    ----------
    how : str
        Which rows come out without a match.
    where : pyarrow.compute.Expression or None
        Condition on the columns of both rows, as the results name them.
    suffix : str
        Added to names of right columns that left columns have, too.
    nulls_equal : bool
        Whether keys that have nulls match.

    Raises
    ------
    ConfigurationError
        If a setting is out of its range.
    """

    call: ClassVar[str]
    operator_name: ClassVar[str]
    choices: ClassVar[tuple[str, ...]] = ("inner", "left", "right", "full")

    how: str = "inner"
    where: Expression | None = None
    suffix: str = "_right"
    nulls_equal: bool = False

    def __post_init__(self) -> None:
        if self.how not in self.choices:
            raise ConfigurationError(
                f"{self.call}(how=...) is {', '.join(map(repr, self.choices[:-1]))} or {self.choices[-1]!r}, not "
                f"{self.how!r}"
            )
        if self.where is not None and not is_expression(self.where):
            raise ArgumentTypeError(
                f"{self.call}(where=...) takes a condition on columns of both rows, such as pyarrow.compute.field("
                f"'price') > pyarrow.compute.field('limit'), not {self.where!r}"
            )
        if not isinstance(self.suffix, str) or not self.suffix:
            raise ArgumentTypeError(
                f"{self.call}(suffix=...) is a text that is not empty, not {self.suffix!r}"
            )
        require_boolean(self.nulls_equal, f"{self.call}(nulls_equal=...)")

    @property
    def changes(self) -> bool:
        """Return whether results are changes, with their kind."""
        return False

    @property
    def needs_event_time(self) -> bool:
        """Return whether it needs watermarks."""
        return True

    @property
    def has_windows(self) -> bool:
        """Return whether results have the bounds of windows."""
        return False

    @property
    def timestamp_range(self) -> tuple[int, int]:
        """Lowest and highest timestamp that a row may have, in ms since the epoch."""
        return MIN_TIMESTAMP + 1, MAX_TIMESTAMP

    @property
    def held_back_ms(self) -> int:
        """By how much its results may be behind its watermark, in ms."""
        return 0

    @property
    def late_tags(self) -> tuple[OutputTag | None, ...]:
        """Side outputs of late rows of each stream, or None where they are dropped; empty if no row is late."""
        return ()

    @property
    def settings(self) -> dict[str, str]:
        """Settings of this kind of join on which its state depends, by name."""
        return {}

    def __str__(self) -> str:
        settings = "".join(f", {name} {value}" for name, value in self.settings.items())
        where = "" if self.where is None else f", where {self.where}"
        return f"{self.how} {self.operator_name}{settings}{where}"


@dataclass(frozen=True, eq=False)
class TimeIntervalJoin(JoinOperation):
    """A join of rows whose times are close.

    Attributes
    ----------
    lower_ms, upper_ms : int
        Bounds of the right timestamp minus the left one.
    by_clock : bool
        Whether timestamps are arrivals: a row that may only match earlier ones matches none that comes after it in the
        same millisecond, and rows that have not expired with the last arrival do not come out without a match, as in
        Flink's ``ProcTimeIntervalJoin``.
    """

    call: ClassVar[str] = "join_interval"
    operator_name: ClassVar[str] = "IntervalJoin"

    lower_ms: int = 0
    upper_ms: int = 0
    by_clock: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lower_ms > self.upper_ms:
            raise ConfigurationError(
                f"join_interval: the lower bound is {self.lower_ms} ms, greater than the upper one of {self.upper_ms} "
                "ms: exchange them"
            )
        for bound in (self.lower_ms, self.upper_ms):
            if abs(bound) > MAX_TIMESTAMP // 4:
                raise ConfigurationError(
                    f"join_interval: a bound of {bound} ms is more than an interval can be, {MAX_TIMESTAMP // 4} ms"
                )

    @property
    def timestamp_range(self) -> tuple[int, int]:
        reach = max(abs(self.lower_ms), abs(self.upper_ms)) + 1
        return MIN_TIMESTAMP + reach + 1, MAX_TIMESTAMP - reach

    @property
    def held_back_ms(self) -> int:
        """The larger bound, as of Flink's ``TimeIntervalJoin.getMaxOutputDelay``."""
        return max(0, -self.lower_ms, self.upper_ms)

    @property
    def settings(self) -> dict[str, str]:
        clock = {"by": "arrival"} if self.by_clock else {}
        return {"right - left in": f"[{self.lower_ms} ms, {self.upper_ms} ms]", **clock}


@dataclass(frozen=True, eq=False)
class WindowJoin(JoinOperation):
    """A join of rows that are in the same window.

    Attributes
    ----------
    assigner : WindowAssigner
    left_late_tag, right_late_tag : OutputTag or None
        Side outputs of late rows of each stream, or None where they are dropped.
    """

    call: ClassVar[str] = "join_window"
    operator_name: ClassVar[str] = "WindowJoin"
    choices: ClassVar[tuple[str, ...]] = ("inner", "left", "right", "full", "semi", "anti")

    assigner: WindowAssigner[Any, Any] | None = None
    left_late_tag: OutputTag | None = None
    right_late_tag: OutputTag | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        left, right = self.late_tags
        for side, tag in (("left", left), ("right", right)):
            if tag is not None:
                require_output_tag(tag, f"join_window({side}_late_to=...)")
        if left is not None and left == right:
            raise ConfigurationError(
                f"join_window: the side output {left.tag_id!r} is named for late rows of both streams, which may have "
                "different columns: take two names"
            )

    @property
    def late_tags(self) -> tuple[OutputTag | None, ...]:
        return self.left_late_tag, self.right_late_tag

    @property
    def has_windows(self) -> bool:
        return True

    @property
    def settings(self) -> dict[str, str]:
        assert self.assigner is not None
        return {"windows": self.assigner.in_words}


@dataclass(frozen=True, eq=False)
class RegularJoin(JoinOperation):
    """A join of all rows of a key.

    Attributes
    ----------
    with_changes : bool
    unique_keys : tuple of (tuple of str or None)
        For each stream, if its rows are changes, columns of which a key has one row for each value: a row that comes
        replaces that with the same values. Without columns a key has one row. By default a row that is withdrawn equals
        one that came before in all columns.
    ttl_ms : tuple of two ints
        For each stream, time to live of its rows in ms of processing time after they were written; 0 if they never
        expire. With one, results are changes.
    """

    call: ClassVar[str] = "join_regular"
    operator_name: ClassVar[str] = "Join"
    choices: ClassVar[tuple[str, ...]] = ("inner", "left", "right", "full", "semi", "anti")

    with_changes: bool = False
    unique_keys: tuple[tuple[str, ...] | None, tuple[str, ...] | None] = (None, None)
    ttl_ms: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_boolean(self.with_changes, "join_regular(changes=...)")

    @property
    def changes(self) -> bool:
        return self.with_changes

    @property
    def needs_event_time(self) -> bool:
        return False

    @property
    def timestamp_range(self) -> tuple[int, int]:
        return MIN_TIMESTAMP, MAX_TIMESTAMP

    @property
    def settings(self) -> dict[str, str]:
        return {"changes": str(self.with_changes)}


@dataclass(frozen=True, eq=False)
class TemporalJoin(JoinOperation):
    """A join with the version of the key that is valid at the time of the left row.

    Attributes
    ----------
    ttl_ms : int
        Time to live of the rows of a key, in ms of processing time; 0 if they never expire.
    """

    call: ClassVar[str] = "join_temporal"
    operator_name: ClassVar[str] = "TemporalJoin"
    choices: ClassVar[tuple[str, ...]] = ("inner", "left")

    ttl_ms: int = 0
