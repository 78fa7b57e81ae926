"""A user's watermark generator, called such that an error says where it happened."""

from typing import Any

from flinkcore.common.constants import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.common.watermark import Watermark
from flinkcore.common.watermark_generator import WatermarkGenerator, WatermarkOutput
from flinkcore.errors import UserCodeError


class CheckedWatermarkGenerator(WatermarkGenerator[Any]):
    """Calls a user's generator, and says where it failed if it does.

    Parameters
    ----------
    generator : WatermarkGenerator
    split : str or None
        Named in error messages.

    Notes
    -----
    What a generator emits is received within its call. An error from there is not the generator's, and is
    passed on as it is.
    """

    def __init__(self, generator: WatermarkGenerator[Any], split: str | None = None) -> None:
        self._generator = generator
        self._where = "" if split is None else f" of split {split!r}"
        self._output: _CheckedOutput | None = None

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Pass the event on.

        Raises
        ------
        UserCodeError
            If the generator raises, or emits what is no watermark.
        """
        checked = self._checked(output)
        try:
            self._generator.on_event(event, event_timestamp, checked)
        except Exception as failure:
            if failure is checked.failure:
                raise
            raise self._error(
                f"on_event{self._where} failed at the event with timestamp {event_timestamp}", failure
            ) from failure

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Pass the call on.

        Raises
        ------
        UserCodeError
            If the generator raises, or emits what is no watermark.
        """
        checked = self._checked(output)
        try:
            self._generator.on_periodic_emit(checked)
        except Exception as failure:
            if failure is checked.failure:
                raise
            raise self._error(f"on_periodic_emit{self._where} failed", failure) from failure

    def _checked(self, output: WatermarkOutput) -> "_CheckedOutput":
        if self._output is None or self._output.output is not output:
            self._output = _CheckedOutput(output, f"{type(self._generator).__name__}{self._where}")
        return self._output

    def _error(self, what: str, failure: Exception) -> UserCodeError:
        return UserCodeError(f"{type(self._generator).__name__}.{what}: {type(failure).__name__}: {failure}")


class _CheckedOutput:
    """Takes watermarks only, and remembers the last error from beyond."""

    def __init__(self, output: WatermarkOutput, name: str) -> None:
        self.output = output
        self.failure: Exception | None = None
        self._name = name

    def emit_watermark(self, watermark: Watermark) -> None:
        try:
            self._check(watermark)
            self.output.emit_watermark(watermark)
        except Exception as failure:
            self.failure = failure
            raise

    def mark_idle(self) -> None:
        try:
            self.output.mark_idle()
        except Exception as failure:
            self.failure = failure
            raise

    def mark_active(self) -> None:
        try:
            self.output.mark_active()
        except Exception as failure:
            self.failure = failure
            raise

    def _check(self, watermark: Watermark) -> None:
        if (
            not isinstance(watermark, Watermark)
            or type(watermark.timestamp) is not int
            or not MIN_TIMESTAMP <= watermark.timestamp <= MAX_TIMESTAMP
        ):
            raise UserCodeError(
                f"{self._name} emitted {watermark!r}: a watermark is a Watermark of an int of 64 bits, in "
                "milliseconds since the epoch"
            )
