"""Ids of operators: hashes of the uids that programs give them."""

from __future__ import annotations

from typing import Final

_MASK: Final = (1 << 64) - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


def operator_id(uid: str) -> str:
    """Return the id of an operator with a uid, as 32 hexadecimal digits.

    Notes
    -----
    Flink's ``StreamGraphHasherV2.generateUserSpecifiedHash``: MurmurHash3 with 128 bits and seed 0.
    """
    data = uid.encode()
    h1 = h2 = 0
    whole = len(data) // 16 * 16
    for begin in range(0, whole, 16):
        h1 ^= _first(_word(data, begin))
        h1 = ((_rotated(h1, 27) + h2) * 5 + 0x52DCE729) & _MASK
        h2 ^= _second(_word(data, begin + 8))
        h2 = ((_rotated(h2, 31) + h1) * 5 + 0x38495AB5) & _MASK
    h1 ^= _first(_word(data, whole)) ^ len(data)
    h2 ^= _second(_word(data, whole + 8)) ^ len(data)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    h1, h2 = _mixed(h1), _mixed(h2)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    return (h1.to_bytes(8, "little") + h2.to_bytes(8, "little")).hex()


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> 64 - bits) & _MASK


def _first(word: int) -> int:
    return _rotated(word * _C1 & _MASK, 31) * _C2 & _MASK


def _second(word: int) -> int:
    return _rotated(word * _C2 & _MASK, 33) * _C1 & _MASK


def _mixed(word: int) -> int:
    word = (word ^ word >> 33) * 0xFF51AFD7ED558CCD & _MASK
    word = (word ^ word >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return word ^ word >> 33
