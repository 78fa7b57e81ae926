"""How much allowed lateness sessions need, compared with sessions under each lateness."""

from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore.analysis.saving_bounds import SessionsByLateness

LONGEST = 200


def in_time(events: list[tuple[int, int, int]], lateness_ms: int) -> list[bool]:
    """Which events are in time: with sessions kept as a list of bounds."""
    sessions: list[tuple[int, int]] = []
    taken = []
    for start, end, watermark in events:
        sessions = [each for each in sessions if each[1] - 1 + lateness_ms > watermark]
        touched = [each for each in sessions if each[0] <= end and start <= each[1]]
        bounds = [(start, end), *touched]
        merged = min(each[0] for each in bounds), max(each[1] for each in bounds)
        is_open = merged[1] - 1 + lateness_ms > watermark
        taken.append(is_open)
        if is_open:
            sessions = [*(each for each in sessions if each not in touched), merged]
    return taken


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(1, 7), st.sampled_from([0, 0, 0, 1, 2, 9, 25])), max_size=25
    ),
    st.sampled_from([0, 3]),
)
def test_each_event_has_the_least_lateness_with_which_a_session_takes_it_in(
    drawn: list[tuple[int, int, int]], lateness_ms: int
) -> None:
    watermark, events = -20, []
    for start, gap, step in drawn:
        watermark += step
        events.append((start, start + gap, watermark))
    sessions = SessionsByLateness(lateness_ms)
    needed = [sessions.take(*event) for event in events]
    for longer_ms in range(lateness_ms, LONGEST):
        assert in_time(events, longer_ms) == [least <= longer_ms for least in needed]
