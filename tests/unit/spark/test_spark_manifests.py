"""Manifests: rows that are lost or come twice, and senders that do, are errors."""

import json

import pytest

pytest.importorskip("pyspark")

from flinkcore.errors import InternalError
from flinkcore.spark.exchange.manifests import ReceivedManifests, Senders, packed_manifest


def senders(*numbers: int) -> Senders:
    found = Senders()
    for number in numbers:
        found.add(number)
    return found


def received(expected: int, *manifests: tuple[Senders, int]) -> ReceivedManifests:
    found = ReceivedManifests(expected)
    for each, rows in manifests:
        assert found.add(packed_manifest(each, rows, {})) == rows
    return found


def test_consecutive_senders_are_a_range() -> None:
    found = senders(4, 5, 6, 9, 10)
    assert found.ranges == [[4, 7], [9, 11]]
    assert found.total == 5


def test_all_senders_in_any_order_are_complete() -> None:
    received(6, (senders(4, 5), 7), (senders(0, 1, 2), 0), (senders(9), 3)).check(0, 10)


@pytest.mark.parametrize(
    ("manifests", "taken", "message"),
    [
        # Rows of a block are lost, or come twice.
        ([(senders(0, 1), 7), (senders(2), 3)], 9, "partition 5 got 9 of 10 events that 3 of 3 senders sent"),
        ([(senders(0, 1), 7), (senders(2), 3)], 17, "got 17 of 10 events"),
        # A manifest is lost, with all rows of its task or without.
        ([(senders(0, 1), 7)], 7, "got 7 of 7 events that 2 of 3 senders sent"),
        ([(senders(0, 1), 7)], 10, "got 10 of 7 events that 2 of 3 senders sent"),
        # A task comes twice, and one does not come: as many senders as there should be.
        ([(senders(0), 7), (senders(0), 7), (senders(1), 0)], 14, "3 of 3 senders sent, some of them twice"),
        ([(senders(0, 1), 7), (senders(1), 0)], 7, "3 of 3 senders sent, some of them twice"),
        # A task that read more chunks than there are.
        ([(senders(0, 1), 7), (senders(2, 3), 0)], 7, "4 of 3 senders"),
    ],
)
def test_what_is_lost_or_comes_twice_is_an_error(
    manifests: list[tuple[Senders, int]], taken: int, message: str
) -> None:
    with pytest.raises(InternalError, match=message):
        received(3, *manifests).check(5, taken)


def test_reports_come_with_the_manifest() -> None:
    found = ReceivedManifests(1)
    found.add(packed_manifest(senders(3), 2, {"read": {"chunks": 1}}))
    assert found.reported == [{"senders": [[3, 4]], "rows": 2, "read": {"chunks": 1}}]
    assert json.loads(packed_manifest(senders(3), 2, {})) == {"senders": [[3, 4]], "rows": 2}
