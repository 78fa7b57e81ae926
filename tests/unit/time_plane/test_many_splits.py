"""Many splits, of which few have an event at a tick: the watermark is the least of all of them."""

import numpy as np
import pytest
from models.timed_log import Log, steps
from models.watermarks import Event

from flinkcore.time_plane.generator_spec import GeneratorSpec
from flinkcore.time_plane.record_blocks import DEFAULT_LIMITS

INTERVAL_MS = 10


@pytest.mark.parametrize("n_splits", [64, 65, 4096, 4200])
def test_the_watermark_is_the_least_of_many_splits(n_splits: int) -> None:
    random = np.random.default_rng(n_splits)
    split = np.tile(random.permutation(n_splits), 2)
    arrival = np.arange(len(split)) * 3 + 1
    timestamp = arrival - random.integers(0, 100, len(split))
    rows = [Event(*row) for row in zip(split.tolist(), arrival.tolist(), timestamp.tolist(), strict=True)]
    plane = Log(rows).time_plane(GeneratorSpec(5, None), INTERVAL_MS, None, DEFAULT_LIMITS)

    latest = np.full(n_splits, -(2**62))
    ticks = -(-arrival // INTERVAL_MS) * INTERVAL_MS
    expected: list[tuple[int, int]] = []
    for tick in np.unique(ticks).tolist():
        of_tick = ticks == tick
        np.maximum.at(latest, split[of_tick], timestamp[of_tick])
        watermark = int(latest.min()) - 5 - 1
        if watermark > -(2**61) and (not expected or watermark > expected[-1][1]):
            expected.append((tick, watermark))
    found = list(dict(steps(plane)).items())  # the last one at each tick
    assert len(expected) > n_splits // 10
    assert found[: len(expected) - 1] == expected[:-1]  # the end of the log may come before its last tick
    assert plane.splits.final_watermark_ms.tolist() == (latest - 5 - 1).tolist()
