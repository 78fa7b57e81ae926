"""DenseIds: numbers for objects, given back when nothing holds them."""

import numpy as np

from flinkcore.operators.keys.dense_ids import DenseIds


def test_an_object_keeps_its_id_while_it_is_held() -> None:
    held: list[int] = []
    ids = DenseIds(first_sweep=2)
    ids.add_holder(lambda: held)
    held.append(ids.id_of("kept"))
    for i in range(100):
        ids.id_of(i)
        ids._check()
    assert ids.id_of("kept") == held[0]
    assert ids.objects[held[0]] == "kept"


def test_what_is_not_held_is_forgotten_and_its_id_used_again() -> None:
    ids = DenseIds(first_sweep=10)
    assert max(ids.id_of(i) for i in range(1000)) < 20
    assert len(ids.ids) <= 20
    ids._check()


def test_memory_follows_what_is_held_and_sweeps_become_rare() -> None:
    sweeps = 0
    held: list[int] = []

    def holder() -> list[int]:
        nonlocal sweeps
        sweeps += 1
        return held

    ids = DenseIds(first_sweep=10)
    ids.add_holder(holder)
    for i in range(10_000):
        held.append(ids.id_of(i))
    assert sorted(held) == list(range(10_000))
    assert sweeps <= 11


def test_nothing_is_forgotten_among_objects_that_come_together() -> None:
    ids = DenseIds(first_sweep=2)
    together = ids.ids_of(range(50))
    assert together.tolist() == list(range(50))
    assert set(ids.ids_of(["new", 7]).tolist()) < set(range(50))
    assert len(ids.ids) == 2  # by then nothing held the others
    ids._check()


def test_holders_may_name_ids_several_times_and_none_at_all() -> None:
    ids = DenseIds(first_sweep=1)
    first = ids.id_of("a")
    ids.add_holder(lambda: np.array([first, first, -1]))
    ids.add_holder(list)
    for i in range(5):
        assert ids.id_of(i) != first
    assert ids.ids["a"] == first
