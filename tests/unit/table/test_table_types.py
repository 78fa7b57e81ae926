"""Types of the Table API, with which programs declare columns of files."""

import pytest

from flinkcore.common import Types
from flinkcore.errors import ConfigurationError, UnsupportedOperationError
from flinkcore.table import DataTypes
from flinkcore.table.types import RowField, RowType

ROW = DataTypes.ROW(
    [DataTypes.FIELD("id", DataTypes.BIGINT()), DataTypes.FIELD("name", DataTypes.VARCHAR(5))]
)


@pytest.mark.parametrize(
    ("data_type", "expected"),
    [
        (DataTypes.CHAR(3), Types.STRING()),
        (DataTypes.STRING(), Types.STRING()),
        (DataTypes.BYTES(), Types.PRIMITIVE_ARRAY(Types.BYTE())),
        (DataTypes.BINARY(2), Types.PRIMITIVE_ARRAY(Types.BYTE())),
        (DataTypes.BOOLEAN(), Types.BOOLEAN()),
        (DataTypes.TINYINT(), Types.BYTE()),
        (DataTypes.SMALLINT(), Types.SHORT()),
        (DataTypes.INT(), Types.INT()),
        (DataTypes.BIGINT(), Types.LONG()),
        (DataTypes.FLOAT(), Types.FLOAT()),
        (DataTypes.DOUBLE(), Types.DOUBLE()),
        (DataTypes.DECIMAL(10, 2), Types.BIG_DEC()),
        (DataTypes.DATE(), Types.SQL_DATE()),
        (DataTypes.TIME(), Types.SQL_TIME()),
        (DataTypes.TIMESTAMP(3), Types.SQL_TIMESTAMP()),
        (DataTypes.TIMESTAMP_LTZ(3), Types.INSTANT()),
        (DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(3), Types.INSTANT()),
        (DataTypes.ARRAY(DataTypes.INT()), Types.LIST(Types.INT())),
        (DataTypes.MAP(DataTypes.STRING(), DataTypes.INT()), Types.MAP(Types.STRING(), Types.INT())),
    ],
)
def test_a_column_of_a_type_gives_elements_of_a_type(data_type: object, expected: object) -> None:
    assert data_type.type_info() == expected  # type: ignore[attr-defined]


def test_types_are_shown_as_in_pyflink() -> None:
    assert repr(DataTypes.INT()) == "IntType(true)"
    assert repr(DataTypes.DECIMAL(10, 2, False)) == "DecimalType(10, 2, false)"
    assert repr(DataTypes.ARRAY(DataTypes.STRING())) == "ArrayType(VarCharType(2147483647, true), true)"
    assert (
        repr(ROW) == "RowType(RowField(id, BigIntType(true), ...),RowField(name, VarCharType(5, true), ...))"
    )
    assert [str(field) for field in ROW] == ["RowField(id, BIGINT)", "RowField(name, VARCHAR)"]


def test_types_of_equal_parts_are_equal() -> None:
    assert DataTypes.INT() == DataTypes.INT()
    assert DataTypes.INT() != DataTypes.BIGINT()
    assert DataTypes.INT().not_null() == DataTypes.INT(nullable=False) != DataTypes.INT()
    assert DataTypes.INT(False).nullable() == DataTypes.INT()
    assert DataTypes.VARCHAR(5) != DataTypes.CHAR(5)


def test_fields_of_rows_are_found_by_name_and_position() -> None:
    assert ROW.field_names() == ROW.names == ["id", "name"]
    assert ROW.field_types() == [DataTypes.BIGINT(), DataTypes.VARCHAR(5)]
    assert ROW["name"] == ROW[1] == RowField("name", DataTypes.VARCHAR(5))
    assert len(ROW) == 2
    assert ROW.type_info().get_field_names() == ["id", "name"]
    with pytest.raises(KeyError, match="no field is named 'age'; there are id, name"):
        ROW["age"]


def test_fields_are_added_to_rows() -> None:
    row = RowType().add("id", DataTypes.BIGINT()).add(RowField("name", DataTypes.VARCHAR(5)))
    assert row == ROW
    with pytest.raises(ConfigurationError, match="the field 'x' has a type such as"):
        row.add("x")


def test_types_that_no_file_has_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedOperationError, match=r"flinkcore has no DataTypes\.INTERVAL: no column"):
        DataTypes.INTERVAL(DataTypes.SECOND())
    assert not hasattr(DataTypes, "NULL")
    assert not hasattr(DataTypes, "NOTHING")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DataTypes.DECIMAL(39, 2), "a decimal has 1 to 38 digits"),
        (lambda: DataTypes.DECIMAL(3, 4), "a decimal has 1 to 38 digits"),
        (lambda: DataTypes.ARRAY(Types.INT()), "an element of an array has a type such as DataTypes.INT()"),
        (lambda: DataTypes.FIELD("a", int), "the field 'a' has a type such as"),
        (lambda: DataTypes.FIELD(1, DataTypes.INT()), "a field's name is a text"),
        (lambda: DataTypes.ROW([DataTypes.INT()]), "a field of a row is DataTypes.FIELD"),
    ],
)
def test_types_that_have_no_meaning_are_refused(make: object, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message.replace("(", r"\(").replace(")", r"\)")):
        make()  # type: ignore[operator]
