"""How much more time late events need is found by halves."""

from hypothesis import given
from hypothesis import strategies as st

from flinkcore.analysis.saving_bounds import least_savings


@given(st.dictionaries(st.integers(0, 20), st.tuples(st.integers(1, 1000), st.integers(0, 1000)), max_size=8))
def test_each_event_has_the_least_time_with_which_it_is_not_late(
    needs: dict[int, tuple[int, int]],
) -> None:
    needed = {number: least for number, (least, _) in needs.items()}
    most = {number: least + more for number, (least, more) in needs.items()}
    asked: list[int] = []

    def late(more_ms: int) -> set[int]:
        asked.append(more_ms)
        return {number for number, least in needed.items() if more_ms < least}

    assert least_savings(late, most) == needed
    assert len(asked) == len(set(asked))
