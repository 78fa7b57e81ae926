"""Times at which the state of keys expires."""

import numpy as np
import pytest

from flinkcore._native.key_expiry import KeyExpiry
from flinkcore.errors import ConfigurationError, SchemaError

MOST = np.iinfo(np.int64).max


def expired(expiry: KeyExpiry, rows: list[tuple[int, int]]) -> list[int]:
    keys, times = zip(*rows, strict=True)
    return list(expiry.write(np.array(keys, np.uint32), np.array(times, np.int64)))


def test_a_key_expires_as_soon_as_its_time_to_live_has_passed_since_its_last_row() -> None:
    assert expired(KeyExpiry(10), [(0, 5), (1, 6), (0, 14), (0, 24), (1, 17), (0, 33)]) == [0, 0, 0, 1, 1, 0]


def test_a_timer_clears_a_key_up_to_half_a_time_to_live_later() -> None:
    """The row at 9 comes before 10 ms are left of the 15; that at 10 sets the timer again, to 25."""
    assert expired(KeyExpiry(10, by_timer=True), [(0, 0), (0, 5), (0, 15)]) == [0, 0, 0]
    assert expired(KeyExpiry(10, by_timer=True), [(0, 0), (0, 5), (0, 16)]) == [0, 0, 1]
    assert expired(KeyExpiry(10, by_timer=True), [(0, 0), (0, 6), (0, 21)]) == [0, 0, 0]
    assert expired(KeyExpiry(10, by_timer=True), [(0, 0), (0, 6), (0, 22)]) == [0, 0, 1]


def test_expired_keys_are_forgotten_and_others_restored() -> None:
    expiry = KeyExpiry(10)
    expired(expiry, [(0, -30), (2, -25)])
    assert list(expiry.expire(-21)) == []
    assert list(expiry.expire(-20)) == [0]
    state = expiry.snapshot()
    assert {name: list(column) for name, column in state.items()} == {"key": [2], "due": [-15]}
    restored = KeyExpiry(10)
    restored.restore(np.array([7]), state["due"])
    assert expired(restored, [(7, -16), (7, -6)]) == [0, 1]
    with pytest.raises(SchemaError, match="row 0 of the state has a key that is there twice"):
        restored.restore(np.array([7]), state["due"])


def test_a_time_to_live_may_last_until_the_end_of_all_time() -> None:
    assert expired(KeyExpiry(1 << 61), [(0, MOST - 1), (0, MOST - 1)]) == [0, 0]


@pytest.mark.parametrize("ttl_ms", [0, -1, (1 << 61) + 1])
def test_a_time_to_live_is_positive(ttl_ms: int) -> None:
    with pytest.raises(ConfigurationError, match=f"a time to live of {ttl_ms} ms: it must be from 1 to"):
        KeyExpiry(ttl_ms)
