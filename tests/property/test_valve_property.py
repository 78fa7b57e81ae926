"""StatusWatermarkValve does what the plain model does, one by one and in batches."""

import numpy as np
from equipment.example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from models.valve import ValveModel

from flinkcore._native.valve import ACTIVE_KIND, IDLE_KIND, WATERMARK_KIND, StatusWatermarkValve

TIMESTAMPS = st.integers(0, 12) | st.integers(-(2**63), 2**63 - 1)
KINDS = {WATERMARK_KIND: "watermark", IDLE_KIND: "idle", ACTIVE_KIND: "active"}
# Watermarks near each other, and statuses often enough that all channels turn idle.
INPUTS = st.tuples(st.integers(0, 9), st.sampled_from([0, 0, 0, 1, 1, 2]), TIMESTAMPS)


def put(
    valve: StatusWatermarkValve | ValveModel, channel: int, kind: int, timestamp: int
) -> list[tuple[str, int | str]]:
    if kind == WATERMARK_KIND:
        return list(valve.input_watermark(channel, timestamp))
    return list(valve.input_watermark_status(channel, "idle" if kind == IDLE_KIND else "active"))


class ValveMachine(RuleBasedStateMachine):
    @initialize(channels=st.integers(1, 9))
    def build(self, channels: int) -> None:
        self.channels = channels
        self.valve = StatusWatermarkValve(channels)
        self.model = ValveModel(channels)

    @rule(given_input=INPUTS)
    def one(self, given_input: tuple[int, int, int]) -> None:
        channel, kind, timestamp = given_input
        channel %= self.channels
        assert put(self.valve, channel, kind, timestamp) == put(self.model, channel, kind, timestamp)

    @rule(inputs=st.lists(INPUTS, max_size=30))
    def several(self, inputs: list[tuple[int, int, int]]) -> None:
        inputs = [(channel % self.channels, kind, timestamp) for channel, kind, timestamp in inputs]
        expected = []
        for at, given_input in enumerate(inputs):
            expected += [(at, *output) for output in put(self.model, *given_input)]
        columns = np.array(inputs, dtype=object).reshape(-1, 3).T
        rows, kinds, timestamps = self.valve.input_batch(
            columns[0].astype(np.int32), columns[1].astype(np.int8), columns[2].astype(np.int64)
        )
        outputs = [
            (row, "watermark", timestamp) if kind == WATERMARK_KIND else (row, "status", KINDS[kind])
            for row, kind, timestamp in zip(rows.tolist(), kinds.tolist(), timestamps.tolist(), strict=True)
        ]
        assert outputs == expected

    @invariant()
    def agree(self) -> None:
        if hasattr(self, "valve"):
            self.valve._check()
            assert self.valve.current_watermark == self.model.last_output
            assert self.valve.is_idle == (not self.model.active)


TestValve = ValveMachine.TestCase
TestValve.settings = settings(max_examples=examples(75), stateful_step_count=40, deadline=None)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), channels=st.integers(50, 400))
def test_many_channels_agree_with_the_model(seed: int, channels: int) -> None:
    random = np.random.default_rng(seed)
    n = 1_000
    timestamps = np.sort(random.integers(-500, 500, n)) + random.integers(-100, 100, n)
    channel = random.integers(0, channels, n).astype(np.int32)
    kind = random.choice(np.array([0, 1, 2], np.int8), n, p=[0.8, 0.12, 0.08])
    valve, model = StatusWatermarkValve(channels), ValveModel(channels)
    expected = [
        (at, value)
        for at in range(n)
        for name, value in put(model, int(channel[at]), int(kind[at]), int(timestamps[at]))
        if name == "watermark"
    ]
    rows, kinds, emitted = valve.input_batch(channel, kind, timestamps)
    valve._check()
    watermarks = kinds == WATERMARK_KIND
    assert list(zip(rows[watermarks].tolist(), emitted[watermarks].tolist(), strict=True)) == expected
