"""A plain model of StatusWatermarkValve: every question is answered by looking at all channels."""

from dataclasses import dataclass

MIN_TIMESTAMP = -(2**63)


@dataclass
class Channel:
    watermark: int = MIN_TIMESTAMP
    active: bool = True
    aligned: bool = True


class ValveModel:
    def __init__(self, channels: int) -> None:
        self.channels = [Channel() for _ in range(channels)]
        self.last_output = MIN_TIMESTAMP
        self.active = True

    def _put_out(self, watermarks: list[int]) -> list[tuple[str, int | str]]:
        if not watermarks or watermarks[0] <= self.last_output:
            return []
        self.last_output = watermarks[0]
        return [("watermark", self.last_output)]

    def _put_out_minimum(self) -> list[tuple[str, int | str]]:
        return self._put_out(sorted(channel.watermark for channel in self.channels if channel.aligned))

    def input_watermark(self, at: int, timestamp_ms: int) -> list[tuple[str, int | str]]:
        channel = self.channels[at]
        if not channel.active or timestamp_ms <= channel.watermark:
            return []
        channel.watermark = timestamp_ms
        channel.aligned = channel.aligned or timestamp_ms >= self.last_output
        return self._put_out_minimum()

    def input_watermark_status(self, at: int, status: str) -> list[tuple[str, int | str]]:
        channel = self.channels[at]
        outputs: list[tuple[str, int | str]] = []
        if channel.active == (status == "active"):
            return outputs
        channel.active = status == "active"
        if channel.active:
            channel.aligned = channel.watermark >= self.last_output
            if not self.active:
                self.active = True
                outputs.append(("status", "active"))
            return outputs
        channel.aligned = False
        held_the_minimum = channel.watermark == self.last_output
        if any(other.active for other in self.channels):
            return self._put_out_minimum() if held_the_minimum else outputs
        if held_the_minimum:
            outputs += self._put_out([max(other.watermark for other in self.channels)])
        self.active = False
        return [*outputs, ("status", "idle")]
