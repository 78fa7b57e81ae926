"""Runs of emissions, merged to one order in stretches of bounded size."""

import os
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from models.timed_log import Log
from models.watermarks import Event

from flinkcore.common import Watermark, WatermarkGenerator, WatermarkStrategy
from flinkcore.errors import SourceError
from flinkcore.time_plane.element_pass import ElementPass, PlacedTimes
from flinkcore.time_plane.emissions import EmissionRuns, Emissions
from flinkcore.time_plane.generator_spec import GeneratorSpec
from flinkcore.time_plane.record_store import RecordStore


def emissions(seed: int, n: int, clocks: int) -> Emissions:
    """In order, of random places, each with a timestamp of its own."""
    random = np.random.default_rng(seed)
    columns = (
        random.integers(0, clocks, n),
        random.integers(0, 3, n) << 32 | random.integers(0, 4, n),
        random.integers(0, 5, n) << 2 | random.integers(0, 3, n),
        np.arange(n),
    )
    return Emissions(np.stack(columns, axis=1)).in_order()


@pytest.mark.parametrize("memory_bytes", [0, 5_000, 1 << 30])
@pytest.mark.parametrize("buffer_rows", [0, 30, 1 << 20])
@pytest.mark.parametrize("clocks", [1, 50, 10_000])
def test_runs_come_back_in_one_order(memory_bytes: int, buffer_rows: int, clocks: int) -> None:
    parts = [emissions(seed, n, clocks) for seed, n in enumerate([300, 1, 0, 200, 77])]
    expected = Emissions(np.concatenate([part.rows for part in parts])).in_order()
    with closing(EmissionRuns(memory_bytes, buffer_rows)) as runs:
        for number in (3, 0, 4, 2, 1):
            runs.add(number, parts[number])
        merged = [some.rows for some in runs.in_order()]
    assert np.concatenate(merged).tolist() == expected.rows.tolist()


@pytest.mark.parametrize("clocks", [1, 10_000])
def test_no_more_is_held_than_the_buffer_takes(clocks: int) -> None:
    # Every place occurs once, also where all have one clock.
    n = 8_000
    columns = (np.arange(n) * clocks // n, np.arange(n) % 2, np.arange(n) << 2, np.arange(n))
    rows = Emissions(np.stack(columns, axis=1)).in_order().rows
    with closing(EmissionRuns(0, buffer_rows=400)) as runs:
        for number in range(4):
            runs.add(number, Emissions(rows[number::4]))
        merged = [some.rows for some in runs.in_order()]
    assert max(map(len, merged)) <= 2 * 400
    assert np.concatenate(merged).tolist() == rows.tolist()


def test_runs_that_do_not_overlap_come_one_after_the_other() -> None:
    rows = emissions(0, 1000, 10_000).rows
    with closing(EmissionRuns(0, buffer_rows=100)) as runs:
        for number, start in enumerate(range(0, 1000, 100)):
            runs.add(number, Emissions(rows[start : start + 100]))
        merged = [some.rows for some in runs.in_order()]
    assert max(map(len, merged)) <= 30
    assert np.concatenate(merged).tolist() == rows.tolist()


def test_a_file_that_was_cut_short_is_told() -> None:
    with closing(RecordStore(0)) as store:
        number = store.add(np.arange(10))
        assert store.values(number, 2, 5).tolist() == [2, 3, 4]
        assert store._file is not None
        os.ftruncate(store._file.fileno(), 40)
        with pytest.raises(SourceError, match="it has been cut short"):
            store.values(number, 2, 10)


def test_an_element_pass_gives_runs_of_bounded_size_on_the_way() -> None:
    class EveryEvent(WatermarkGenerator[Any]):
        def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
            output.emit_watermark(Watermark(event_timestamp))

        def on_periodic_emit(self, output: Any) -> None:
            pass

    log = Log([Event(at % 3, at, at) for at in range(300)])
    plane = log.time_plane(GeneratorSpec(None), 10)
    element_pass = ElementPass(WatermarkStrategy.for_generator(EveryEvent), 10, plane, range(3), run_rows=64)
    at = np.arange(300)
    given = []
    for start in range(0, 300, 100):
        some = at[start : start + 100]
        given.append(element_pass.add(PlacedTimes((some % 3).astype(np.int32), some // 3, some, some)))
        assert sum(len(run) for runs in given for run in runs) > start + 100 - 64  # the rest is held
    given.append(list(element_pass.finish()))
    assert all(len(run) <= 64 for runs in given for run in runs)
    assert sum(len(run) for runs in given for run in runs) == 300
