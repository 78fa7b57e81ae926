"""Savepoints that are damaged or forged in any way are refused or read: no crash, no hang, no foreign error."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fuzz.budget import Fuzz
from fuzz.damaged_files import OPERATIONS, Damage
from fuzz.damaged_savepoints import FOLDERS, SETTINGS, request
from fuzz.test_damaged_files import LIES, PLACES
from fuzz.trials import Trials
from hypothesis import strategies as st

DAMAGES = st.builds(
    Damage,
    operation=st.sampled_from(list(OPERATIONS)),
    place=PLACES,
    length=st.one_of(st.integers(1, 16), st.sampled_from([64, 100, 512])),
    value=LIES,
)


@pytest.fixture(scope="module")
def trials() -> Iterator[Trials]:
    with Trials("fuzz.damaged_savepoints") as program:
        yield program


def test_a_damaged_savepoint_is_refused_or_read(fuzz: Fuzz, trials: Trials) -> None:
    def check(name: str, file: int, damages: list[Damage], settings: int) -> None:
        answer = trials.run(request(name, file, damages, settings))
        fuzz.count(answer["outcome"])
        assert answer["outcome"] in ("refused", "the same rows", "other rows"), answer["detail"]

    fuzz.run(
        check,
        examples=250,
        name=st.one_of(
            st.sampled_from(list(FOLDERS)), st.sampled_from([each for each in FOLDERS if "sql" in each])
        ),
        file=st.integers(0, 9),
        damages=st.lists(DAMAGES, min_size=1, max_size=3),
        settings=st.integers(0, len(SETTINGS) - 1),
    )
