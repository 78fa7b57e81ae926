"""Files that are damaged or forged in any way are refused or read: no crash, no hang, no foreign error."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fuzz.budget import Fuzz
from fuzz.damaged_files import KINDS, OPERATIONS, Damage, bytes_with_checksums, damaged, request, whole
from fuzz.trials import Trials
from hypothesis import strategies as st

PLACES = st.one_of(st.integers(0, 2047), st.integers(-2048, -1), st.integers(0, 1 << 20))
"""Often near the start or the end, where most formats have what describes the rest."""

LIES = st.one_of(
    st.sampled_from(
        [0, 1, -1, 127, 255, 1 << 15, 1 << 24, (1 << 31) - 1, -(1 << 31), 1 << 40, 1 << 62, -(1 << 63)]
    ),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.integers(0, 1 << 16),
)

DAMAGES = st.builds(
    Damage,
    operation=st.sampled_from(list(OPERATIONS)),
    place=PLACES,
    length=st.one_of(st.integers(1, 16), st.sampled_from([64, 100, 512, 1000])),
    value=LIES,
)


OF_ROWS = {"csv", "json", "json-grown", "avro", "avro-deflate", "avro-logical"}
"""Files that have no end of their own: cut between rows, or blocks of rows, they are whole files."""


@pytest.fixture(scope="module")
def trials() -> Iterator[Trials]:
    with Trials("fuzz.damaged_files") as program:
        yield program


@pytest.mark.fuzz_share(1)
def test_a_damaged_file_is_refused_or_read(fuzz: Fuzz, trials: Trials) -> None:
    def check(kind: str, damages: list[Damage]) -> None:
        data = whole(kind)
        if damaged(data, damages) == data:
            fuzz.count("undamaged")
            return
        answer = trials.run(request(kind, damages))
        fuzz.count(f"{kind} {answer['outcome']}")
        assert answer["outcome"] in ("refused", "the same rows", "other rows"), answer["detail"]
        if answer["outcome"] != "other rows":
            return
        operations = {damage.operation for damage in damages}
        if operations <= {"flip"}:
            places = {damage.place % len(data) for damage in damages}
            assert not places <= bytes_with_checksums(kind), "checksums of pages do not hold"
        if operations == {"truncate"}:
            assert kind in {"arrow-stream", "arrow-stream-zstd"} | OF_ROWS, "a part of the file for all"
            assert answer["warned"] or (answer["first_rows"] and kind in OF_ROWS), answer

    fuzz.run(
        check,
        examples=250,
        kind=st.sampled_from(list(KINDS)),
        damages=st.lists(DAMAGES, min_size=1, max_size=3),
    )


@pytest.mark.fuzz_share(0.2)
def test_a_flipped_bit_under_a_checksum_is_refused(fuzz: Fuzz, trials: Trials) -> None:
    def check(kind: str, place: int, bit: int) -> None:
        covered = sorted(bytes_with_checksums(kind))
        damage = Damage("flip", covered[place % len(covered)], 1, bit)
        answer = trials.run(request(kind, [damage]))
        fuzz.count(f"{kind} {answer['outcome']}")
        assert answer["outcome"] == "refused", answer
        assert "CRC checksum verification failed" in answer["detail"]

    fuzz.run(
        check,
        examples=40,
        kind=st.sampled_from([kind for kind in KINDS if bytes_with_checksums(kind)]),
        place=st.integers(0, 1 << 20),
        bit=st.integers(0, 7),
    )


@pytest.mark.fuzz_share(0.2)
def test_a_file_that_is_cut_anywhere_is_refused_or_warned_of_or_has_whole_rows(
    fuzz: Fuzz, trials: Trials
) -> None:
    def check(kind: str, place: int) -> None:
        answer = trials.run(request(kind, [Damage("truncate", place, 1, 0)]))
        fuzz.count(f"{kind} {answer['outcome']}")
        if answer["outcome"] == "refused":
            return
        if answer["outcome"] == "the same rows":
            assert place % len(whole(kind)) >= len(whole(kind)) - 8
            return
        assert answer["outcome"] == "other rows", answer["detail"]
        assert kind in {"arrow-stream", "arrow-stream-zstd"} | OF_ROWS, "a part of the file for all"
        assert answer["warned"] or (answer["first_rows"] and kind in OF_ROWS), answer

    fuzz.run(check, examples=80, kind=st.sampled_from(list(KINDS)), place=st.integers(-(1 << 20), 1 << 20))
