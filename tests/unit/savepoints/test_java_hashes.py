"""Key groups follow from the hash codes that Java has for keys of a type."""

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from equipment.golden_savepoints import text

from flinkcore import savepoints
from flinkcore.common import Types
from flinkcore.errors import ConfigurationError
from flinkcore.savepoints.java_types import serializer_of
from flinkcore.savepoints.keyed_state import KeyedState
from flinkcore.savepoints.serializers.serializer import StateSerializer
from flinkcore.savepoints.writing.java_hashes import java_hash_codes, key_groups
from flinkcore.savepoints.writing.java_values import arrow_type

CASES = Path(__file__).parents[2] / "golden" / "savepoints" / "cases"
KEYS = sorted(path for path in CASES.iterdir() if path.name.startswith("keys_") and "person" not in path.name)


def plain(value: object) -> object:
    """Return an exact value as Arrow's usual types have it; a text with half of a surrogate pair is an error."""
    if isinstance(value, bytes):
        return text(value).encode().decode()
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return value


@pytest.mark.parametrize("case", KEYS, ids=[path.name for path in KEYS])
def test_keys_are_in_the_key_groups_in_which_flink_has_them(case: Path) -> None:
    operator = savepoints.open(case / "savepoint", exact=True).operator("keyed")
    state = operator.state("count")
    assert isinstance(state, KeyedState)
    key, found = state.keyed_types.key, 0
    for row in state.to_arrow().to_pylist():
        try:
            keys = pa.array([plain(row["key"])], arrow_type(key))
        except (UnicodeError, pa.ArrowException, TypeError, ValueError):
            continue  # Arrow's usual type has no place for it
        assert key_groups(keys, key, operator.max_parallelism).tolist() == [row["key_group"]], row["key"]
        found += 1
    assert found or "local_date" in case.name or "instant" in case.name


def code_of(value: object, serializer: StateSerializer) -> int:
    (code,) = java_hash_codes(pa.array([value], arrow_type(serializer)), serializer)
    return int(code)


def test_big_numbers_hash_as_in_java() -> None:
    # Printed by Java: new BigInteger("-123456789012345678901234567890").hashCode() and the like.
    assert code_of("0", serializer_of(Types.BIG_INT())) == 0
    assert code_of("4294967296", serializer_of(Types.BIG_INT())) == 31
    assert code_of("-4294967296", serializer_of(Types.BIG_INT())) == -31
    assert code_of("1.50", serializer_of(Types.BIG_DEC())) == 31 * 150 + 2
    assert code_of(str(Decimal("-1.5")), serializer_of(Types.BIG_DEC())) == -31 * 15 + 1


def test_a_local_date_time_hashes_its_date_and_its_time() -> None:
    # LocalDate.of(1970, 1, 1).hashCode() ^ LocalTime.MIDNIGHT.hashCode()
    assert code_of(0, savepoints.LOCAL_DATE_TIME) == (1970 & 0xFFFFF800) ^ ((1970 << 11) + (1 << 6) + 1)


def test_fields_of_a_tuple_count_in_their_order() -> None:
    pair = serializer_of(Types.TUPLE([Types.INT(), Types.LONG()]))
    assert code_of({"f0": 3, "f1": 5}, pair) == 31 * 3 + 5
    assert code_of({"f0": 5, "f1": 3}, pair) == 31 * 5 + 3


def test_an_object_hashes_the_fields_that_are_declared() -> None:
    fields = {"name": Types.STRING(), "id": Types.INT()}
    order = savepoints.pojo("com.acme.Order", fields, hash_fields=["id", "name"])
    assert code_of({"id": 7, "name": "a"}, order) == 31 * (31 * 1 + 7) + 97
    record = savepoints.pojo("com.acme.Order", fields, hash_fields=["id", "name"], hash_start=0)
    assert code_of({"id": 7, "name": "a"}, record) == 31 * 7 + 97


def test_an_object_whose_hash_code_is_not_known_is_refused() -> None:
    order = savepoints.pojo("com.acme.Order", {"id": Types.INT()})
    with pytest.raises(ConfigurationError, match="hash_fields"):
        code_of({"id": 7}, order)
    with pytest.raises(ConfigurationError, match="has no field 'x'"):
        savepoints.pojo("com.acme.Order", {"id": Types.INT()}, hash_fields=["x"])
