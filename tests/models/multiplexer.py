"""A plain model of the watermark multiplexer that looks at all outputs at each update."""

MIN_TIMESTAMP = -(2**63)
Output = tuple[str, int | str]


class Partial:
    def __init__(self) -> None:
        self.watermark = MIN_TIMESTAMP
        self.idle = False


class MultiplexerModel:
    """Handles hold on to the output that they were made for, be it unregistered."""

    def __init__(self) -> None:
        self.partials: dict[str, Partial] = {}
        self.watermark = MIN_TIMESTAMP
        self.idle = False

    def register(self, output_id: str) -> Partial:
        self.partials[output_id] = Partial()
        return self.partials[output_id]

    def unregister(self, output_id: str) -> bool:
        return self.partials.pop(output_id, None) is not None

    def emit_watermark(self, partial: Partial, timestamp: int, immediate: bool) -> list[Output]:
        partial.idle = False
        advanced = timestamp > partial.watermark
        partial.watermark = max(partial.watermark, timestamp)
        return self.update() if immediate and advanced and timestamp > self.watermark else []

    def mark(self, partial: Partial, idle: bool, immediate: bool) -> list[Output]:
        partial.idle = idle
        return self.update() if immediate else []

    def update(self) -> list[Output]:
        outputs: list[Output] = []
        if self.partials:
            active = [partial.watermark for partial in self.partials.values() if not partial.idle]
            combined = min(active) if active else max(p.watermark for p in self.partials.values())
            self.idle = not active
            if combined > self.watermark:
                self.watermark = combined
                outputs.append(("watermark", combined))
        return [*outputs, ("status", "idle")] if self.idle else outputs
