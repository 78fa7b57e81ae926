"""Entries that no Flink writes are errors with the file and the position; values without a place in Arrow say so."""

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from equipment.written_savepoints import (
    BASE,
    LONG,
    RUNTIME,
    STRING,
    Entry,
    composite,
    i32,
    i64,
    list_of,
    map_of,
    simple,
    state,
    string,
    tuple_of,
    utf,
    write_savepoint,
)

from flinkcore import savepoints
from flinkcore.errors import SavepointError
from flinkcore.savepoints.keyed_state import KeyedState

KEY = b"\x05" + string("key") + b"\0"


def read(folder: Path, value: bytes, data: bytes, kind: str = "VALUE", **settings: object) -> list[object]:
    write_savepoint(folder, [state("s", kind, value)], {5: [(0, KEY, data)]})
    opened = savepoints.open(folder, settings=savepoints.ReadSettings(**settings))  # type: ignore[arg-type]
    found: list[object] = opened.operator("op").state("s").to_arrow()["value"].to_pylist()
    return found


@pytest.mark.parametrize(
    ("value", "data", "message"),
    [
        (LONG, b"\0" * 7, r"s is damaged: state 's', key key: 8 bytes are missing: 7 are left"),
        (LONG, b"\0" * 9, "1 bytes of a value are left over"),
        (STRING, b"\x09abc", "8 characters cannot be in 3 bytes"),
    ],
)
def test_damaged_values_of_some_keys_are_errors(
    value: bytes, data: bytes, message: str, tmp_path: Path
) -> None:
    write_savepoint(tmp_path / "s", [state("s", "VALUE", value)], {5: [(0, KEY, data)]})
    found = savepoints.open(tmp_path / "s").operator("op").state("s")
    assert isinstance(found, KeyedState)
    with pytest.raises(SavepointError, match=message):
        list(found.batches_of_keys(lambda keys: np.arange(len(keys))))
    assert [batch.num_rows for batch in found.batches_of_keys(lambda keys: np.arange(0))] == [0]


@pytest.mark.parametrize(
    ("value", "data", "kind", "message"),
    [
        (LONG, b"\0" * 7, "VALUE", "8 bytes are missing: 7 are left"),
        (LONG, b"\0" * 9, "VALUE", "1 bytes of a value are left over"),
        (STRING, b"\x09abc", "VALUE", "8 characters cannot be in 3 bytes"),
        (STRING, b"\xff\xff\xff\xff\xff\xff", "VALUE", "a number of a text is too long"),
        (STRING, b"\x02\xff\xff\x7f", "VALUE", "more than 16 bits"),
        (list_of(LONG), i64(1) + b";" + i64(2), "LIST", "not divided by a comma"),
        (list_of(list_of(LONG)), i32(-1), "LIST", "-1 elements cannot be in 0 bytes"),
        (list_of(list_of(LONG)), i32(2**31 - 1) + b"\0" * 40, "LIST", "2,147,483,647 elements cannot be in"),
        (simple("BigInt"), i32(900) + b"1", "VALUE", "a BigInteger has 896 bytes"),
        (simple("BigInt"), i32(5004) + b"1" * 5000, "VALUE", "5,000 bytes; numbers of up to 1,700 are read"),
        (simple("BigDec"), i32(2) + b"\0", "VALUE", "ends in the middle"),
        (simple("LocalDate"), i32(2026) + b"\x0d\x01", "VALUE", "no month 13"),
        (simple("LocalTime"), b"\x18\0\0" + i32(0), "VALUE", "no such time of day"),
        (simple("Instant"), i64(0) + i32(-5), "VALUE", "does not have -5 nanoseconds"),
        (
            utf(f"{BASE}EnumSerializer$EnumSerializerSnapshot") + i32(3) + utf("E") + i32(1) + utf("A"),
            i32(1),
            "VALUE",
            "does not have number 1",
        ),
    ],
)
def test_a_value_that_no_serializer_writes_is_damage(
    tmp_path: Path, value: bytes, data: bytes, kind: str, message: str
) -> None:
    with pytest.raises(SavepointError, match=message) as raised:
        read(tmp_path, value, data, kind)
    assert raised.value.file == str(tmp_path / "_metadata")
    content = (tmp_path / "_metadata").read_bytes()
    begin = content.rindex(i32(len(data)) + data) + 4
    assert raised.value.offset is not None
    assert begin <= raised.value.offset <= begin + len(data)
    assert "state 's', key group 5" in str(raised.value)


def forged(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        write_savepoint(folder, [state("s", "VALUE", LONG)], {5: [(0, KEY, i64(1))]})
        path = folder / "_metadata"
        data = path.read_bytes()
        at = data.rindex(b"\0\0" + i32(len(KEY)))
        # The bytes of the key group lie at the end of the metadata but for what follows the handle.
        end = data.index(struct.pack(">h", -1), at) + 2
        group = change(data[at:end])
        assert len(group) == end - at
        path.write_bytes(data[:at] + group + data[end:])

    return apply


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda group: group[:-2] + b"\0\0", "key group 5 does not end"),
        (lambda group: b"\0\x09" + group[2:], "there is no state with number 9"),
        (lambda group: group[:2] + i32(-3) + group[6:], "a key has -3 bytes"),
        (lambda group: group[:2] + i32(2**31 - 1) + group[6:], "key group 5 does not end"),
        (lambda group: group[:6] + b"\x84" + group[7:], "an entry of key group 4 is in key group 5"),
        (lambda group: group.replace(i32(8), i32(-8)), "a value has -8 bytes"),
        (lambda group: b"\xff\xff" + group[2:], "bytes follow the last entry"),
        (lambda group: group[:6] + b"\x05" + group[7:], "there is no state with number|does not end"),
    ],
)
def test_blocks_that_are_forged_are_damage(
    tmp_path: Path, change: Callable[[bytes], bytes], message: str
) -> None:
    forged(change)(tmp_path)
    with pytest.raises(SavepointError, match=message) as raised:
        savepoints.open(tmp_path).operator("op").state("s").to_arrow()
    assert raised.value.offset is not None


