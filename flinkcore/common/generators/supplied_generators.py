"""Watermark generators that a user's supplier makes."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from flinkcore._internal.show.times import dated
from flinkcore.common.timestamp_assigner import as_timestamp
from flinkcore.common.watermark import Watermark
from flinkcore.common.watermark_generators import WatermarkGenerator, WatermarkOutput
from flinkcore.errors import ConfigurationError, FlinkcoreError, UserCodeError, in_words


class HeldGenerators:
    """The generators of a user's supplier that the splits of one source hold, so that no two splits share one.

    A shared generator would see the events of both splits, and events of the one could make those of the other late.
    """

    def __init__(self) -> None:
        # The generators are kept, so that none takes the identity of another.
        self._holders: dict[int, tuple[WatermarkGenerator[Any], str]] = {}
        self._identities: dict[str, int] = {}

    def hold(self, generator: WatermarkGenerator[Any], holder: str, supplier: str) -> None:
        """Record the holder of a generator.

        Parameters
        ----------
        generator : WatermarkGenerator
        holder, supplier : str
            Their names in messages.

        Raises
        ------
        ConfigurationError
            If another holds it already.
        """
        identity = id(generator)
        if identity in self._holders:
            raise ConfigurationError(
                f"{supplier} made the same {type(generator).__name__} for {holder} that {self._holders[identity][1]} "
                "holds, but each needs one of its own. Make a new generator at each call, or give for_generator its "
                "class"
            )
        self._holders[identity] = generator, holder
        self._identities[holder] = identity

    def release(self, holder: str) -> None:
        """Release the generator of a split that has ended, if a supplier made it."""
        identity = self._identities.pop(holder, None)
        if identity is not None:
            del self._holders[identity]


WatermarkGeneratorSupplier = Callable[[], WatermarkGenerator[Any]]
"""Returns a new generator at each call."""


def supplied_generator(
    supplier: WatermarkGeneratorSupplier, split: str | None = None, held: HeldGenerators | None = None
) -> CheckedWatermarkGenerator:
    """Return a new generator of a user's supplier, wrapped in a CheckedWatermarkGenerator.

    Raises
    ------
    ConfigurationError
        If the supplier returns something else, or a generator that is `held` already.
    UserCodeError
        If the supplier raises; errors of flinkcore are passed on unchanged.
    """
    where = "" if split is None else f" for split {split!r}"
    try:
        generator = supplier()
    except FlinkcoreError:
        raise
    except Exception as failure:
        told = f"{supplier_name(supplier)} made no watermark generator{where}: {in_words(failure)}"
        if isinstance(failure, TypeError) and not _takes_no_arguments(supplier):
            told += "; what for_generator takes is called without arguments"
        raise UserCodeError(told) from failure
    if not isinstance(generator, WatermarkGenerator):
        raise ConfigurationError(
            f"{supplier_name(supplier)} made {generator!r}{where}: for_generator takes what makes a "
            "WatermarkGenerator"
        )
    if held is not None:
        held.hold(generator, holder_name(split), supplier_name(supplier))
    return CheckedWatermarkGenerator(generator, split)


def holder_name(split: str | None) -> str:
    """Return the name of a generator's holder in messages: a split, or without one the main output."""
    return "the main output" if split is None else f"split {split!r}"


def _takes_no_arguments(supplier: WatermarkGeneratorSupplier) -> bool:
    try:
        signature(supplier).bind()
    except TypeError:
        return False
    except ValueError:  # a builtin, which does not show its signature
        pass
    return True


def supplier_name(supplier: WatermarkGeneratorSupplier) -> str:
    """Return the name of a supplier in messages: that of a class or function, otherwise its text."""
    return getattr(supplier, "__qualname__", None) or str(supplier)


class CheckedWatermarkGenerator(WatermarkGenerator[Any]):
    """Calls a user's generator; any failure is a UserCodeError that names the split and the event.

    Parameters
    ----------
    generator : WatermarkGenerator
    split : str or None
        Named in error messages.

    Notes
    -----
    Downstream code runs within the generator's call of its output. An error from there is not the generator's, and is
    passed on unchanged, as are errors of flinkcore.
    """

    def __init__(self, generator: WatermarkGenerator[Any], split: str | None = None) -> None:
        self.changes_at_events_only = generator.changes_at_events_only
        self._generator = generator
        self._where = "" if split is None else f" of split {split!r}"
        self._output: _CheckedOutput | None = None

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        checked = self._checked(output)
        try:
            self._generator.on_event(event, event_timestamp, checked)
        except Exception as failure:
            if failure is checked.failure:
                raise
            raise self._error(
                f"on_event{self._where} failed at the event with timestamp {dated(event_timestamp)}", failure
            ) from failure

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        checked = self._checked(output)
        try:
            self._generator.on_periodic_emit(checked)
        except Exception as failure:
            if failure is checked.failure:
                raise
            raise self._error(f"on_periodic_emit{self._where} failed", failure) from failure

    def require_snapshots(self) -> None:
        """Raise a ConfigurationError unless the generator's class has `snapshot_state` and `restore_state`."""
        own: Any = type(self._generator)
        for method in ("snapshot_state", "restore_state"):
            if getattr(own, method) is getattr(WatermarkGenerator, method):
                raise ConfigurationError(
                    f"a job with a checkpoint needs what its watermark generators hold, but {own.__qualname__} has no "
                    f"{method} of its own. Define snapshot_state(self), which returns what a generator holds (None if "
                    "that is nothing), and restore_state(self, state), which takes it back"
                )

    def snapshot_state(self) -> Any:
        return self._called("snapshot_state")

    def restore_state(self, state: Any) -> None:
        self._called("restore_state", state)

    def _called(self, method: str, *arguments: Any) -> Any:
        try:
            return getattr(self._generator, method)(*arguments)
        except FlinkcoreError:
            raise
        except Exception as failure:
            raise self._error(f"{method}{self._where} failed", failure) from failure

    def _checked(self, output: WatermarkOutput) -> _CheckedOutput:
        if self._output is None or self._output.output is not output:
            self._output = _CheckedOutput(output, f"{type(self._generator).__name__}{self._where}")
        return self._output

    def _error(self, what: str, failure: Exception) -> UserCodeError:
        return UserCodeError(f"{type(self._generator).__name__}.{what}: {in_words(failure)}")


class _CheckedOutput:
    """Accepts watermarks only, and remembers the last error of the output that it wraps."""

    def __init__(self, output: WatermarkOutput, name: str) -> None:
        self.output = output
        self.failure: Exception | None = None
        self._name = name

    def emit_watermark(self, watermark: Watermark) -> None:
        try:
            self.output.emit_watermark(self._checked(watermark))
        except Exception as failure:
            self.failure = failure
            raise

    def mark_idle(self) -> None:
        self._mark(self.output.mark_idle)

    def mark_active(self) -> None:
        self._mark(self.output.mark_active)

    def _mark(self, mark: Callable[[], None]) -> None:
        try:
            mark()
        except Exception as failure:
            self.failure = failure
            raise

    def _checked(self, watermark: object) -> Watermark:
        if isinstance(watermark, Watermark):
            timestamp = as_timestamp(watermark.timestamp)
            if timestamp is not None:
                return watermark if type(watermark.timestamp) is int else Watermark(timestamp)
        raise UserCodeError(
            f"{self._name} emitted {watermark!r}: a watermark is a Watermark of an int of 64 bits, in "
            "milliseconds since the epoch"
        )
