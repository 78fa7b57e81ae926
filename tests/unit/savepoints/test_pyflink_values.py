"""Pickles of a savepoint have plain values, unless the job says that it trusts them."""

from __future__ import annotations

import pickle
from fractions import Fraction
from typing import Any

import pytest

from flinkcore.errors import DataError
from flinkcore.savepoints.restoring.pyflink_values import PyFlinkStates


@pytest.mark.parametrize("value", [1, "a", b"x", 1.5, None, True, (1, [2, {"a": {3}}]), 2**70])
def test_plain_values_are_read(value: Any) -> None:
    assert PyFlinkStates({}, False).unpickled(pickle.dumps(value)) == value


def test_objects_of_classes_need_consent() -> None:
    data = pickle.dumps([Fraction(1, 3)])
    with pytest.raises(DataError, match=r"object of fractions\.Fraction.* allow_pickle=True"):
        PyFlinkStates({}, False).unpickled(data)
    assert PyFlinkStates({}, True).unpickled(data) == [Fraction(1, 3)]


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x80\x05.", b"cos\nsystem\n."])
def test_damaged_pickles_are_errors(data: bytes) -> None:
    with pytest.raises(DataError, match="a pickled value of"):
        PyFlinkStates({}, False).unpickled(data)