def test_lengths_after_keys_and_namespaces_are_checked(tmp_path: Path) -> None:
    def write(key: bytes) -> None:
        write_savepoint(tmp_path, [state("s", "VALUE", LONG, STRING)], {5: [(0, b"\x05" + key, i64(1))]})

    long = "x" * 300
    write(string(long) + (len(string(long))).to_bytes(2, "little") + string("ns") + b"\x03")
    found = savepoints.open(tmp_path).operator("op").state("s").to_arrow().to_pylist()
    assert found == [{"key_group": 5, "key": long, "namespace": "ns", "value": 1}]
    write(string("ab") + b"\x03" + string("ns") + b"\x04")
    with pytest.raises(SavepointError, match="has 3 bytes, and 4 are noted"):
        savepoints.open(tmp_path).operator("op").state("s").to_arrow()


@pytest.mark.parametrize(
    ("value", "data", "exact"),
    [
        (STRING, b"\x02\x80\xb0\x03", b"\xed\xa0\x80"),
        (simple("Char"), b"\xd8\x00", b"\xed\xa0\x80"),
        (simple("LocalDate"), i32(999_999_999) + b"\x0c\x1f", "+999999999-12-31"),
        (
            simple("LocalDateTime"),
            i32(1600) + b"\x01\x02\x03\x04\x05" + i32(600),
            "1600-01-02T03:04:05.0000006",
        ),
        (simple("Instant"), i64(-62_167_219_200) + i32(0), "0000-01-01T00:00:00Z"),
        (map_of(STRING, LONG), i32(1) + b"\0" + b"\0" + i64(1), [{"key": None, "value": 1}]),
    ],
)
def test_a_value_without_a_place_in_arrow_is_read_exactly(
    tmp_path: Path, value: bytes, data: bytes, exact: object
) -> None:
    with pytest.raises(SavepointError, match=r"Read it with exact=True \(--exact\)"):
        read(tmp_path, value, data)
    assert read(tmp_path, value, data, exact=True) == [exact]


def test_a_few_bytes_do_not_become_any_number_of_values(tmp_path: Path) -> None:
    wide = composite(
        f"{RUNTIME}RowSerializer$RowSerializerSnapshot", *[tuple_of(*[LONG] * 25)] * 6, outer=b"\1", version=4
    )
    data = i32(100) + b"\x3f" * 100
    assert len(read(tmp_path, list_of(wide), b",".join([b"\x3f"] * 3), "LIST")[0]) == 3  # type: ignore[arg-type]
    with pytest.raises(SavepointError, match="max_values_per_entry"):
        read(tmp_path, list_of(list_of(wide)), data, "LIST", max_values_per_entry=1000)


def test_serializers_are_not_nested_without_end(tmp_path: Path) -> None:
    value = LONG
    for _ in range(100):
        value = list_of(value)
    write_savepoint(tmp_path, [state("s", "VALUE", value)], {})
    with pytest.raises(SavepointError, match="nested more than 64 levels deep"):
        savepoints.open(tmp_path).operator("op").states.keys()


def test_an_entry_may_be_longer_than_many_blocks(tmp_path: Path) -> None:
    text = "x" * 100_000
    entries: list[Entry] = [(0, KEY, string("a")), (0, KEY, string(text)), (0, KEY, string("b"))]
    write_savepoint(tmp_path, [state("s", "VALUE", STRING)], {5: entries})
    settings = savepoints.ReadSettings(block_bytes=64)
    found = savepoints.open(tmp_path, settings=settings).operator("op").state("s").to_arrow()
    assert found["value"].to_pylist() == ["a", text, "b"]


@pytest.mark.parametrize("block_bytes", [16, 1 << 22])
def test_a_wrong_checksum_of_a_compressed_key_group_is_damage(tmp_path: Path, block_bytes: int) -> None:
    entries: list[Entry] = [(0, b"\x05" + i64(i) + b"\0", i64(i)) for i in range(50)]
    write_savepoint(tmp_path, [state("s", "VALUE", LONG)], {5: entries}, LONG, is_compressed=True, file="f")
    data = bytearray((tmp_path / "f").read_bytes())
    begin = data.index(b"sNaPpY") - 4
    settings = savepoints.ReadSettings(block_bytes=block_bytes)
    whole = savepoints.open(tmp_path, settings=settings).operator("op").state("s").to_arrow()
    unchanged, named = 0, set()
    for at in range(begin, len(data)):
        (tmp_path / "f").write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        try:
            found = savepoints.open(tmp_path, settings=settings).operator("op").state("s").to_arrow()
        except SavepointError as failure:
            named.add(failure.file)
            continue
        # A copy from another place may have the same bytes.
        assert found.equals(whole)
        unchanged += 1
    assert unchanged < (len(data) - begin) / 10
    assert named == {str(tmp_path / "f")}
