"""The warning that a generator will be called at very many ticks."""

from __future__ import annotations

import warnings

from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.replay.time_plane.split_operator import own_generator
from flinkcore.replay.time_plane.tick_clock import TickClock

MANY_CALLS = 50_000_000
CALLS_PER_SECOND = 5_000_000


def warn_of_tick_calls(strategy: WatermarkStrategy, clock: TickClock, n_splits: int) -> None:
    """Warn if a generator that has not declared `changes_at_events_only` makes the pass take long.

    Parameters
    ----------
    strategy : WatermarkStrategy
        Has a generator of its own.
    clock : TickClock
    n_splits : int

    Warns
    -----
    UserWarning
        From `MANY_CALLS` calls on: tells how many, how long they take at least, and what to do.
    """
    if clock.interval_ms == 0:
        return
    ticks = (clock.end_of_ticks_ms - clock.opened_ms) // clock.interval_ms - 1
    calls = ticks * n_splits
    if calls < MANY_CALLS:
        return
    if own_generator(strategy, lambda: 0).changes_at_events_only:
        return
    seconds = calls / CALLS_PER_SECOND
    splits = "1 split" if n_splits == 1 else f"{n_splits:,} splits"
    warnings.warn(
        f"{strategy}: on_periodic_emit is called at every tick of the log, {ticks:,} ticks of {clock.interval_ms:,} ms "
        f"in each of {splits}, which takes {seconds:,.0f} s or more. If a call without an event since the one before "
        "changes nothing, say so: changes_at_events_only = True in the class of the generator. A longer "
        "auto-watermark interval helps, too",
        UserWarning,
        stacklevel=2,
    )
